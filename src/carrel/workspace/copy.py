"""`TreeCopy`: copy a file or a whole tree, also from one root to another."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from carrel.errors import (
    CarrelError,
    ChangedError,
    EscapeError,
    ExistsError,
    IntoItselfError,
    LimitError,
    MissingError,
    NotDirectoryError,
    NotRegularError,
    QuotaError,
)
from carrel.fs.api import Cause, Existing, Files, Links, OnUnreadable, Parents
from carrel.fs.cancellable import uncancellable
from carrel.paths.parsed_path import ParsedPath, child, escapes, relative
from carrel.values import Change, FileInfo, FileKind, Limits
from carrel.workspace.chunks import CHUNK_BYTES, within
from carrel.workspace.search import below


@dataclass(frozen=True, slots=True)
class TreeCopy:
    """A copy from *source* to *target*.

    Links are copied as links, unless they lead out of the target. FIFOs, sockets and devices are refused. The
    whole source is listed and checked before anything is written.
    """

    source: Files
    target: Files
    existing: Existing
    limits: Limits

    def run(self, source_path: ParsedPath, target_path: ParsedPath) -> None:
        """Copy the file, link or directory *source_path* to *target_path*."""
        top = self.source.stat(source_path, Links.KEEP)
        if not top.is_directory:
            self._copy(source_path, top, target_path)
            return
        found = self.source.walk(source_path, self.limits, unreadable=OnUnreadable.REFUSE)
        inside = [(info, below(top, info)) for info in found]
        self._require_apart(top, source_path, target_path)
        require_shallow((name for _, name in inside), target_path, self.limits.depth)
        for info, name in inside:
            self._require_copyable(info, child(source_path, name), child(target_path, name))
        self._require_room(inside, target_path)
        made = self.target.mkdir(target_path, parents=Parents.MAKE)
        if not made and self.existing is Existing.REFUSE:
            raise ExistsError(f"{target_path.requested!r} already exists", path=target_path.requested)
        try:
            for info, name in inside:
                self._copy(child(source_path, name), info, child(target_path, name))
        except BaseException:
            self._undo(target_path, len(made))
            raise

    def _undo(self, target_path: ParsedPath, made: int) -> None:
        """Remove an incomplete copy, and the directories that were created for it."""
        if not made:
            return
        target = uncancellable(self.target)
        target.remove_tree(target_path)
        for count in range(1, made):
            with suppress(CarrelError):
                target.remove(relative(target_path, target_path.parts[:-count]))

    def copy_file(self, source_path: ParsedPath, target_path: ParsedPath) -> Change:
        """Copy one regular file."""
        limit = self.limits.file_bytes
        if self.source is self.target:
            return self.source.copy(source_path, target_path, existing=self.existing, limit=limit)
        reader = self.source.reader(source_path)
        return self.target.write(
            target_path,
            within(reader.chunks(CHUNK_BYTES), limit, source_path),
            existing=self.existing,
            parents=Parents.MAKE,
            mode=reader.info.mode,
            cause=Cause("copy", reader.info.path),
        )

    def _copy(self, source_path: ParsedPath, info: FileInfo, target_path: ParsedPath) -> None:
        """Copy one entry."""
        if info.kind is FileKind.DIRECTORY:
            self.target.mkdir(target_path, parents=Parents.MAKE)
        elif info.kind is FileKind.FILE:
            self.copy_file(source_path, target_path)
        else:
            self._require_copyable(info, source_path, target_path)
            self.target.link(target_path, self._link_text(source_path), existing=self.existing)

    def _require_room(self, inside: list[tuple[FileInfo, str]], target_path: ParsedPath) -> None:
        """Refuse a copy that does not fit in the quota, before any of it replaces a file."""
        more_bytes = more_entries = 0
        for info, name in inside:
            before = self._stat_target(child(target_path, name))
            more_bytes += info.size_bytes if info.is_file else 0
            more_bytes -= before.size_bytes if before and before.is_file and before.links == 1 else 0
            more_entries += before is None
        try:
            self.target.account.require_room(more_bytes, more_entries)
        except QuotaError as error:
            error.path = error.filename = target_path.requested
            raise

    def _stat_target(self, target_path: ParsedPath) -> FileInfo | None:
        try:
            return self.target.stat(target_path, Links.KEEP)
        except (MissingError, NotDirectoryError):
            return None

    def _require_copyable(self, info: FileInfo, source_path: ParsedPath, target_path: ParsedPath) -> None:
        """Refuse an entry that cannot be copied."""
        if info.kind is FileKind.OTHER:
            raise NotRegularError(
                f"{source_path.requested!r} is not a regular file", path=source_path.requested
            )
        if info.kind is FileKind.LINK and escapes(target_path, self._link_text(source_path)):
            requested = source_path.requested
            raise EscapeError(
                f"the link {requested!r} would lead out of its copy: it escapes session workspace",
                path=requested,
            )

    def _link_text(self, source_path: ParsedPath) -> str:
        info = self.source.stat(source_path, Links.KEEP)
        if info.target is None:
            raise ChangedError(
                f"{source_path.requested!r} was changed in the meantime",
                path=source_path.requested,
                version=info.version,
            )
        return info.target

    def _require_apart(self, top: FileInfo, source_path: ParsedPath, target_path: ParsedPath) -> None:
        """Refuse a target in the directory that is copied."""
        if self.source is not self.target:
            return
        target = uncancellable(self.target)
        for count in range(len(target_path.parts) + 1):
            try:
                above = target.stat(relative(target_path, target_path.parts[:count]), Links.FOLLOW)
            except OSError:
                return
            if above.inode == top.inode:
                raise IntoItselfError(
                    f"{source_path.requested!r} cannot be put inside itself", path=source_path.requested
                )


def require_shallow(inside: Iterable[str], target_path: ParsedPath, limit: int | None) -> None:
    """Refuse a directory at *target_path* whose content, the paths *inside*, would be too deep there.

    Raises:
        LimitError: It would have more levels than the limit.
    """
    if limit is None:
        return
    depth = len(target_path.parts) + max((name.count("/") + 1 for name in inside), default=0)
    if depth > limit:
        raise LimitError(
            "depth",
            limit=limit,
            asked=depth,
            message=f"{target_path.requested[:80]!r} would be too deep: {depth} levels, the limit is {limit}",
            path=target_path.requested,
        )
