"""`WriteOperations`: the operations of `Workspace` that change files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from carrel.errors import ChangedError, ExistsError, MissingError, NotEmptyError, PathError
from carrel.fs.api import Cause, Existing, Files, Links, Parents
from carrel.fs.cancellable import uncancellable
from carrel.paths.parsed_path import ParsedPath, StrPath
from carrel.policy.rules import Access
from carrel.values import Change, Edited, FileInfo, Limits
from carrel.workspace import edit as edits
from carrel.workspace import text as texts
from carrel.workspace.chunks import SourceError, guarded, within
from carrel.workspace.copy import TreeCopy, require_shallow
from carrel.workspace.gate import Gate, gated
from carrel.workspace.search import below

if TYPE_CHECKING:
    from carrel.workspace.archive.create import ArchiveFormat
    from carrel.workspace.archive.extract import Extracted
    from carrel.workspace.archive.spool import ArchiveSource
    from carrel.workspace.extract_limits import ExtractLimits


class WriteOperations:
    """The operations of a workspace that change files; all state is in its gate."""

    gate: Gate

    @gated("write")
    def write(
        self,
        path: StrPath,
        data: bytes | str,
        *,
        overwrite: bool = True,
        parents: bool = True,
        encoding: str = "utf-8",
        if_version: str | None = None,
    ) -> FileInfo:
        """Write *data* to a file atomically, creating parent directories as needed.

        Text is encoded; with `encoding="base64"` it is decoded to bytes. With *if_version*, only that version
        of the file is replaced.

        Raises:
            ExistsError: The path exists and *overwrite* is off.
            ChangedError: The file is no longer *if_version*.
            LimitError: The data exceeds the file size limit, or the path is too deep.
        """
        files, parsed = self.gate.permit(Access.WRITE, path)
        content = _content(data, encoding, parsed)
        self.gate.require_size(len(content), parsed)
        change = files.write(
            parsed,
            content,
            existing=Existing.REPLACE if overwrite else Existing.REFUSE,
            parents=Parents.MAKE if parents else Parents.REQUIRE,
            expect=if_version,
        )
        self.gate.log("write", parsed, size_bytes=change.info.size_bytes)
        return change.info

    @gated("write")
    def write_chunks(
        self,
        path: StrPath,
        chunks: Iterable[bytes],
        *,
        overwrite: bool = True,
        parents: bool = True,
        if_version: str | None = None,
    ) -> FileInfo:
        """Write *chunks* to a file atomically, for files larger than memory; see `write`."""
        files, parsed = self.gate.permit(Access.WRITE, path)
        self.gate.require_size(0, parsed)
        try:
            change = files.write(
                parsed,
                within(guarded(chunks), self.gate.limits.file_bytes, parsed),
                existing=Existing.REPLACE if overwrite else Existing.REFUSE,
                parents=Parents.MAKE if parents else Parents.REQUIRE,
                expect=if_version,
            )
        except SourceError as error:
            cause = error.__cause__
        else:
            self.gate.log("write", parsed, size_bytes=change.info.size_bytes)
            return change.info
        raise cause or OSError("the source of the chunks failed")

    @gated("append")
    def append(
        self, path: StrPath, data: bytes | str, *, encoding: str = "utf-8", if_version: str | None = None
    ) -> FileInfo:
        """Append to a file, which is created if it is missing.

        With *if_version*, only that version of the file is appended to, and no file is created.

        Raises:
            ChangedError: The file is no longer *if_version*, or is gone.
            HostDeniedError: The file has other names (hard links), which would change too.
        """
        files, parsed = self.gate.permit(Access.WRITE, path)
        content = _content(data, encoding, parsed)
        self.gate.require_size(len(content), parsed)
        change = self._append(files, parsed, content, if_version)
        self.gate.log("append", parsed, size_bytes=change.info.size_bytes)
        return change.info

    def _append(self, files: Files, parsed: ParsedPath, content: bytes, expect: str | None) -> Change:
        limit = self.gate.limits.file_bytes
        try:
            return files.append(parsed, content, limit=limit, expect=expect)
        except MissingError:
            pass
        if expect is not None:
            raise _changed(parsed, None)
        try:
            return files.write(
                parsed, content, existing=Existing.REFUSE, parents=Parents.MAKE, cause=Cause("append")
            )
        except ExistsError:
            # Another caller has created it in the meantime.
            return files.append(parsed, content, limit=limit)

    @gated("touch")
    def touch(self, path: StrPath, *, modified_ns: int | None = None) -> FileInfo:
        """Set the modification time, by default to now; a missing file is created empty.

        Raises:
            HostDeniedError: The file has other names (hard links), which would change too.
        """
        files, parsed = self.gate.permit(Access.WRITE, path)
        try:
            info = files.touch(parsed, self.gate.now() if modified_ns is None else modified_ns)
        except MissingError:
            self.gate.require_depth(parsed)
            info = files.write(parsed, b"", existing=Existing.REFUSE, parents=Parents.REQUIRE).info
            if modified_ns is not None:
                info = files.touch(parsed, modified_ns)
        self.gate.log("touch", parsed)
        return info

    @gated("edit")
    def edit(
        self,
        path: StrPath,
        old: str,
        new: str,
        *,
        replace_all: bool = False,
        if_version: str | None = None,
    ) -> Edited:
        """Replace *old* by *new*, which must occur exactly once unless *replace_all*; keep the line ends.

        Raises:
            EditError: *old* is empty, equal to *new*, not found, or found several times; nothing is changed.
            ChangedError: The file was changed in the meantime, or is not *if_version*.
        """
        files, parsed = self.gate.permit(Access.WRITE, path)
        before = files.stat(parsed, Links.FOLLOW)
        content = files.read(parsed, limit=self.gate.limits.read_bytes, offset=0, length=None)
        done = edits.replace(content, old, new, replace_all=replace_all, path=parsed.requested)
        self.gate.require_size(len(done.content), parsed)
        change = files.write(
            parsed,
            done.content,
            existing=Existing.REPLACE,
            parents=Parents.REQUIRE,
            expect=if_version or before.version,
            cause=Cause("edit"),
        )
        self.gate.log("edit", parsed, size_bytes=change.info.size_bytes)
        return Edited(
            replacements=done.count,
            diff=done.diff,
            before_bytes=before.size_bytes,
            info=change.info,
        )

    @gated("mkdir")
    def mkdir(self, path: StrPath, *, parents: bool = True, exist_ok: bool = False) -> None:
        """Create a directory and, with *parents*, those above it.

        Raises:
            ExistsError: The path exists; with *exist_ok*, only if it is not a directory.
        """
        files, parsed = self.gate.permit(Access.WRITE, path)
        self.gate.require_depth(parsed)
        made = files.mkdir(parsed, parents=Parents.MAKE if parents else Parents.REQUIRE)
        if not made and not exist_ok:
            raise ExistsError(f"{parsed.requested!r} already exists", path=parsed.requested)
        if made:
            self.gate.log("mkdir", parsed)

    @gated("extract")
    def extract(
        self,
        source: ArchiveSource,
        path: StrPath = ".",
        *,
        format: ArchiveFormat | str | None = None,
        overwrite: bool = False,
        limits: ExtractLimits | None = None,
    ) -> Extracted:
        """Extract the members of an archive beneath the directory *path*, all of them or none.

        *source* is an open binary file, an iterable of bytes, or bytes. Without *format*, the first bytes
        determine the format. The whole archive is validated before anything is created. With *overwrite*,
        files replace files and links replace links; those replaced before an error stay replaced.

        Raises:
            ArchiveError: It is not a supported archive, is corrupt or incomplete, or contradicts itself.
            PathError: A member or a link leads out of the archive, or has an invalid name.
            NotRegularError: A member is a FIFO or a device.
            LimitError: A limit of *limits* or of the workspace would be exceeded.
            ExistsError: A path of a member exists already.
        """
        from carrel.workspace.archive.extract import extract

        return extract(self, source, path, format=format, overwrite=overwrite, limits=limits)

    # Removing, moving, copying

    @gated("remove")
    def remove(
        self,
        path: StrPath,
        *,
        recursive: bool = False,
        force: bool = False,
        if_version: str | None = None,
    ) -> None:
        """Remove a file, a link (not its target) or a directory, with its content if *recursive*.

        With *if_version*, only that version is removed, as `stat(path, follow_symlinks=False)` returns it.

        Raises:
            ChangedError: It is no longer *if_version*.
            NotEmptyError: The directory is not empty and *recursive* is off.
            MissingError: The path does not exist and *force* is off.
            PathError: It is the workspace itself.
        """
        files, parsed = self.gate.permit(Access.WRITE, path)
        try:
            if recursive:
                files.remove_tree(parsed, expect=if_version)
            else:
                files.remove(parsed, expect=if_version)
        except MissingError:
            if force:
                return
            raise
        self.gate.log("delete", parsed, recursive=recursive)

    @gated("move")
    def move(
        self,
        source: StrPath,
        target: StrPath,
        *,
        overwrite: bool = False,
        if_version: str | None = None,
    ) -> None:
        """Rename a file, link or directory; from one rule to another, copy and then remove it.

        With *if_version*, only that version of the source is moved, as `stat(source, follow_symlinks=False)`
        returns it.

        Raises:
            ChangedError: The source is no longer *if_version*.
            ExistsError: *target* exists and *overwrite* is off.
            IntoItselfError: *target* lies in the directory *source*.
        """
        files, parsed = self.gate.permit(Access.WRITE, source)
        target_files, parsed_target = self.gate.permit(Access.WRITE, target)
        self.gate.require_depth(parsed_target)
        existing = Existing.REPLACE if overwrite else Existing.REFUSE
        if files is target_files:
            self._require_moved_depth(files, parsed, parsed_target)
            files.move(parsed, parsed_target, existing=existing, expect=if_version)
        else:
            copy = TreeCopy(files, target_files, existing, self.gate.limits)
            self._move_across(copy, parsed, parsed_target, if_version)
        self.gate.log("move", parsed, target=parsed_target.requested)

    def _require_moved_depth(self, files: Files, parsed: ParsedPath, parsed_target: ParsedPath) -> None:
        """Refuse to move a directory whose content would exceed the depth limit at the target.

        Raises:
            LimitError: It would.
        """
        if self.gate.limits.depth is None or len(parsed_target.parts) <= len(parsed.parts) or not parsed.name:
            return
        top = files.stat(parsed, Links.KEEP)
        if top.is_directory:
            whole = replace(self.gate.limits, walk_entries=None, list_entries=None)
            found = files.walk(parsed, whole)
            require_shallow((below(top, info) for info in found), parsed_target, whole.depth)

    def _move_across(
        self, copy: TreeCopy, parsed: ParsedPath, parsed_target: ParsedPath, expect: str | None
    ) -> None:
        """Copy from one rule to another, and then remove the source.

        A source that changed during the copy stays; the copy is removed, unless it replaced something.
        """
        if not parsed.name:
            raise PathError(f"path {parsed.requested!r} does not end in a name", path=parsed.requested)
        info = copy.source.stat(parsed, Links.KEEP)
        if expect is not None and info.version != expect:
            raise _changed(parsed, info.version)
        if info.is_directory and copy.existing is Existing.REPLACE:
            _require_empty(copy.target, parsed_target, self.gate.limits)
        copy.run(parsed, parsed_target)
        try:
            # Not cancellable, or both the source and the copy would remain.
            uncancellable(copy.source).remove_tree(parsed, expect=expect)
        except ChangedError:
            if copy.existing is Existing.REFUSE:
                uncancellable(copy.target).remove_tree(parsed_target)
            raise

    @gated("copy")
    def copy(
        self, source: StrPath, target: StrPath, *, overwrite: bool = False, recursive: bool = False
    ) -> None:
        """Copy a file, or with *recursive* a directory; links inside it stay links.

        Raises:
            ExistsError: *target* exists and *overwrite* is off.
            IsDirectoryError: It is a directory and *recursive* is off.
            IntoItselfError: *target* lies in the directory *source*.
        """
        files, parsed = self.gate.permit(Access.READ, source)
        target_files, parsed_target = self.gate.permit(Access.WRITE, target)
        self.gate.require_depth(parsed_target)
        existing = Existing.REPLACE if overwrite else Existing.REFUSE
        copy = TreeCopy(files, target_files, existing, self.gate.limits)
        if recursive:
            copy.run(parsed, parsed_target)
        else:
            copy.copy_file(parsed, parsed_target)
        self.gate.log("copy", parsed, target=parsed_target.requested)


def _content(data: bytes | str, encoding: str, parsed: ParsedPath) -> bytes:
    if isinstance(data, str):
        return texts.encode(data, encoding, parsed.requested)
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise TypeError(f"data must be bytes or str, not {type(data).__name__}")


def _changed(parsed: ParsedPath, version: str | None) -> ChangedError:
    return ChangedError(
        f"{parsed.requested!r} was changed in the meantime", path=parsed.requested, version=version
    )


def _require_empty(files: Files, parsed_target: ParsedPath, limits: Limits) -> None:
    """Refuse to move a directory onto one with content, as a rename does."""
    try:
        inside = next(files.walk(parsed_target, limits), None)
    except MissingError:
        return
    if inside is not None:
        raise NotEmptyError(
            f"directory {parsed_target.requested!r} is not empty", path=parsed_target.requested
        )
