"""`MemoryFiles`: the `Files` protocol without a disk, for tests and for work that leaves nothing behind.

Results and errors are those of `Root`. There are no hard links, FIFOs, sockets or devices. The only
permissions that matter are the write bits of a file: without any, it is read-only.
"""

from __future__ import annotations

import builtins
import errno
import time
from collections.abc import Iterable, Iterator
from threading import RLock
from typing import NamedTuple, NoReturn

from carrel.errors import EscapeError, HostDeniedError, MissingError, PathError
from carrel.fs.accounts import NullAccount
from carrel.fs.api import WRITE, Account, Cause, Content, Enter, Existing, Links, OnUnreadable, Parents, Wants
from carrel.fs.errors import (
    changed_error,
    closed_error,
    not_on_disk_error,
    os_error,
    size_limit_error,
    translated,
)
from carrel.fs.memory.tree import (
    FILE_MODE,
    Directory,
    File,
    Link,
    MemoryReader,
    MemoryTree,
    MemoryWalk,
    Node,
    descendants,
    describe,
    scan,
)
from carrel.fs.rules import MAX_LINKS
from carrel.paths.parsed_path import ParsedPath, child, entry_prefix, escapes, link_destination, parent_paths
from carrel.values import Change, Clock, FileInfo, FileKind, Limits, Named, Usage


class _Target(NamedTuple):
    """Where a write goes, and what exists there."""

    path: ParsedPath
    near: Directory
    """The parent directory, or the deepest directory on the way to it that exists."""
    missing: tuple[str, ...]
    """The names of the directories between `near` and the target that do not exist."""
    before: File | None


class MemoryFiles:
    """A tree of files that exists until this object is closed."""

    def __init__(self, *, clock: Clock = time.time_ns) -> None:
        """Create an empty tree; *clock* provides the modification times."""
        self._lock = RLock()
        self._tree: MemoryTree | None = MemoryTree(clock)
        self.account: Account = NullAccount()

    @property
    def confinement(self) -> str:
        """Always `memory`: there is nothing outside the tree."""
        return "memory"

    def close(self) -> None:
        """End all use; a running operation finishes first."""
        with self._lock:
            self._tree = None
        self.account = NullAccount()

    def subtree(self, names: tuple[str, ...]) -> NoReturn:
        """Refuse: only a directory of the host has subtrees."""
        raise not_on_disk_error()

    def host_path(self, path: ParsedPath, /) -> NoReturn:
        """Refuse: there is no path on the host."""
        raise not_on_disk_error()

    def unmediated_access(self) -> None:
        """Return `None`: no other program can change files in memory."""
        return

    # Reading

    @translated
    def read(
        self, path: ParsedPath, *, limit: int | None, offset: int = 0, length: int | None = None
    ) -> bytes:
        """Read a regular file, whole or a window of it."""
        return self._read(path, limit, offset, length)[1]

    @translated
    def read_with_info(
        self, path: ParsedPath, *, limit: int | None, offset: int = 0, length: int | None = None
    ) -> tuple[FileInfo, bytes]:
        """Read a file like `read`, and return its info."""
        with self._lock:
            file, data = self._read(path, limit, offset, length)
            return describe(path.text, file), data

    def _read(
        self, path: ParsedPath, limit: int | None, offset: int, length: int | None
    ) -> tuple[File, bytes]:
        with self._lock:
            file = self._file(path)
            content = file.content
            wanted = max(0, len(content) - offset)
            if length is not None:
                wanted = min(wanted, length)
            if limit is not None and wanted > limit:
                raise size_limit_error("read_bytes", limit, wanted, path)
            return file, bytes(content[offset : offset + wanted])

    @translated
    def reader(self, path: ParsedPath) -> MemoryReader:
        """Open a regular file for reading in chunks."""
        with self._lock:
            file = self._file(path)
            return MemoryReader(file, describe(path.text, file), self._lock)

    @translated
    def stat(self, path: ParsedPath, links: Links) -> FileInfo:
        """Return the info of one entry; a link that is not followed has its target text."""
        with self._lock:
            node = self._require_open(path).resolve(path.parts, links, must_dir=path.must_dir)
            target = node.target if isinstance(node, Link) else None
            return describe(path.text, node, target, node.created_ns)

    @translated
    def list(self, path: ParsedPath, *, limit: int | None) -> builtins.list[FileInfo]:
        """List the entries of a directory, sorted by name."""
        with self._lock:
            return scan(self._require_open(path).directory(path.parts), entry_prefix(path), limit)

    def names(self, path: ParsedPath, *, limit: int | None) -> Iterator[builtins.list[Named]]:
        """List the names in a directory with their kinds, all in one batch."""
        return iter([[(info.name, info.kind) for info in self.list(path, limit=limit)]])

    @translated
    def walk(
        self,
        path: ParsedPath,
        limits: Limits,
        *,
        unreadable: OnUnreadable = OnUnreadable.SKIP,
        enter: Enter | None = None,
    ) -> Iterator[FileInfo]:
        """Walk everything beneath a directory, parents first, never through a link; nothing is unreadable."""
        with self._lock:
            top = self._require_open(path).directory(path.parts)
        return MemoryWalk(self._lock, limits, enter).run(top, entry_prefix(path))

    def read_tree(
        self,
        path: ParsedPath,
        limits: Limits,
        *,
        enter: Wants | None,
        wants: Wants | None,
        chunk_bytes: int,
    ) -> Iterator[Content]:
        """Read the regular files beneath a directory, in order of their names, never through a link."""
        enter_info = None if enter is None else lambda info: enter(info.name)
        found = self.walk(path, limits, enter=enter_info)
        skip = len(entry_prefix(path))
        return (
            Content(info.path, self.reader(child(path, info.path[skip:])).chunks(chunk_bytes))
            for info in found
            if info.is_file and (wants is None or wants(info.name))
        )

    def measure(self, limit: int | None = None) -> Usage:
        """Count everything; *limit* is ignored, because memory already bounds the number of entries."""
        with self._lock:
            nodes = [] if self._tree is None else list(descendants(self._tree.top))
        disk_bytes = sum(len(node.content) for node in nodes if isinstance(node, File))
        return Usage(disk_bytes=disk_bytes, entries=len(nodes))

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
        content = data if isinstance(data, bytes) else self._collect_chunks(path, data, existing, parents)
        with self.account, self._lock:
            target = self._target(path, existing, parents)
            _require_version(path, target.before, expect)
            return self._publish(content, target, mode, cause)

    def _collect_chunks(
        self, path: ParsedPath, data: Iterable[bytes], existing: Existing, parents: Parents
    ) -> bytes:
        """Collect content chunk by chunk, if the target is writable and while there is room."""
        with self._lock:
            target = self._target(path, existing, parents)
        freed = 0 if target.before is None else len(target.before.content)
        content = bytearray()
        for chunk in data:
            content += chunk
            self.account.require_room(len(content) - freed)
        return bytes(content)

    @translated
    def append(
        self, path: ParsedPath, data: bytes, *, limit: int | None, expect: str | None = None
    ) -> Change:
        """Append to a regular file."""
        with self.account as account, self._lock:
            file = self._file(path)
            _require_version(path, file, expect)
            _require_write_bit(file, path)
            size = len(file.content)
            after = size + len(data)
            if limit is not None and after > limit:
                raise size_limit_error("file_bytes", limit, after, path)
            account.charge(len(data), 0)
            account.record("append", path.text, before_bytes=size, after_bytes=after)
            self._require_open(path).append(file, data)
            return Change(before_bytes=size, info=describe(path.text, file))

    @translated
    def touch(self, path: ParsedPath, modified_ns: int) -> FileInfo:
        """Set the modification time of a file or directory."""
        with self.account as account, self._lock:
            node = self._require_open(path).resolve(path.parts, Links.FOLLOW, must_dir=path.must_dir)
            account.charge(0, 0)
            account.record("touch", path.text)
            node.modified_ns = node.accessed_ns = modified_ns
            return describe(path.text, node)

    @translated
    def copy(self, path: ParsedPath, target: ParsedPath, *, existing: Existing, limit: int | None) -> Change:
        """Copy one regular file."""
        with self.account, self._lock:
            source = self._file(path)
            size = len(source.content)
            if limit is not None and size > limit:
                raise size_limit_error("file_bytes", limit, size, path)
            found = self._target(target, existing, Parents.MAKE)
            return self._publish(bytes(source.content), found, source.mode, Cause("copy", path.text))

    @translated
    def mkdir(self, path: ParsedPath, *, parents: Parents) -> builtins.list[str]:
        """Create a directory and, if wanted, those above it; returns the paths of all that were created."""
        with self.account as account, self._lock:
            tree = self._require_open(path)
            if path.dotted:
                tree.directory(path.parts)
                return []
            near, missing = self._nearest_directory(path, parents)
            if not missing and path.parts[-1] in near.entries:
                if not self._is_directory(path):
                    raise os_error(errno.EEXIST)
                return []
            created = [*parent_paths(path, len(missing)), path.text]
            account.charge(0, len(created))
            for each in created:
                account.record("mkdir", each)
            tree.mkdirs(near, (*missing, path.parts[-1]))
            return created

    def _is_directory(self, path: ParsedPath) -> bool:
        try:
            self._require_open(path).directory(path.parts)
        except OSError:
            return False
        return True

    @translated
    def link(self, path: ParsedPath, target: str, *, existing: Existing = Existing.REFUSE) -> None:
        """Create a link whose target is neither absolute nor, as text, above the root."""
        if escapes(path, target):
            raise EscapeError(
                f"a link at {path.requested!r} would lead out: it escapes session workspace",
                path=path.requested,
            )
        self._put_link(path, target, existing)

    @translated
    def plant(self, path: ParsedPath, target: str) -> None:
        """Create a link with any text, as a program that bypasses the gate could."""
        self._put_link(path, target, Existing.REFUSE)

    def _put_link(self, path: ParsedPath, target: str, existing: Existing) -> None:
        with self.account as account, self._lock:
            tree = self._require_open(path)
            parent = self._parent(path)
            old = parent.entries.get(path.parts[-1])
            if problem := _link_problem(path, old, existing):
                raise os_error(problem)
            account.charge(-_size(old), 1 if old is None else 0)
            account.record("link", path.text, other=target)
            tree.put(parent, path.parts[-1], tree.new_link(target))

    # Removing and moving

    @translated
    def remove(self, path: ParsedPath, *, expect: str | None = None) -> FileInfo:
        """Remove a file, a link (never its target) or an empty directory."""
        return self._remove(path, expect, recursive=False)

    @translated
    def remove_tree(self, path: ParsedPath, *, expect: str | None = None) -> FileInfo:
        """Remove an entry and everything in it."""
        return self._remove(path, expect, recursive=True)

    def _remove(self, path: ParsedPath, expect: str | None, *, recursive: bool) -> FileInfo:
        with self.account as account, self._lock:
            parent = self._parent(path)
            node = _require_entry(parent, path)
            _require_version(path, node, expect)
            if isinstance(node, Directory) and node.entries and not recursive:
                raise os_error(errno.ENOTEMPTY)
            info = describe(path.text, node)
            nodes = [node, *descendants(node)]
            account.charge(-sum(_size(each) for each in nodes), -len(nodes))
            account.record("remove", path.text, before_bytes=info.size_bytes)
            self._require_open(path).remove(parent, path.parts[-1])
            return info

    @translated
    def move(
        self, path: ParsedPath, target: ParsedPath, *, existing: Existing, expect: str | None = None
    ) -> FileInfo:
        """Rename within this tree; a link is moved as a link."""
        with self.account, self._lock:
            parent = self._parent(path)
            node = _require_entry(parent, path)
            _require_version(path, node, expect)
            info = describe(path.text, node)
            self._move_to(target, parent, info, existing)
            return info

    @translated
    def _move_to(self, target: ParsedPath, parent: Directory, info: FileInfo, existing: Existing) -> None:
        target_parent = self._parent(target)
        if target.must_dir and info.kind is not FileKind.DIRECTORY:
            raise os_error(errno.ENOTDIR)
        before = target_parent.entries.get(target.parts[-1])
        if before is not None and existing is Existing.REFUSE:
            raise os_error(errno.EEXIST)
        replaces = before is not None and before is not parent.entries[info.name]
        self.account.charge(-_size(before) if replaces else 0, -1 if replaces else 0)
        self.account.record(
            "move",
            info.path,
            other=target.text,
            before_bytes=info.size_bytes,
            after_bytes=info.size_bytes,
        )
        self._require_open(target).rename(parent, info.name, target_parent, target.parts[-1], existing)

    # Resolving, with the lock held

    def _require_open(self, path: ParsedPath) -> MemoryTree:
        tree = self._tree
        if tree is None:
            raise closed_error(path)
        return tree

    def _file(self, path: ParsedPath) -> File:
        """Return the regular file that *path* leads to."""
        node = self._require_open(path).resolve(path.parts, Links.FOLLOW, must_dir=path.must_dir)
        if not isinstance(node, File):
            raise os_error(errno.EISDIR)
        return node

    @translated
    def _parent(self, path: ParsedPath) -> Directory:
        """Return the directory that holds the last name of *path*."""
        tree = self._require_open(path)
        if not path.name:
            self._require_descendants(path)
            raise PathError(f"path {path.requested!r} does not end in a name", path=path.requested)
        return tree.directory(path.parts[:-1])

    def _require_descendants(self, path: ParsedPath) -> None:
        """Raise EXDEV for a path that leads out, and ignore any other problem with it."""
        try:
            self._require_open(path).directory(path.parts)
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise

    def _publish(self, content: bytes, target: _Target, mode: int | None, cause: Cause) -> Change:
        """Store the content at its target and return what changed."""
        path, near, missing, before = target
        account = self.account
        made = parent_paths(path, len(missing))
        tree = self._require_open(path)
        before_bytes = None if before is None else len(before.content)
        account.charge(len(content) - (before_bytes or 0), len(made) + (before is None))
        for each in made:
            account.record("mkdir", each)
        account.record(
            cause.operation,
            cause.source or path.text,
            other=None if cause.source is None else path.text,
            before_bytes=before_bytes,
            after_bytes=len(content),
        )
        keep = mode if before is None else before.mode
        fresh = tree.new_file(content, FILE_MODE if keep is None else keep & 0o777)
        tree.put(tree.mkdirs(near, missing), path.parts[-1], fresh)
        return Change(before_bytes=before_bytes, info=describe(path.text, fresh), made=tuple(made))

    @translated
    def _target(self, path: ParsedPath, existing: Existing, parents: Parents) -> _Target:
        """Find where a write to *path* goes, through links at its end."""
        for _ in range(MAX_LINKS + 1):
            if path.must_dir and path.name:
                self._require_descendants(path)
                raise os_error(errno.EISDIR)
            near, missing = self._nearest_directory(path, parents)
            before = None if missing else near.entries.get(path.parts[-1])
            if not isinstance(before, Link) or existing is Existing.REFUSE:
                return _Target(path, near, missing, _require_writable(before, path, existing))
            path = link_destination(path, before.target)
            if path.absolute:
                raise os_error(errno.EXDEV)
            if path.dotted:
                self._require_open(path).directory(path.parts)
                raise os_error(errno.EISDIR)
        raise os_error(errno.ELOOP)

    def _nearest_directory(self, path: ParsedPath, parents: Parents) -> tuple[Directory, tuple[str, ...]]:
        """Return the parent directory of *path*, or the deepest one that exists and the missing names."""
        try:
            return self._parent(path), ()
        except MissingError:
            if parents is Parents.REQUIRE or not path.name:
                raise
        parts = path.parts[:-1]
        known, here = self._require_open(path).longest_prefix(parts)
        if ".." in parts[known:]:
            raise os_error(errno.ENOENT)
        if parts[known] in here.entries:
            raise os_error(errno.ENOTDIR)
        return here, parts[known:]


def _require_entry(parent: Directory, path: ParsedPath) -> Node:
    """Return what exists at the last name; a slash after anything but a directory is refused."""
    node = parent.entries.get(path.parts[-1])
    if node is None:
        raise os_error(errno.ENOENT)
    if path.must_dir and not isinstance(node, Directory):
        raise os_error(errno.ENOTDIR)
    return node


def _link_problem(path: ParsedPath, old: Node | None, existing: Existing) -> int:
    """Return the errno that forbids a link there, or 0."""
    if existing is Existing.REPLACE:
        if path.must_dir:
            return errno.ENOTDIR
        return errno.EISDIR if isinstance(old, Directory) else 0
    if old is not None:
        return errno.EEXIST
    return errno.ENOENT if path.must_dir else 0


def _require_writable(before: Node | None, path: ParsedPath, existing: Existing) -> File | None:
    """Return the file to be replaced, if any, or refuse."""
    if before is None:
        return None
    if existing is Existing.REFUSE:
        raise os_error(errno.EEXIST)
    if not isinstance(before, File):
        raise os_error(errno.EISDIR)
    _require_write_bit(before, path)
    return before


def _require_write_bit(file: File, path: ParsedPath) -> None:
    if not file.mode & 0o222:
        raise HostDeniedError(f"permission denied: {path.requested!r} is read-only", path=path.requested)


def _require_version(path: ParsedPath, found: Node | None, expect: str | None) -> None:
    if expect is None:
        return
    version = None if found is None else describe("", found).version
    if version != expect:
        raise changed_error(path, version)


def _size(node: Node | None) -> int:
    return len(node.content) if isinstance(node, File) else 0
