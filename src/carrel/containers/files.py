"""`ContainerFiles`: files that live only in a container, behind the same protocol as all others.

The answers and errors are those of `carrel.fs.local.root.Root`. Every path is resolved by names on the host,
never by links in the container; what acts in the container holds what was looked at and acts on that.

Not covered: a directory that is mounted beneath the root of the files is entered like any other; only the
container's operator can mount one. Programs in the container that run as the same user may change files at
any time, and end or deceive what works there for us: they can spoil their own files, and nothing else. What
they write is counted when somebody counts again. A directory that is shut to its owner is not opened,
neither to be removed nor to be counted. With busybox, `touch` knows whole seconds, and a link that leads to
no file is removed before something replaces it.
"""

from __future__ import annotations

import builtins
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from carrel.containers.fs.archive_primitives import ArchivePrimitives
from carrel.containers.fs.file_agent import ANSWER_SECONDS, FileAgent
from carrel.containers.fs.primitives import (
    ConcurrentChangeError,
    Copied,
    FilePrimitives,
    FoundEntry,
    Parts,
    new_draft,
    os_error,
)
from carrel.containers.fs.reading import encoded, identity, retried, retried_and_translated
from carrel.containers.fs.shell_primitives import PIECE_BYTES, ShellPrimitives
from carrel.containers.fs.write_target import ContainerPlaces, WriteTarget, freed, require_version
from carrel.containers.spec import WORKSPACE
from carrel.errors import ContainerError, EngineError, EscapeError
from carrel.fs.accounts import NullAccount
from carrel.fs.api import WRITE, Account, Cause, Existing, Links, OnUnreadable, Parents
from carrel.fs.errors import changed_error, not_a_file_error, not_on_disk_error, size_limit_error, translated
from carrel.fs.rules import info_of, require_one_name, require_write_bit
from carrel.paths.parsed_path import ParsedPath, escapes, parent_paths
from carrel.values import Change, FileInfo

if TYPE_CHECKING:
    from carrel.containers.container import Container

_NO_TOOLS = ("container.shell", "container.tools")


class _Draft(NamedTuple):
    """Content that is complete and not in its place yet."""

    name: bytes
    made: os.stat_result


class ContainerFiles(ContainerPlaces):
    """All files beneath one directory of a container."""

    def __init__(
        self,
        container: Container,
        root: str = WORKSPACE,
        *,
        user: str | None = None,
        timeout_seconds: float = ANSWER_SECONDS,
        steps: FilePrimitives | None = None,
    ) -> None:
        """Work on what is beneath *root* in *container*, as its user or as *user*; with *steps* of others.

        Where the image has a shell and the usual tools, those are used. Where it has none, or the container
        does not run, what the engine itself can do is offered: read, write, list and stat.

        Raises:
            ContainerError: The container is gone, or has no such directory.
            EngineError: The engine does not answer.
        """
        super().__init__(
            steps or open_primitives(container, root, user=user, timeout_seconds=timeout_seconds)
        )
        self.account: Account = NullAccount()
        self.container = container
        self.root = root

    def close(self) -> None:
        """End all use; what still reads goes on."""
        self._steps = None
        self.account = NullAccount()

    def subtree(self, names: tuple[str, ...]) -> NoReturn:
        """Refuse: only a directory of the host has subtrees."""
        raise not_on_disk_error()

    def host_path(self, path: ParsedPath, /) -> NoReturn:
        """Refuse: there is no path on the host."""
        raise not_on_disk_error()

    def unmediated_access(self) -> None:
        """Return `None`: the files are not on the host's disk."""
        return

    # Writing

    @translated
    def write(
        self,
        path: ParsedPath,
        data: bytes | Iterable[bytes],
        *,
        existing: Existing,
        parents: Parents,
        expect: str | None = None,
        mode: int | None = None,
        cause: Cause = WRITE,
    ) -> Change:
        """Store *data* completely or not at all, through a link at the end if it stays inside."""
        steps = self._use(path)
        place = _Place(existing, parents, expect, mode, cause)
        if isinstance(data, bytes) and len(data) <= PIECE_BYTES:
            return self._place(path, steps, place, data)
        target = self._first_target(path, existing, parents)
        require_version(path, target.before, expect)
        pieces = self._counted_pieces(data, freed(target.before))
        content, more = _first(pieces)
        if not more:
            return self._place(path, steps, place, content)
        with self._drafting(steps) as draft:
            made = steps.add(draft.name, draft.made, content)
            for piece in chain(more, pieces):
                made = steps.add(draft.name, made, piece)
            return self._place(path, steps, place, _Draft(draft.name, made))

    @retried
    def _first_target(self, path: ParsedPath, existing: Existing, parents: Parents) -> WriteTarget:
        return self._target(path, existing, parents)

    def _counted_pieces(self, data: bytes | Iterable[bytes], freed: int) -> Iterator[bytes]:
        """The pieces of *data* as long as there is room for them."""
        size = 0
        for piece in (data,) if isinstance(data, bytes) else data:
            self.account.require_room(size + len(piece) - freed, drafted_bytes=size)
            size += len(piece)
            yield piece

    @retried_and_translated
    def append(
        self, path: ParsedPath, data: bytes, *, limit: int | None, expect: str | None = None
    ) -> Change:
        """Append to a regular file that has no other name."""
        with self.account as account:
            steps = self._use(path)
            reached = self._look(path, Links.FOLLOW)
            found = reached.result
            if not stat.S_ISREG(found.stat.st_mode):
                raise not_a_file_error(found.stat, path)
            require_version(path, found, expect)
            require_write_bit(found.stat, path)
            require_one_name(found.stat, path)
            if not found.writable:
                raise os_error(errno.EACCES)
            before, after = found.stat.st_size, found.stat.st_size + len(data)
            if limit is not None and after > limit:
                raise size_limit_error("file_bytes", limit, after, path)
            account.charge(len(data), 0, inode=found.stat.st_ino)
            account.record("append", path.text, before_bytes=before, after_bytes=after)
            with _marking_dirty(account):
                now = steps.append(reached.parts, found.stat, data)
            return Change(before_bytes=before, info=info_of(path.text, now))

    @retried_and_translated
    def touch(self, path: ParsedPath, modified_ns: int) -> FileInfo:
        """Set the modification time of a directory, or of a file that has no other name."""
        with self.account as account:
            steps = self._use(path)
            reached = self._look(path, Links.FOLLOW)
            found = reached.result.stat
            if not stat.S_ISDIR(found.st_mode):
                if not stat.S_ISREG(found.st_mode):
                    raise not_a_file_error(found, path)
                require_one_name(found, path)
            account.charge(0, 0)
            account.record("touch", path.text)
            return info_of(path.text, steps.touch(reached.parts, found, modified_ns))

    @retried_and_translated
    def copy(self, path: ParsedPath, target: ParsedPath, *, existing: Existing, limit: int | None) -> Change:
        """Copy one regular file."""
        steps = self._use(path)
        source = self._look(path, Links.FOLLOW)
        if not stat.S_ISREG(source.result.stat.st_mode):
            raise not_a_file_error(source.result.stat, path)
        size = source.result.stat.st_size
        if limit is not None and size > limit:
            raise size_limit_error("file_bytes", limit, size, path)
        before = self._target(target, existing, Parents.MAKE).before
        self.account.require_room(size - freed(before))
        with self._drafting(steps, begin=False) as draft:
            copied = steps.copy(source.parts, draft.name, None if limit is None else limit + 1)
            if not isinstance(copied, Copied):
                raise ConcurrentChangeError
            if limit is not None and copied.draft.st_size > limit:
                raise size_limit_error("file_bytes", limit, copied.draft.st_size, path)
            cause = Cause("copy", path.text)
            place = _Place(existing, Parents.MAKE, None, copied.source.st_mode, cause)
            return self._place(target, steps, place, _Draft(draft.name, copied.draft))

    @retried_and_translated
    def mkdir(self, path: ParsedPath, *, parents: Parents) -> builtins.list[str]:
        """Create a directory and, if wanted, those above it; returns the paths of all that were created."""
        steps = self._use(path)
        if path.dotted:
            self._directory(path, encoded(path))
            return []
        with self.account as account:
            near, missing, found = self._nearest(path, parents)
            if not missing and found is not None:
                if self._is_directory(path):
                    return []
                raise os_error(errno.EEXIST)
            created = [*parent_paths(path, len(missing)), path.text]
            account.charge(0, len(created))
            for each in created:
                account.record("mkdir", each)
            with _marking_dirty(account):
                steps.mkdirs(near, (*map(os.fsencode, missing), path.name))
            return created

    def _is_directory(self, path: ParsedPath) -> bool:
        try:
            self._directory(path, encoded(path))
        except (ContainerError, EngineError):
            raise
        except OSError:
            return False
        return True

    @retried_and_translated
    def link(self, path: ParsedPath, target: str, *, existing: Existing = Existing.REFUSE) -> None:
        """Create a link whose target is neither absolute nor, as text, above the root."""
        if escapes(path, target):
            raise EscapeError(
                f"a link at {path.requested!r} would lead out: it escapes session workspace",
                path=path.requested,
            )
        with self.account as account:
            steps = self._use(path)
            reached = self._entry(path)
            before = reached.result
            if existing is Existing.REPLACE:
                if path.must_dir:
                    raise os_error(errno.ENOTDIR)
                if before is not None and stat.S_ISDIR(before.stat.st_mode):
                    raise os_error(errno.EISDIR)
            elif before is not None:
                raise os_error(errno.EEXIST)
            elif path.must_dir:
                raise os_error(errno.ENOENT)
            account.charge(-freed(before), 1 if before is None else 0)
            account.record("link", path.text, other=target)
            with _marking_dirty(account):
                steps.link(reached.parts, os.fsencode(target), existing)

    # Removing and moving

    @retried_and_translated
    def remove(self, path: ParsedPath, *, expect: str | None = None) -> FileInfo:
        """Remove a file, a link (never its target) or an empty directory."""
        with self.account as account:
            steps = self._use(path)
            parts, found = self._require_entry(path, expect)
            is_directory = stat.S_ISDIR(found.stat.st_mode)
            if is_directory and self._entered(steps, parts, "", None):
                raise os_error(errno.ENOTEMPTY)
            self._charge_removal(account, path, found)
            with _marking_dirty(account):
                (steps.rmdir if is_directory else steps.unlink)(parts)
            return info_of(path.text, found.stat)

    def _charge_removal(self, account: Account, path: ParsedPath, found: FoundEntry) -> None:
        info = info_of(path.text, found.stat)
        account.charge(-freed(found), -1)
        account.record("remove", path.text, before_bytes=info.size_bytes)

    @retried_and_translated
    def remove_tree(self, path: ParsedPath, *, expect: str | None = None) -> FileInfo:
        """Remove whatever is there, with everything in it, one directory after the other."""
        with self.account as account:
            steps = self._use(path)
            parts, found = self._require_entry(path, expect)
            if not stat.S_ISDIR(found.stat.st_mode):
                self._charge_removal(account, path, found)
                with _marking_dirty(account):
                    steps.unlink(parts)
                return info_of(path.text, found.stat)
            usage, directories = self._counted(steps, parts, None, shut=OnUnreadable.REFUSE)
            account.charge(-usage.disk_bytes, -usage.entries - 1)
            account.record("remove", path.text, before_bytes=0)
            try:
                for directory in reversed(directories):
                    steps.purge(directory)
            except BaseException:
                account.mark_dirty()
                raise
            return info_of(path.text, found.stat)

    @retried_and_translated
    def move(
        self, path: ParsedPath, target: ParsedPath, *, existing: Existing, expect: str | None = None
    ) -> FileInfo:
        """Rename within these files; a link moves as a link."""
        with self.account:
            parts, found = self._require_entry(path, expect)
            self._move_to(target, parts, found, path, existing)
            return info_of(path.text, found.stat)

    @translated
    def _move_to(
        self, target: ParsedPath, parts: Parts, found: FoundEntry, source: ParsedPath, existing: Existing
    ) -> None:
        steps = self._use(target)
        reached = self._entry(target)
        is_directory = stat.S_ISDIR(found.stat.st_mode)
        if target.must_dir and not is_directory:
            raise os_error(errno.ENOTDIR)
        before = reached.result
        if before is not None and existing is Existing.REFUSE:
            raise os_error(errno.EEXIST)
        if before is not None and identity(before.stat) == identity(found.stat):
            # Two names of one file stay as they are when one is moved onto the other.
            return
        info = info_of(source.text, found.stat)
        account = self.account
        account.charge(-freed(before), 0 if before is None else -1, inode=info.inode)
        account.record(
            "move",
            source.text,
            other=target.text,
            before_bytes=info.size_bytes,
            after_bytes=info.size_bytes,
        )
        if problem := _move_problem(parts, reached.parts, before, is_directory=is_directory):
            raise os_error(problem)
        with _marking_dirty(account):
            steps.move(parts, reached.parts, existing)

    # Putting

    @retried
    def _place(
        self, path: ParsedPath, steps: FilePrimitives, place: _Place, content: bytes | _Draft
    ) -> Change:
        """Put content at *path* and say what changed."""
        with self.account as account:
            self._use(path)
            target = self._target(path, place.existing, place.parents)
            before = target.before
            if place.expect is not None and target.missing:
                raise changed_error(target.path, None)
            require_version(target.path, before, place.expect)
            size = len(content) if isinstance(content, bytes) else content.made.st_size
            made = self._charge_write(account, target, size, place.cause)
            mode = place.mode if before is None else before.stat.st_mode
            with _marking_dirty(account):
                if target.missing:
                    steps.mkdirs(target.near, target.parts[len(target.near) : -1])
                try:
                    now = _put(steps, target.parts, content, mode, place.existing)
                except BaseException:
                    if not _unmake(steps, target):
                        account.mark_dirty()
                    raise
        return Change(
            before_bytes=None if before is None else before.stat.st_size,
            info=info_of(target.path.text, now),
            made=tuple(made),
        )

    def _charge_write(
        self, account: Account, target: WriteTarget, size: int, cause: Cause
    ) -> builtins.list[str]:
        """Charge and record a write; returns the paths of the directories that it makes."""
        before = target.before
        made = parent_paths(target.path, len(target.missing))
        account.charge(size - freed(before), len(made) + (before is None))
        for each in made:
            account.record("mkdir", each)
        shown = target.path.text
        account.record(
            cause.operation,
            cause.source or shown,
            other=None if cause.source is None else shown,
            before_bytes=None if before is None else before.stat.st_size,
            after_bytes=size,
        )
        return made

    @contextmanager
    def _drafting(self, steps: FilePrimitives, *, begin: bool = True) -> Iterator[_Draft]:
        """A draft that is gone afterwards if it was not put in its place."""
        name = new_draft()
        self._drafts.add(name)
        try:
            made = steps.begin(name) if begin else os.stat_result((0,) * 10)
            yield _Draft(name, made)
        finally:
            with suppress(ContainerError, EngineError, OSError):
                steps.discard(name)
            self._drafts.discard(name)


class _Place(NamedTuple):
    """On what terms content is put somewhere."""

    existing: Existing
    parents: Parents
    expect: str | None
    mode: int | None
    cause: Cause


def open_primitives(
    container: Container, root: str, *, user: str | None = None, timeout_seconds: float = ANSWER_SECONDS
) -> FilePrimitives:
    """What can work on the files beneath *root*: a script in the container, or the engine itself."""
    if not container.state().running:
        return ArchivePrimitives(container, root)
    attendant = FileAgent(container, root, user=user, timeout_seconds=timeout_seconds)
    try:
        attendant.start()
    except ContainerError as error:
        if error.code not in _NO_TOOLS:
            raise
    else:
        return ShellPrimitives(attendant)
    return ArchivePrimitives(container, root)


def _put(
    steps: FilePrimitives, parts: Parts, content: bytes | _Draft, mode: int | None, existing: Existing
) -> os.stat_result:
    if isinstance(content, bytes):
        return steps.store(parts, content, mode, existing)
    return steps.publish(content.name, content.made, parts, mode, existing)


@contextmanager
def _marking_dirty(account: Account) -> Iterator[None]:
    """Have the tree counted again if nobody can know whether a change was made."""
    try:
        yield
    except (ContainerError, EngineError, BlockingIOError):
        account.mark_dirty()
        raise


def _first(pieces: Iterator[bytes]) -> tuple[bytes, tuple[bytes, ...]]:
    """As much as is stored at once, and the piece that was too much for that, if there is one."""
    found = bytearray()
    for piece in pieces:
        if len(found) + len(piece) > PIECE_BYTES:
            return bytes(found), (piece,)
        found += piece
    return bytes(found), ()


def _unmake(steps: FilePrimitives, target: WriteTarget) -> bool:
    """Take away the directories that were made for nothing; whether all of them are gone."""
    for count in range(len(target.missing), 0, -1):
        try:
            steps.rmdir(target.parts[: len(target.near) + count])
        except Exception:  # whatever it is, the caller has a reason of its own to raise
            return False
    return True


def _move_problem(source: Parts, target: Parts, before: FoundEntry | None, *, is_directory: bool) -> int:
    """Why a move cannot be made, as a kernel says it, or 0."""
    if is_directory and target[: len(source)] == source:
        return errno.EINVAL
    if source[: len(target)] == target:
        return errno.ENOTEMPTY
    if before is None or stat.S_ISDIR(before.stat.st_mode) == is_directory:
        return 0
    return errno.ENOTDIR if is_directory else errno.EISDIR
