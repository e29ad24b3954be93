"""`ContainerFiles`: the `Files` protocol for files that exist only in a container.

Results and errors are those of `carrel.fs.local.root.Root`. Every path is resolved name by name on the host,
never through links in the container; the agent in the container opens what was checked and acts on that.

Not covered: a directory mounted beneath the root is entered like any other; only the container's operator can
mount one. Programs in the container that run as the same user may change files at any time, and kill or
deceive the agent: they can damage their own files and nothing else. What they write is counted at the next
recount. A directory without permissions for its owner is neither removed nor counted. With busybox, `touch`
supports whole seconds only, and a dangling link is removed before it is replaced.
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
)
from carrel.containers.fs.reading import encoded, identity, retried, retried_and_translated
from carrel.containers.fs.shell_primitives import PIECE_BYTES, ShellPrimitives
from carrel.containers.fs.write_target import ContainerLookup, WriteTarget, freed_bytes, require_version
from carrel.containers.spec import WORKSPACE
from carrel.errors import ContainerError, EngineError, EscapeError
from carrel.fs.accounts import NullAccount
from carrel.fs.api import WRITE, Account, Cause, Existing, Links, OnUnreadable, Parents
from carrel.fs.errors import (
    changed_error,
    not_a_file_error,
    not_on_disk_error,
    os_error,
    size_limit_error,
    translated,
)
from carrel.fs.rules import info_of, require_one_name, require_write_bit
from carrel.paths.parsed_path import ParsedPath, escapes, parent_paths
from carrel.values import Change, FileInfo

if TYPE_CHECKING:
    from carrel.containers.container import Container

_NO_TOOLS = ("container.shell", "container.tools")


class _Draft(NamedTuple):
    """A complete draft that is not published yet."""

    name: bytes
    made: os.stat_result


class ContainerFiles(ContainerLookup):
    """All files beneath one directory of a container."""

    def __init__(
        self,
        container: Container,
        root: str = WORKSPACE,
        *,
        user: str | None = None,
        timeout_seconds: float = ANSWER_SECONDS,
        primitives: FilePrimitives | None = None,
    ) -> None:
        """Work beneath *root* in *container*, as its user or as *user*; tests pass *primitives*.

        If the image has a shell and the usual tools, those are used. If not, or if the container is not
        running, Docker's archive API is used, which can only read, write, list and stat.

        Raises:
            ContainerError: The container does not exist, or has no such directory.
            EngineError: The engine does not respond.
        """
        super().__init__(
            primitives or open_primitives(container, root, user=user, timeout_seconds=timeout_seconds)
        )
        self.account: Account = NullAccount()
        self.container = container
        self.root = root

    def close(self) -> None:
        """End all use; open readers keep working."""
        self._primitives = None
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
        primitives = self._require_open(path)
        options = _WriteOptions(existing, parents, expect, mode, cause)
        if isinstance(data, bytes) and len(data) <= PIECE_BYTES:
            return self._publish(path, primitives, options, data)
        target = self._first_target(path, existing, parents)
        require_version(path, target.before, expect)
        pieces = self._counted_pieces(data, freed_bytes(target.before))
        content, more = _first_chunk(pieces)
        if not more:
            return self._publish(path, primitives, options, content)
        with self._draft(primitives) as draft:
            made = primitives.add(draft.name, draft.made, content)
            for piece in chain(more, pieces):
                made = primitives.add(draft.name, made, piece)
            return self._publish(path, primitives, options, _Draft(draft.name, made))

    @retried
    def _first_target(self, path: ParsedPath, existing: Existing, parents: Parents) -> WriteTarget:
        return self._target(path, existing, parents)

    def _counted_pieces(self, data: bytes | Iterable[bytes], credit_bytes: int) -> Iterator[bytes]:
        """Yield the chunks of *data* while there is room for them."""
        size = 0
        for piece in (data,) if isinstance(data, bytes) else data:
            self.account.require_room(size + len(piece) - credit_bytes, drafted_bytes=size)
            size += len(piece)
            yield piece

    @retried_and_translated
    def append(
        self, path: ParsedPath, data: bytes, *, limit: int | None, expect: str | None = None
    ) -> Change:
        """Append to a regular file that has no other name."""
        with self.account as account:
            primitives = self._require_open(path)
            resolved = self._find(path, Links.FOLLOW)
            found = resolved.result
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
                now = primitives.append(resolved.parts, found.stat, data)
            return Change(before_bytes=before, info=info_of(path.text, now))

    @retried_and_translated
    def touch(self, path: ParsedPath, modified_ns: int) -> FileInfo:
        """Set the modification time of a directory, or of a file that has no other name."""
        with self.account as account:
            primitives = self._require_open(path)
            resolved = self._find(path, Links.FOLLOW)
            found = resolved.result.stat
            if not stat.S_ISDIR(found.st_mode):
                if not stat.S_ISREG(found.st_mode):
                    raise not_a_file_error(found, path)
                require_one_name(found, path)
            account.charge(0, 0)
            account.record("touch", path.text)
            return info_of(path.text, primitives.touch(resolved.parts, found, modified_ns))

    @retried_and_translated
    def copy(self, path: ParsedPath, target: ParsedPath, *, existing: Existing, limit: int | None) -> Change:
        """Copy one regular file."""
        primitives = self._require_open(path)
        source = self._find(path, Links.FOLLOW)
        if not stat.S_ISREG(source.result.stat.st_mode):
            raise not_a_file_error(source.result.stat, path)
        size = source.result.stat.st_size
        if limit is not None and size > limit:
            raise size_limit_error("file_bytes", limit, size, path)
        before = self._target(target, existing, Parents.MAKE).before
        self.account.require_room(size - freed_bytes(before))
        with self._draft(primitives, begin=False) as draft:
            copied = primitives.copy(source.parts, draft.name, None if limit is None else limit + 1)
            if not isinstance(copied, Copied):
                raise ConcurrentChangeError
            if limit is not None and copied.draft.st_size > limit:
                raise size_limit_error("file_bytes", limit, copied.draft.st_size, path)
            cause = Cause("copy", path.text)
            options = _WriteOptions(existing, Parents.MAKE, None, copied.source.st_mode, cause)
            return self._publish(target, primitives, options, _Draft(draft.name, copied.draft))

    @retried_and_translated
    def mkdir(self, path: ParsedPath, *, parents: Parents) -> builtins.list[str]:
        """Create a directory and, if wanted, those above it; returns the paths of all that were created."""
        primitives = self._require_open(path)
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
                primitives.mkdirs(near, (*map(os.fsencode, missing), path.name))
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
            primitives = self._require_open(path)
            resolved = self._entry(path)
            before = resolved.result
            if existing is Existing.REPLACE:
                if path.must_dir:
                    raise os_error(errno.ENOTDIR)
                if before is not None and stat.S_ISDIR(before.stat.st_mode):
                    raise os_error(errno.EISDIR)
            elif before is not None:
                raise os_error(errno.EEXIST)
            elif path.must_dir:
                raise os_error(errno.ENOENT)
            account.charge(-freed_bytes(before), 1 if before is None else 0)
            account.record("link", path.text, other=target)
            with _marking_dirty(account):
                primitives.link(resolved.parts, os.fsencode(target), existing)

    # Removing and moving

    @retried_and_translated
    def remove(self, path: ParsedPath, *, expect: str | None = None) -> FileInfo:
        """Remove a file, a link (never its target) or an empty directory."""
        with self.account as account:
            primitives = self._require_open(path)
            parts, found = self._require_entry(path, expect)
            is_directory = stat.S_ISDIR(found.stat.st_mode)
            if is_directory and self._list_found(primitives, parts, "", None):
                raise os_error(errno.ENOTEMPTY)
            self._charge_removal(account, path, found)
            with _marking_dirty(account):
                (primitives.rmdir if is_directory else primitives.unlink)(parts)
            return info_of(path.text, found.stat)

    def _charge_removal(self, account: Account, path: ParsedPath, found: FoundEntry) -> None:
        info = info_of(path.text, found.stat)
        account.charge(-freed_bytes(found), -1)
        account.record("remove", path.text, before_bytes=info.size_bytes)

    @retried_and_translated
    def remove_tree(self, path: ParsedPath, *, expect: str | None = None) -> FileInfo:
        """Remove an entry and everything in it, one directory after the other."""
        with self.account as account:
            primitives = self._require_open(path)
            parts, found = self._require_entry(path, expect)
            if not stat.S_ISDIR(found.stat.st_mode):
                self._charge_removal(account, path, found)
                with _marking_dirty(account):
                    primitives.unlink(parts)
                return info_of(path.text, found.stat)
            usage, directories = self._count(primitives, parts, None, unreadable=OnUnreadable.REFUSE)
            account.charge(-usage.disk_bytes, -usage.entries - 1)
            account.record("remove", path.text, before_bytes=0)
            try:
                for directory in reversed(directories):
                    primitives.purge(directory)
            except BaseException:
                account.mark_dirty()
                raise
            return info_of(path.text, found.stat)

    @retried_and_translated
    def move(
        self, path: ParsedPath, target: ParsedPath, *, existing: Existing, expect: str | None = None
    ) -> FileInfo:
        """Rename within these files; a link is moved as a link."""
        with self.account:
            parts, found = self._require_entry(path, expect)
            self._move_to(target, parts, found, path, existing)
            return info_of(path.text, found.stat)

    @translated
    def _move_to(
        self, target: ParsedPath, parts: Parts, found: FoundEntry, source: ParsedPath, existing: Existing
    ) -> None:
        primitives = self._require_open(target)
        resolved = self._entry(target)
        is_directory = stat.S_ISDIR(found.stat.st_mode)
        if target.must_dir and not is_directory:
            raise os_error(errno.ENOTDIR)
        before = resolved.result
        if before is not None and existing is Existing.REFUSE:
            raise os_error(errno.EEXIST)
        if before is not None and identity(before.stat) == identity(found.stat):
            # rename() onto another name of the same file does nothing.
            return
        info = info_of(source.text, found.stat)
        account = self.account
        account.charge(-freed_bytes(before), 0 if before is None else -1, inode=info.inode)
        account.record(
            "move",
            source.text,
            other=target.text,
            before_bytes=info.size_bytes,
            after_bytes=info.size_bytes,
        )
        if problem := _move_problem(parts, resolved.parts, before, is_directory=is_directory):
            raise os_error(problem)
        with _marking_dirty(account):
            primitives.move(parts, resolved.parts, existing)

    # Publishing

    @retried
    def _publish(
        self, path: ParsedPath, primitives: FilePrimitives, options: _WriteOptions, content: bytes | _Draft
    ) -> Change:
        """Publish content at *path* and return what changed."""
        with self.account as account:
            self._require_open(path)
            target = self._target(path, options.existing, options.parents)
            before = target.before
            if options.expect is not None and target.missing:
                raise changed_error(target.path, None)
            require_version(target.path, before, options.expect)
            size = len(content) if isinstance(content, bytes) else content.made.st_size
            made = self._charge_write(account, target, size, options.cause)
            mode = options.mode if before is None else before.stat.st_mode
            with _marking_dirty(account):
                if target.missing:
                    primitives.mkdirs(target.near, target.parts[len(target.near) : -1])
                try:
                    now = _store(primitives, target.parts, content, mode, options.existing)
                except BaseException:
                    if not _remove_created(primitives, target):
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
        """Charge and record a write; returns the paths of the directories that it creates."""
        before = target.before
        made = parent_paths(target.path, len(target.missing))
        account.charge(size - freed_bytes(before), len(made) + (before is None))
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
    def _draft(self, primitives: FilePrimitives, *, begin: bool = True) -> Iterator[_Draft]:
        """Create a draft that is removed afterwards unless it was published."""
        name = new_draft()
        self._drafts.add(name)
        try:
            made = primitives.begin(name) if begin else os.stat_result((0,) * 10)
            yield _Draft(name, made)
        finally:
            with suppress(ContainerError, EngineError, OSError):
                primitives.discard(name)
            self._drafts.discard(name)


class _WriteOptions(NamedTuple):
    """Options of a write."""

    existing: Existing
    parents: Parents
    expect: str | None
    mode: int | None
    cause: Cause


def open_primitives(
    container: Container, root: str, *, user: str | None = None, timeout_seconds: float = ANSWER_SECONDS
) -> FilePrimitives:
    """Return primitives for the files beneath *root*: by a script in the container, or by Docker itself."""
    if not container.state().running:
        return ArchivePrimitives(container, root)
    agent = FileAgent(container, root, user=user, timeout_seconds=timeout_seconds)
    try:
        agent.start()
    except ContainerError as error:
        if error.code not in _NO_TOOLS:
            raise
    else:
        return ShellPrimitives(agent)
    return ArchivePrimitives(container, root)


def _store(
    primitives: FilePrimitives, parts: Parts, content: bytes | _Draft, mode: int | None, existing: Existing
) -> os.stat_result:
    if isinstance(content, bytes):
        return primitives.store(parts, content, mode, existing)
    return primitives.publish(content.name, content.made, parts, mode, existing)


@contextmanager
def _marking_dirty(account: Account) -> Iterator[None]:
    """Mark the account dirty if it is unknown whether a change was made."""
    try:
        yield
    except (ContainerError, EngineError, BlockingIOError):
        account.mark_dirty()
        raise


def _first_chunk(pieces: Iterator[bytes]) -> tuple[bytes, tuple[bytes, ...]]:
    """Collect as much as can be stored in one step; returns it and the first chunk beyond that, if any."""
    found = bytearray()
    for piece in pieces:
        if len(found) + len(piece) > PIECE_BYTES:
            return bytes(found), (piece,)
        found += piece
    return bytes(found), ()


def _remove_created(primitives: FilePrimitives, target: WriteTarget) -> bool:
    """Remove directories created for a failed write; returns whether all of them are gone."""
    for count in range(len(target.missing), 0, -1):
        try:
            primitives.rmdir(target.parts[: len(target.near) + count])
        except Exception:  # the caller raises the original error
            return False
    return True


def _move_problem(source: Parts, target: Parts, before: FoundEntry | None, *, is_directory: bool) -> int:
    """Return the errno that a kernel would raise for a move, or 0."""
    if is_directory and target[: len(source)] == source:
        return errno.EINVAL
    if source[: len(target)] == target:
        return errno.ENOTEMPTY
    if before is None or stat.S_ISDIR(before.stat.st_mode) == is_directory:
        return 0
    return errno.ENOTDIR if is_directory else errno.EISDIR
