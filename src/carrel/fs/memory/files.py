"""Files in memory: the `Files` protocol without a disk, for tests and for work that leaves nothing behind.

The answers and the errors are those of `Root`. There are no hard links, FIFOs, sockets or devices. The
permissions that count are the write bits of a file: one without any is read-only.
"""

from __future__ import annotations

import builtins
import errno
import time
from collections.abc import Iterable, Iterator
from threading import RLock
from typing import NamedTuple, NoReturn

from carrel.errors import (
    EscapeError,
    HostDeniedError,
    MissingError,
    PathError,
)
from carrel.fs.accounts import NullAccount
from carrel.fs.api import WRITE, Account, Cause, Content, Enter, Existing, Links, OnUnreadable, Parents, Wants
from carrel.fs.errors import changed_error, closed_error, not_on_disk_error, size_limit_error, translated
from carrel.fs.memory.tree import (
    FILE_MODE,
    Directory,
    File,
    Link,
    MemoryReader,
    MemoryTree,
    MemoryWalk,
    Node,
    describe,
    failure,
    inside,
    scan,
)
from carrel.fs.rules import MAX_LINKS
from carrel.paths.parsed_path import ParsedPath, child, entry_prefix, escapes, link_destination, parent_paths
from carrel.values import Change, Clock, FileInfo, FileKind, Limits, Named, Usage


class _Target(NamedTuple):
    """Where a write goes, and what is there."""

    where: ParsedPath
    near: Directory
    """The directory above it, or the deepest one on the way that exists."""
    missing: tuple[str, ...]
    """The names of the directories that are missing in between."""
    before: File | None


class MemoryFiles:
    """A tree of files that exists as long as this object is open."""

    def __init__(self, *, clock: Clock = time.time_ns) -> None:
        """Begin with an empty tree; *clock* gives the times of modification."""
        self._lock = RLock()
        self._tree: MemoryTree | None = MemoryTree(clock)
        self.account: Account = NullAccount()

    @property
    def confinement(self) -> str:
        """There is nothing outside to be reached."""
        return "memory"

    def close(self) -> None:
        """End all use; a running operation finishes first."""
        with self._lock:
            self._tree = None
        self.account = NullAccount()

    def subtree(self, names: tuple[str, ...]) -> NoReturn:
        """Refuse: only a directory of the host has subtrees."""
        raise not_on_disk_error()

    def host_path(self, where: ParsedPath, /) -> NoReturn:
        """Refuse: there is no path on the host."""
        raise not_on_disk_error()

    def unmediated_access(self) -> None:
        """Return `None`: no other program can change files in memory."""
        return

    # Reading

    @translated
    def read(
        self, where: ParsedPath, *, limit: int | None, offset: int = 0, length: int | None = None
    ) -> bytes:
        """Content of a regular file, whole or a window of it."""
        return self._read(where, limit, offset, length)[1]

    @translated
    def read_with_info(
        self, where: ParsedPath, *, limit: int | None, offset: int = 0, length: int | None = None
    ) -> tuple[FileInfo, bytes]:
        """The same with what the file is."""
        with self._lock:
            file, data = self._read(where, limit, offset, length)
            return describe(where.text, file), data

    def _read(
        self, where: ParsedPath, limit: int | None, offset: int, length: int | None
    ) -> tuple[File, bytes]:
        with self._lock:
            file = self._file(where)
            content = file.content
            wanted = max(0, len(content) - offset)
            if length is not None:
                wanted = min(wanted, length)
            if limit is not None and wanted > limit:
                raise size_limit_error("read_bytes", limit, wanted, where)
            return file, bytes(content[offset : offset + wanted])

    @translated
    def reader(self, where: ParsedPath) -> MemoryReader:
        """Open a regular file to be read by chunks."""
        with self._lock:
            file = self._file(where)
            return MemoryReader(file, describe(where.text, file), self._lock)

    @translated
    def stat(self, where: ParsedPath, links: Links) -> FileInfo:
        """What is there; a link that is kept shows its text."""
        with self._lock:
            node = self._use(where).resolve(where.parts, links, must_dir=where.must_dir)
            target = node.target if isinstance(node, Link) else None
            return describe(where.text, node, target, node.created_ns)

    @translated
    def list(self, where: ParsedPath, *, limit: int | None) -> builtins.list[FileInfo]:
        """The entries of a directory, sorted by name."""
        with self._lock:
            return scan(self._use(where).directory(where.parts), entry_prefix(where), limit)

    def names(self, where: ParsedPath, *, limit: int | None) -> Iterator[builtins.list[Named]]:
        """The names in a directory, each with its kind; all at a time, as that takes no time."""
        return iter([[(info.name, info.kind) for info in self.list(where, limit=limit)]])

    @translated
    def walk(
        self,
        where: ParsedPath,
        limits: Limits,
        *,
        unreadable: OnUnreadable = OnUnreadable.SKIP,
        enter: Enter | None = None,
    ) -> Iterator[FileInfo]:
        """Everything beneath a directory, parents first, never through a link; all of it is readable."""
        with self._lock:
            top = self._use(where).directory(where.parts)
        return MemoryWalk(self._lock, limits, enter).run(top, entry_prefix(where))

    def read_tree(
        self,
        where: ParsedPath,
        limits: Limits,
        *,
        enter: Wants | None,
        wants: Wants | None,
        chunk_bytes: int,
    ) -> Iterator[Content]:
        """The regular files beneath a directory, names in order, never through a link."""
        go_in = None if enter is None else lambda info: enter(info.name)
        found = self.walk(where, limits, enter=go_in)
        skip = len(entry_prefix(where))
        return (
            Content(info.path, self.reader(child(where, info.path[skip:])).chunks(chunk_bytes))
            for info in found
            if info.is_file and (wants is None or wants(info.name))
        )

    def measure(self, limit: int | None = None) -> Usage:
        """Count everything; what is in memory has a limit of its own."""
        with self._lock:
            nodes = [] if self._tree is None else list(inside(self._tree.top))
        disk_bytes = sum(len(node.content) for node in nodes if isinstance(node, File))
        return Usage(disk_bytes=disk_bytes, entries=len(nodes))

    # Writing

    @translated
    def write(
        self,
        where: ParsedPath,
        data: bytes | Iterable[bytes],
        *,
        existing: Existing,
        parents: Parents,
        expect: str | None = None,
        mode: int | None = None,
        cause: Cause = WRITE,
    ) -> Change:
        """Store *data* at once or not at all, through a link at the end if it stays inside."""
        content = data if isinstance(data, bytes) else self._collect(where, data, existing, parents)
        with self.account, self._lock:
            target = self._target(where, existing, parents)
            _require_version(where, target.before, expect)
            return self._publish(content, target, mode, cause)

    def _collect(
        self, where: ParsedPath, data: Iterable[bytes], existing: Existing, parents: Parents
    ) -> bytes:
        """Take in content piece by piece, if it can be written at all and as long as there is room."""
        with self._lock:
            target = self._target(where, existing, parents)
        freed = 0 if target.before is None else len(target.before.content)
        content = bytearray()
        for piece in data:
            content += piece
            self.account.require_room(len(content) - freed)
        return bytes(content)

    @translated
    def append(
        self, where: ParsedPath, data: bytes, *, limit: int | None, expect: str | None = None
    ) -> Change:
        """Add to a regular file."""
        with self.account as account, self._lock:
            file = self._file(where)
            _require_version(where, file, expect)
            _require_write_bit(file, where)
            size = len(file.content)
            after = size + len(data)
            if limit is not None and after > limit:
                raise size_limit_error("file_bytes", limit, after, where)
            account.charge(len(data), 0)
            account.record("append", where.text, before_bytes=size, after_bytes=after)
            self._use(where).append(file, data)
            return Change(before_bytes=size, info=describe(where.text, file))

    @translated
    def touch(self, where: ParsedPath, modified_ns: int) -> FileInfo:
        """Set when a file or directory was changed last."""
        with self.account as account, self._lock:
            node = self._use(where).resolve(where.parts, Links.FOLLOW, must_dir=where.must_dir)
            account.charge(0, 0)
            account.record("touch", where.text)
            node.modified_ns = node.accessed_ns = modified_ns
            return describe(where.text, node)

    @translated
    def copy(self, where: ParsedPath, target: ParsedPath, *, existing: Existing, limit: int | None) -> Change:
        """Copy one regular file."""
        with self.account, self._lock:
            source = self._file(where)
            size = len(source.content)
            if limit is not None and size > limit:
                raise size_limit_error("file_bytes", limit, size, where)
            place = self._target(target, existing, Parents.MAKE)
            return self._publish(bytes(source.content), place, source.mode, Cause("copy", where.text))

    @translated
    def mkdir(self, where: ParsedPath, *, parents: Parents) -> builtins.list[str]:
        """Make a directory and, if wanted, those above it."""
        with self.account as account, self._lock:
            tree = self._use(where)
            if where.dotted:
                tree.directory(where.parts)
                return []
            near, missing = self._nearest(where, parents)
            if not missing and where.parts[-1] in near.entries:
                if not self._is_directory(where):
                    raise failure(errno.EEXIST)
                return []
            paths = [*parent_paths(where, len(missing)), where.text]
            account.charge(0, len(paths))
            for path in paths:
                account.record("mkdir", path)
            tree.make(near, (*missing, where.parts[-1]))
            return paths

    def _is_directory(self, where: ParsedPath) -> bool:
        try:
            self._use(where).directory(where.parts)
        except OSError:
            return False
        return True

    @translated
    def link(self, where: ParsedPath, target: str, *, existing: Existing = Existing.REFUSE) -> None:
        """Make a link that leads neither to an absolute path nor, read as text, out of the root."""
        if escapes(where, target):
            raise EscapeError(
                f"a link at {where.requested!r} would lead out: it escapes session workspace",
                path=where.requested,
            )
        self._put_link(where, target, existing)

    @translated
    def plant(self, where: ParsedPath, target: str) -> None:
        """Make a link with any text, as somebody beneath the gate could."""
        self._put_link(where, target, Existing.REFUSE)

    def _put_link(self, where: ParsedPath, target: str, existing: Existing) -> None:
        with self.account as account, self._lock:
            tree = self._use(where)
            parent = self._parent(where)
            old = parent.entries.get(where.parts[-1])
            if problem := _link_problem(where, old, existing):
                raise failure(problem)
            account.charge(-_size(old), 1 if old is None else 0)
            account.record("link", where.text, other=target)
            tree.put(parent, where.parts[-1], tree.new_link(target))

    # Removing and moving

    @translated
    def remove(self, where: ParsedPath, *, expect: str | None = None) -> FileInfo:
        """Remove a file, a link (never its target) or an empty directory."""
        return self._remove(where, expect, recursive=False)

    @translated
    def remove_tree(self, where: ParsedPath, *, expect: str | None = None) -> FileInfo:
        """Remove whatever is there, with everything in it."""
        return self._remove(where, expect, recursive=True)

    def _remove(self, where: ParsedPath, expect: str | None, *, recursive: bool) -> FileInfo:
        with self.account as account, self._lock:
            parent = self._parent(where)
            node = _require_entry(parent, where)
            _require_version(where, node, expect)
            if isinstance(node, Directory) and node.entries and not recursive:
                raise failure(errno.ENOTEMPTY)
            info = describe(where.text, node)
            nodes = [node, *inside(node)]
            account.charge(-sum(_size(each) for each in nodes), -len(nodes))
            account.record("remove", where.text, before_bytes=info.size_bytes)
            self._use(where).remove(parent, where.parts[-1])
            return info

    @translated
    def move(
        self, where: ParsedPath, target: ParsedPath, *, existing: Existing, expect: str | None = None
    ) -> FileInfo:
        """Rename within this tree; a link moves as a link."""
        with self.account, self._lock:
            parent = self._parent(where)
            node = _require_entry(parent, where)
            _require_version(where, node, expect)
            info = describe(where.text, node)
            self._move_to(target, parent, info, existing)
            return info

    @translated
    def _move_to(self, target: ParsedPath, parent: Directory, info: FileInfo, existing: Existing) -> None:
        target_parent = self._parent(target)
        if target.must_dir and info.kind is not FileKind.DIRECTORY:
            raise failure(errno.ENOTDIR)
        before = target_parent.entries.get(target.parts[-1])
        if before is not None and existing is Existing.REFUSE:
            raise failure(errno.EEXIST)
        replaces = before is not None and before is not parent.entries[info.name]
        self.account.charge(-_size(before) if replaces else 0, -1 if replaces else 0)
        self.account.record(
            "move",
            info.path,
            other=target.text,
            before_bytes=info.size_bytes,
            after_bytes=info.size_bytes,
        )
        self._use(target).rename(parent, info.name, target_parent, target.parts[-1], existing)

    # Resolving, with the lock held

    def _use(self, where: ParsedPath) -> MemoryTree:
        tree = self._tree
        if tree is None:
            raise closed_error(where)
        return tree

    def _file(self, where: ParsedPath) -> File:
        """The regular file that *where* leads to."""
        node = self._use(where).resolve(where.parts, Links.FOLLOW, must_dir=where.must_dir)
        if not isinstance(node, File):
            raise failure(errno.EISDIR)
        return node

    @translated
    def _parent(self, where: ParsedPath) -> Directory:
        """The directory that holds the last name of *where*."""
        tree = self._use(where)
        if not where.name:
            self._require_inside(where)
            raise PathError(f"path {where.requested!r} does not end in a name", path=where.requested)
        return tree.directory(where.parts[:-1])

    def _require_inside(self, where: ParsedPath) -> None:
        """Raise for a path that leads out, whatever else is wrong with it."""
        try:
            self._use(where).directory(where.parts)
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise

    def _publish(self, content: bytes, target: _Target, mode: int | None, cause: Cause) -> Change:
        """Put the whole content in its place and say what changed."""
        where, near, missing, before = target
        account = self.account
        made = parent_paths(where, len(missing))
        tree = self._use(where)
        before_bytes = None if before is None else len(before.content)
        account.charge(len(content) - (before_bytes or 0), len(made) + (before is None))
        for path in made:
            account.record("mkdir", path)
        account.record(
            cause.operation,
            cause.source or where.text,
            other=None if cause.source is None else where.text,
            before_bytes=before_bytes,
            after_bytes=len(content),
        )
        keep = mode if before is None else before.mode
        fresh = tree.new_file(content, FILE_MODE if keep is None else keep & 0o777)
        tree.put(tree.make(near, missing), where.parts[-1], fresh)
        return Change(before_bytes=before_bytes, info=describe(where.text, fresh), made=tuple(made))

    @translated
    def _target(self, where: ParsedPath, existing: Existing, parents: Parents) -> _Target:
        """The place to write to: *where*, or where the links at its end lead."""
        for _ in range(MAX_LINKS + 1):
            if where.must_dir and where.name:
                self._require_inside(where)
                raise failure(errno.EISDIR)
            near, missing = self._nearest(where, parents)
            before = None if missing else near.entries.get(where.parts[-1])
            if not isinstance(before, Link) or existing is Existing.REFUSE:
                return _Target(where, near, missing, _require_writable(before, where, existing))
            where = link_destination(where, before.target)
            if where.absolute:
                raise failure(errno.EXDEV)
            if where.dotted:
                self._use(where).directory(where.parts)
                raise failure(errno.EISDIR)
        raise failure(errno.ELOOP)

    def _nearest(self, where: ParsedPath, parents: Parents) -> tuple[Directory, tuple[str, ...]]:
        """The directory above *where*, or if it may be made: the deepest one, and what is missing."""
        try:
            return self._parent(where), ()
        except MissingError:
            if parents is Parents.REQUIRE or not where.name:
                raise
        parts = where.parts[:-1]
        known, here = self._use(where).longest_prefix(parts)
        if ".." in parts[known:]:
            raise failure(errno.ENOENT)
        if parts[known] in here.entries:
            raise failure(errno.ENOTDIR)
        return here, parts[known:]


def _require_entry(parent: Directory, where: ParsedPath) -> Node:
    """What stands at the last name; a slash after anything but a directory is refused."""
    node = parent.entries.get(where.parts[-1])
    if node is None:
        raise failure(errno.ENOENT)
    if where.must_dir and not isinstance(node, Directory):
        raise failure(errno.ENOTDIR)
    return node


def _link_problem(where: ParsedPath, old: Node | None, existing: Existing) -> int:
    """Why no link can be put there, as an errno, or 0."""
    if existing is Existing.REPLACE:
        if where.must_dir:
            return errno.ENOTDIR
        return errno.EISDIR if isinstance(old, Directory) else 0
    if old is not None:
        return errno.EEXIST
    return errno.ENOENT if where.must_dir else 0


def _require_writable(before: Node | None, where: ParsedPath, existing: Existing) -> File | None:
    """What may be replaced, if anything is there."""
    if before is None:
        return None
    if existing is Existing.REFUSE:
        raise failure(errno.EEXIST)
    if not isinstance(before, File):
        raise failure(errno.EISDIR)
    _require_write_bit(before, where)
    return before


def _require_write_bit(file: File, where: ParsedPath) -> None:
    if not file.mode & 0o222:
        raise HostDeniedError(f"permission denied: {where.requested!r} is read-only", path=where.requested)


def _require_version(where: ParsedPath, found: Node | None, expect: str | None) -> None:
    if expect is None:
        return
    version = None if found is None else describe("", found).version
    if version != expect:
        raise changed_error(where, version)


def _size(node: Node | None) -> int:
    return len(node.content) if isinstance(node, File) else 0
