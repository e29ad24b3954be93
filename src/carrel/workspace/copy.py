"""Copy a file or a whole tree, also from one root to another."""

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
    """One copy from *source* to *target*.

    Links are copied as links, if they do not lead out of the target. What is neither a file, a directory nor
    a link is refused. The source is listed and judged before anything is written.
    """

    source: Files
    target: Files
    existing: Existing
    limits: Limits

    def run(self, where: ParsedPath, place: ParsedPath) -> None:
        """Copy what is at *where* to *place*."""
        top = self.source.stat(where, Links.KEEP)
        if not top.is_directory:
            self._copy(where, top, place)
            return
        found = self.source.walk(where, self.limits, unreadable=OnUnreadable.REFUSE)
        inside = [(info, below(top, info)) for info in found]
        self._require_apart(top, where, place)
        require_shallow((name for _, name in inside), place, self.limits.depth)
        for info, name in inside:
            self._require_copyable(info, child(where, name), child(place, name))
        self._require_room(inside, place)
        made = self.target.mkdir(place, parents=Parents.MAKE)
        if not made and self.existing is Existing.REFUSE:
            raise ExistsError(f"{place.requested!r} already exists", path=place.requested)
        try:
            for info, name in inside:
                self._copy(child(where, name), info, child(place, name))
        except BaseException:
            self._take_away(place, len(made))
            raise

    def _take_away(self, place: ParsedPath, made: int) -> None:
        """Remove a copy that failed, and the directories that were made for it."""
        if not made:
            return
        target = uncancellable(self.target)
        target.remove_tree(place)
        for count in range(1, made):
            with suppress(CarrelError):
                target.remove(relative(place, place.parts[:-count]))

    def copy_file(self, where: ParsedPath, place: ParsedPath) -> Change:
        """Copy one regular file."""
        limit = self.limits.file_bytes
        if self.source is self.target:
            return self.source.copy(where, place, existing=self.existing, limit=limit)
        reader = self.source.reader(where)
        return self.target.write(
            place,
            within(reader.chunks(CHUNK_BYTES), limit, where),
            existing=self.existing,
            parents=Parents.MAKE,
            mode=reader.info.mode,
            cause=Cause("copy", reader.info.path),
        )

    def _copy(self, where: ParsedPath, info: FileInfo, place: ParsedPath) -> None:
        """Copy one entry."""
        if info.kind is FileKind.DIRECTORY:
            self.target.mkdir(place, parents=Parents.MAKE)
        elif info.kind is FileKind.FILE:
            self.copy_file(where, place)
        else:
            self._require_copyable(info, where, place)
            self.target.link(place, self._link_text(where), existing=self.existing)

    def _require_room(self, inside: list[tuple[FileInfo, str]], place: ParsedPath) -> None:
        """Refuse what cannot fit now, before some of it replaces what was there."""
        more_bytes = more_entries = 0
        for info, name in inside:
            before = self._there(child(place, name))
            more_bytes += info.size_bytes if info.is_file else 0
            more_bytes -= before.size_bytes if before and before.is_file and before.links == 1 else 0
            more_entries += before is None
        try:
            self.target.account.require_room(more_bytes, more_entries)
        except QuotaError as error:
            error.path = error.filename = place.requested
            raise

    def _there(self, place: ParsedPath) -> FileInfo | None:
        try:
            return self.target.stat(place, Links.KEEP)
        except (MissingError, NotDirectoryError):
            return None

    def _require_copyable(self, info: FileInfo, where: ParsedPath, place: ParsedPath) -> None:
        """Refuse what could not be copied, before anything is."""
        if info.kind is FileKind.OTHER:
            raise NotRegularError(f"{where.requested!r} is not a regular file", path=where.requested)
        if info.kind is FileKind.LINK and escapes(place, self._link_text(where)):
            raise EscapeError(
                f"the link {where.requested!r} would lead out of its copy: it escapes session workspace",
                path=where.requested,
            )

    def _link_text(self, where: ParsedPath) -> str:
        info = self.source.stat(where, Links.KEEP)
        if info.target is None:
            raise ChangedError(
                f"{where.requested!r} was changed meanwhile", path=where.requested, version=info.version
            )
        return info.target

    def _require_apart(self, top: FileInfo, where: ParsedPath, place: ParsedPath) -> None:
        """Refuse a target that lies in the directory that is copied."""
        if self.source is not self.target:
            return
        target = uncancellable(self.target)
        for count in range(len(place.parts) + 1):
            try:
                above = target.stat(relative(place, place.parts[:count]), Links.FOLLOW)
            except OSError:
                return
            if above.inode == top.inode:
                raise IntoItselfError(
                    f"{where.requested!r} cannot be put inside itself", path=where.requested
                )


def require_shallow(inside: Iterable[str], place: ParsedPath, limit: int | None) -> None:
    """Refuse to put at *place* a directory that holds what is *inside*, if that would be too deep there.

    Raises:
        LimitError: It would have more levels than the limit.
    """
    if limit is None:
        return
    depth = len(place.parts) + max((name.count("/") + 1 for name in inside), default=0)
    if depth > limit:
        raise LimitError(
            "depth",
            limit=limit,
            asked=depth,
            message=f"{place.requested[:80]!r} would be too deep: {depth} levels, the limit is {limit}",
            path=place.requested,
        )
