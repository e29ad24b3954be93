"""`Workspace`, all operations on the files of a session; each reads parse, permit, act, record.

Not covered: what a process on the host does to the directory without asking the gate is neither permitted nor
recorded here; it still cannot make an operation of the gate leave the directory.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Unpack

from carrel.audit.event import Event
from carrel.errors import ChangedError, ExistsError, MissingError, NotEmptyError, PathError
from carrel.fs.accounts import UnmeteredAccount
from carrel.fs.api import Cause, Confinement, Existing, Files, Links, Parents
from carrel.fs.cancellable import uncancellable
from carrel.fs.local.root import Root
from carrel.fs.local.scratch import Scratch
from carrel.paths.parsed_path import ParsedPath, StrPath
from carrel.policy.rules import Access, AccessMode, SandboxPolicy
from carrel.storage.memory.ledger import MemoryLedger
from carrel.storage.quota import Quota
from carrel.storage.recorder import Recorder
from carrel.values import Change, Edited, FileInfo, Limits
from carrel.workspace import edit as edits
from carrel.workspace import text as texts
from carrel.workspace.chunks import SourceError, guarded, within
from carrel.workspace.copy import TreeCopy, require_shallow
from carrel.workspace.gate import Gate, GateOptions, Ledger, gated, recorder_of
from carrel.workspace.reading import Reading
from carrel.workspace.search import below
from carrel.workspace.views import RuleRoots, parse_within

if TYPE_CHECKING:
    from carrel.workspace.archive.create import ArchiveFormat
    from carrel.workspace.archive.extract import Extracted
    from carrel.workspace.archive.spool import ArchiveSource
    from carrel.workspace.extract_limits import ExtractLimits

MOUNT = "/workspace"
"""What a workspace is called by those inside it."""


class Workspace(Reading):
    """Files of one session, which nothing in it can leave.

    Paths are relative to the workspace, or absolute beneath `/workspace` or an allowed path. Every operation
    raises errors of `carrel.errors`: `EscapeError` (a `ValueError`) for what leads out, `AccessError` (a
    `PermissionError`) for what a rule forbids, `MissingError` (a `FileNotFoundError`) and the like.
    """

    def __init__(
        self,
        files: Files,
        *,
        policy: SandboxPolicy,
        mount: str = MOUNT,
        confinement: Confinement | None = None,
        ledger: tuple[Recorder, Ledger] | None = None,
        **options: Unpack[GateOptions],
    ) -> None:
        """Open the gate to *files*; most callers want `Workspace.open`.

        The changes of a session are answered for by its *ledger*; others are counted in memory.
        """
        limits = options.get("limits") or Limits(disk_bytes=None, entries=None)
        if ledger is None:
            recorder = recorder_of(options)
            ledger = recorder, MemoryLedger(recorder, Quota.of(limits), files, limits)
        files.account = ledger[1]
        areas = RuleRoots(
            policy, files, mount=mount, others=UnmeteredAccount(ledger[1]), confinement=confinement
        )
        gate = Gate(
            areas,
            policy,
            limits=limits,
            recorder=ledger[0],
            ledger=ledger[1],
            absolute_paths=options.get("absolute_paths", True),
        )
        super().__init__(files, gate, mount)

    @classmethod
    def open(
        cls,
        directory: str | os.PathLike[str],
        *,
        policy: SandboxPolicy | None = None,
        mount: str = MOUNT,
        scratch: Scratch | None = None,
        confinement: Confinement | str | None = None,
        **options: Unpack[GateOptions],
    ) -> Workspace:
        """Open an existing directory of the host as a workspace.

        Args:
            directory: The directory; its contents become the workspace.
            policy: Rules for the workspace and for other paths; read and write in the workspace by default.
            mount: The absolute path that stands for the workspace.
            scratch: Where unfinished files and removed trees go; in the workspace itself by default.
            confinement: Demand `kernel` or `walk` instead of what the host offers.
            options: Limits, logger, journal, session id and so on; see `GateOptions`.

        Raises:
            UnavailableError: The directory is not there, or this platform cannot confine.
            ValueError: The policy is about another directory.
        """
        policy = policy or SandboxPolicy.for_workspace(directory)
        if os.path.realpath(policy.workspace_root) != os.path.realpath(directory):
            raise ValueError("the policy is about another directory than the one to be opened")
        demanded = None if confinement is None else Confinement(confinement)
        root = Root.open(
            directory, scratch=scratch, confinement=demanded if policy.enabled else Confinement.NONE
        )
        if scratch is None and Access.WRITE in policy.allowed(0):
            root.sweep_drafts(time.time())
        return cls(root, policy=policy, mount=mount, confinement=demanded, **options)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End all use; reads go on, a change that is not being put in place yet raises `ClosedError`.

        A view ends alone; what it is a view of stays open.
        """
        self.gate.close()

    def narrowed(
        self,
        *,
        mode: AccessMode = AccessMode.READ_WRITE,
        within: Iterable[str] = (),
        check: Callable[[], None] | None = None,
    ) -> Workspace:
        """A view: the same files, count, journal and session under narrower rules, never wider ones.

        With *within*, everything else in the workspace is answered with `OutsideError`, because no rule of
        the view has it; the answer is the same whether it exists or not, so it tells nothing. A link from
        one of the directories to another place, be it in the workspace, leads out of it. Where the policy is
        switched off, its rules hold in such a view. A view of a view shows what both would show.

        Args:
            mode: `READ_ONLY` refuses every change, in the workspace and in all other rules.
            within: Directories of the workspace; only what is at or beneath one of them can be used. One that
                is not there yet is missing until somebody else makes it; none may be a link or a file.
            check: Is called before every operation, entry and chunk, and raises to stop; what it raises comes
                to the caller, and a change that it stops has not happened.

        Raises:
            ValueError: A path of *within* is empty, leads out or is not in the workspace.
            UnavailableError: There is *within*, and the workspace is not on the host's disk.
            ClosedError: The workspace was closed.
        """
        gate = self.gate.narrowed(AccessMode(mode), parse_within(within, self.mount), check)
        view = Workspace.__new__(Workspace)
        # Not by `__init__`, which opens a gate of its own.
        Reading.__init__(view, self._files, gate, self.mount)
        view.created_ns = self.created_ns
        return view

    # Writing

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
        """Store *data* at once or not at all, making parent directories as needed.

        Text is encoded; with `encoding="base64"` it stands for bytes. With *if_version*, only that version of
        the file is replaced.

        Raises:
            ExistsError: There is something and *overwrite* is off.
            ChangedError: The file is no longer *if_version*.
            LimitError: The data is more than a file may hold, or the path too deep.
        """
        files, where = self.gate.permit(Access.WRITE, path)
        content = _content(data, encoding, where)
        self.gate.require_size(len(content), where)
        change = files.write(
            where,
            content,
            existing=Existing.REPLACE if overwrite else Existing.REFUSE,
            parents=Parents.MAKE if parents else Parents.REQUIRE,
            expect=if_version,
        )
        self.gate.log("write", where, size_bytes=change.info.size_bytes)
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
        """Store what *chunks* gives, for files larger than memory; at once or not at all, as `write`."""
        files, where = self.gate.permit(Access.WRITE, path)
        self.gate.require_size(0, where)
        try:
            change = files.write(
                where,
                within(guarded(chunks), self.gate.limits.file_bytes, where),
                existing=Existing.REPLACE if overwrite else Existing.REFUSE,
                parents=Parents.MAKE if parents else Parents.REQUIRE,
                expect=if_version,
            )
        except SourceError as error:
            cause = error.__cause__
        else:
            self.gate.log("write", where, size_bytes=change.info.size_bytes)
            return change.info
        raise cause or OSError("the source of the chunks failed")

    @gated("append")
    def append(
        self, path: StrPath, data: bytes | str, *, encoding: str = "utf-8", if_version: str | None = None
    ) -> FileInfo:
        """Add to the end of a file, which is made if it is missing.

        With *if_version*, only that version of the file is added to, and none is made.

        Raises:
            ChangedError: The file is no longer *if_version*, or is gone.
            HostDeniedError: The file has other names (hard links), which would change too.
        """
        files, where = self.gate.permit(Access.WRITE, path)
        content = _content(data, encoding, where)
        self.gate.require_size(len(content), where)
        change = self._append(files, where, content, if_version)
        self.gate.log("append", where, size_bytes=change.info.size_bytes)
        return change.info

    def _append(self, files: Files, where: ParsedPath, content: bytes, expect: str | None) -> Change:
        limit = self.gate.limits.file_bytes
        try:
            return files.append(where, content, limit=limit, expect=expect)
        except MissingError:
            pass
        if expect is not None:
            raise _changed(where, None)
        try:
            return files.write(
                where, content, existing=Existing.REFUSE, parents=Parents.MAKE, cause=Cause("append")
            )
        except ExistsError:
            # Somebody else made it meanwhile, so it can be appended to.
            return files.append(where, content, limit=limit)

    @gated("touch")
    def touch(self, path: StrPath, *, modified_ns: int | None = None) -> FileInfo:
        """Set when something was changed last, now by default; what is missing is made as an empty file.

        Raises:
            HostDeniedError: The file has other names (hard links), which would change too.
        """
        files, where = self.gate.permit(Access.WRITE, path)
        try:
            info = files.touch(where, self.gate.now() if modified_ns is None else modified_ns)
        except MissingError:
            self.gate.require_depth(where)
            info = files.write(where, b"", existing=Existing.REFUSE, parents=Parents.REQUIRE).info
            if modified_ns is not None:
                info = files.touch(where, modified_ns)
        self.gate.log("touch", where)
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
        """Replace *old* by *new*; it must be there exactly once unless *replace_all*. Line ends are kept.

        Raises:
            EditError: *old* is empty, equal to *new*, not found, or found several times; nothing is changed.
            ChangedError: Somebody else changed the file meanwhile, or it is not *if_version*.
        """
        files, where = self.gate.permit(Access.WRITE, path)
        before = files.stat(where, Links.FOLLOW)
        content = files.read(where, limit=self.gate.limits.read_bytes, offset=0, length=None)
        done = edits.replace(content, old, new, replace_all=replace_all, path=where.requested)
        self.gate.require_size(len(done.content), where)
        change = files.write(
            where,
            done.content,
            existing=Existing.REPLACE,
            parents=Parents.REQUIRE,
            expect=if_version or before.version,
            cause=Cause("edit"),
        )
        self.gate.log("edit", where, size_bytes=change.info.size_bytes)
        return Edited(
            replacements=done.count,
            diff=done.diff,
            before_bytes=before.size_bytes,
            info=change.info,
        )

    @gated("mkdir")
    def mkdir(self, path: StrPath, *, parents: bool = True, exist_ok: bool = False) -> None:
        """Make a directory and those above it.

        Raises:
            ExistsError: There is something and, unless *exist_ok*, be it a directory.
        """
        files, where = self.gate.permit(Access.WRITE, path)
        self.gate.require_depth(where)
        made = files.mkdir(where, parents=Parents.MAKE if parents else Parents.REQUIRE)
        if not made and not exist_ok:
            raise ExistsError(f"{where.requested!r} already exists", path=where.requested)
        if made:
            self.gate.log("mkdir", where)

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
        """Make the members of an archive beneath the directory *path*, all of them or none.

        *source* is an open binary file, bytes in pieces, or bytes; its first bytes say what it is, unless
        *format* does. It is judged as a whole before anything is made. With *overwrite*, files replace files
        and links replace links, and those that were replaced before an error stay replaced.

        Raises:
            ArchiveError: It is no archive that is read here, is broken or incomplete, or contradicts itself.
            PathError: A member or a link leads out of the archive, or has a name that we do not accept.
            NotRegularError: A member is a FIFO or a device.
            LimitError: A ceiling would be passed, of *limits* or of the workspace.
            ExistsError: Something stands in the way.
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
        """Remove a file, a link (never its target) or a directory, with its content if *recursive*.

        With *if_version*, only that version is removed, as `stat(path, follow_symlinks=False)` tells it.

        Raises:
            ChangedError: It is no longer *if_version*.
            NotEmptyError: The directory is not empty and *recursive* is off.
            MissingError: There is nothing and *force* is off.
            PathError: It is the workspace itself.
        """
        files, where = self.gate.permit(Access.WRITE, path)
        try:
            if recursive:
                files.remove_tree(where, expect=if_version)
            else:
                files.remove(where, expect=if_version)
        except MissingError:
            if force:
                return
            raise
        self.gate.log("delete", where, recursive=recursive)

    @gated("move")
    def move(
        self,
        source: StrPath,
        target: StrPath,
        *,
        overwrite: bool = False,
        if_version: str | None = None,
    ) -> None:
        """Give a file, link or directory another name; from one rule to another, copy and then remove it.

        With *if_version*, only that version of the source, as `stat(source, follow_symlinks=False)` tells it.

        Raises:
            ChangedError: The source is no longer *if_version*.
            ExistsError: There is something at *target* and *overwrite* is off.
            IntoItselfError: A directory cannot go into itself.
        """
        files, where = self.gate.permit(Access.WRITE, source)
        target_files, place = self.gate.permit(Access.WRITE, target)
        self.gate.require_depth(place)
        existing = Existing.REPLACE if overwrite else Existing.REFUSE
        if files is target_files:
            self._require_moved_depth(files, where, place)
            files.move(where, place, existing=existing, expect=if_version)
        else:
            copy = TreeCopy(files, target_files, existing, self.gate.limits)
            self._move_across(copy, where, place, if_version)
        self.gate.log("move", where, target=place.requested)

    def _require_moved_depth(self, files: Files, where: ParsedPath, place: ParsedPath) -> None:
        """Refuse to move a directory so far down that what it holds would be too deep.

        Raises:
            LimitError: It would have more levels than the limit.
        """
        if self.gate.limits.depth is None or len(place.parts) <= len(where.parts) or not where.name:
            return
        top = files.stat(where, Links.KEEP)
        if top.is_directory:
            whole = replace(self.gate.limits, walk_entries=None, list_entries=None)
            found = files.walk(where, whole)
            require_shallow((below(top, info) for info in found), place, whole.depth)

    def _move_across(self, copy: TreeCopy, where: ParsedPath, place: ParsedPath, expect: str | None) -> None:
        """Copy from one rule to another, and then remove the source.

        A source that changed while it was copied stays; its copy goes again, unless it replaced something.
        """
        if not where.name:
            raise PathError(f"path {where.requested!r} does not end in a name", path=where.requested)
        info = copy.source.stat(where, Links.KEEP)
        if expect is not None and info.version != expect:
            raise _changed(where, info.version)
        if info.is_directory and copy.existing is Existing.REPLACE:
            _require_empty(copy.target, place, self.gate.limits)
        copy.run(where, place)
        try:
            # Nothing stops in between, or both would be there.
            uncancellable(copy.source).remove_tree(where, expect=expect)
        except ChangedError:
            if copy.existing is Existing.REFUSE:
                uncancellable(copy.target).remove_tree(place)
            raise

    @gated("copy")
    def copy(
        self, source: StrPath, target: StrPath, *, overwrite: bool = False, recursive: bool = False
    ) -> None:
        """Copy a file, or with *recursive* a directory; links inside it stay links.

        Raises:
            ExistsError: There is something at *target* and *overwrite* is off.
            IsDirectoryError: It is a directory and *recursive* is off.
            IntoItselfError: A directory cannot go into itself.
        """
        files, where = self.gate.permit(Access.READ, source)
        target_files, place = self.gate.permit(Access.WRITE, target)
        self.gate.require_depth(place)
        existing = Existing.REPLACE if overwrite else Existing.REFUSE
        copy = TreeCopy(files, target_files, existing, self.gate.limits)
        if recursive:
            copy.run(where, place)
        else:
            copy.copy_file(where, place)
        self.gate.log("copy", where, target=place.requested)

    # The journal

    def changes(self, since: int = 0) -> Iterator[Event]:
        """What was changed or refused after the record with the sequence number *since*.

        A view of some directories gives only the records whose paths it shows, both of a move or a copy.

        Raises:
            RotatedError: Some of that is no longer kept.
        """
        return self.gate.events(since)


def _content(data: bytes | str, encoding: str, where: ParsedPath) -> bytes:
    if isinstance(data, str):
        return texts.encode(data, encoding, where.requested)
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise TypeError(f"data must be bytes or str, not {type(data).__name__}")


def _changed(where: ParsedPath, version: str | None) -> ChangedError:
    return ChangedError(f"{where.requested!r} was changed meanwhile", path=where.requested, version=version)


def _require_empty(files: Files, place: ParsedPath, limits: Limits) -> None:
    """Refuse to move a directory onto one with content, as a rename does."""
    try:
        inside = next(files.walk(place, limits), None)
    except MissingError:
        return
    if inside is not None:
        raise NotEmptyError(f"directory {place.requested!r} is not empty", path=place.requested)
