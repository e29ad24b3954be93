"""The tree behind `MemoryFiles`: its nodes, path resolution, renaming, walking and reading.

It fails as the kernel does beneath a root, with an `OSError`: EXDEV for a path that leads out, ELOOP after 40
links; `..` is relative to where the names before it led. The caller holds the lock.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from threading import RLock

from carrel.fs.api import Enter, Existing, Links
from carrel.fs.errors import depth_limit_error, list_limit_error, os_error, walk_limit_error
from carrel.fs.rules import MAX_LINKS, skip_missing
from carrel.values import Clock, FileInfo, FileKind, Limits

FILE_MODE = 0o644
DIRECTORY_MODE = 0o755
LINK_MODE = 0o777


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    """Base of every entry."""

    inode: int
    mode: int
    modified_ns: int
    created_ns: int
    accessed_ns: int
    """When the entry was created or touched; reading does not change it."""


@dataclass(slots=True, kw_only=True, eq=False)
class File(Node):
    """A regular file; a replaced one keeps its content for readers that are still open."""

    content: bytearray


@dataclass(slots=True, kw_only=True, eq=False)
class Link(Node):
    """A symbolic link."""

    target: str


@dataclass(slots=True, kw_only=True, eq=False)
class Directory(Node):
    """A directory; only the top has no parent."""

    parent: Directory | None = None
    entries: dict[str, Node] = field(default_factory=dict)
    removed: bool = False


class MemoryTree:
    """A top directory and everything beneath it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._inodes = count(1)
        self.top = self.new_directory()

    def new_file(self, content: bytes, mode: int) -> File:
        """Create a file without a name yet."""
        now = self._clock()
        return File(
            inode=next(self._inodes),
            mode=mode,
            modified_ns=now,
            created_ns=now,
            accessed_ns=now,
            content=bytearray(content),
        )

    def new_directory(self) -> Directory:
        """Create a directory without a name yet."""
        now = self._clock()
        return Directory(
            inode=next(self._inodes), mode=DIRECTORY_MODE, modified_ns=now, created_ns=now, accessed_ns=now
        )

    def new_link(self, target: str) -> Link:
        """Create a link without a name yet."""
        now = self._clock()
        return Link(
            inode=next(self._inodes),
            mode=LINK_MODE,
            modified_ns=now,
            created_ns=now,
            accessed_ns=now,
            target=target,
        )

    def resolve(self, parts: tuple[str, ...], links: Links, *, must_dir: bool) -> Node:
        """Resolve *parts* from the top, following a link at the end unless *links* says otherwise."""
        todo = list(reversed(parts))
        here: Node = self.top
        followed = 0
        missing: OSError | None = None
        while todo:
            name = todo.pop()
            directory = _require_directory(here)
            found = _child(directory, name)
            if found is None or (todo and isinstance(found, File)):
                missing = missing or os_error(errno.ENOENT if found is None else errno.ENOTDIR)
                if not skip_missing(todo, ".."):
                    raise missing
                continue
            if not isinstance(found, Link) or not (todo or must_dir or links is Links.FOLLOW):
                here = found
                continue
            followed += 1
            if followed > MAX_LINKS:
                raise missing or os_error(errno.ELOOP)
            if found.target.startswith("/"):
                raise os_error(errno.EXDEV)
            must_dir = must_dir or (not todo and found.target.endswith(("/", "/.")))
            todo.extend(part for part in reversed(found.target.split("/")) if part not in ("", "."))
            here = directory
        if missing:
            raise missing
        return _require_directory(here) if must_dir else here

    def directory(self, parts: tuple[str, ...]) -> Directory:
        """Return the directory that *parts* lead to."""
        return _require_directory(self.resolve(parts, Links.FOLLOW, must_dir=True))

    def longest_prefix(self, parts: tuple[str, ...]) -> tuple[int, Directory]:
        """Return how many of *parts* lead to an existing directory, and that directory."""
        for known in range(len(parts), 0, -1):
            try:
                return known, self.directory(parts[:known])
            except FileNotFoundError:
                continue
        return 0, self.top

    def put(self, parent: Directory, name: str, node: Node) -> None:
        """Give *node* a name, replacing any other node; ENOENT if *parent* was removed."""
        if parent.removed:
            raise os_error(errno.ENOENT)
        if isinstance(node, Directory):
            node.parent = parent
        parent.entries[name] = node
        parent.modified_ns = self._clock()

    def remove(self, parent: Directory, name: str) -> None:
        """Remove *name* and everything beneath it."""
        _discard(parent.entries.pop(name))
        parent.modified_ns = self._clock()

    def mkdirs(self, near: Directory, missing: tuple[str, ...]) -> Directory:
        """Create the nested directories *missing* and return the last one."""
        for name in missing:
            fresh = self.new_directory()
            self.put(near, name, fresh)
            near = fresh
        return near

    def append(self, file: File, data: bytes) -> None:
        """Append *data* to the content."""
        if data:
            file.content += data
            file.modified_ns = self._clock()

    def rename(
        self, parent: Directory, name: str, new_parent: Directory, new_name: str, existing: Existing
    ) -> None:
        """Move an entry, with the errors of `renameat2`."""
        node = parent.entries[name]
        old = new_parent.entries.get(new_name)
        if old is not None and existing is Existing.REFUSE:
            raise os_error(errno.EEXIST)
        if node in _self_and_parents(new_parent):
            raise os_error(errno.EINVAL)
        if old in _self_and_parents(parent):
            raise os_error(errno.ENOTEMPTY)
        if old is node:
            return
        if old is not None:
            _require_replaceable(node, old)
            _discard(old)
        del parent.entries[name]
        parent.modified_ns = self._clock()
        self.put(new_parent, new_name, node)


def descendants(node: Node) -> Iterator[Node]:
    """Yield everything beneath *node*."""
    todo = list(node.entries.values()) if isinstance(node, Directory) else []
    while todo:
        found = todo.pop()
        yield found
        if isinstance(found, Directory):
            todo.extend(found.entries.values())


def describe(path: str, node: Node, target: str | None = None, created_ns: int | None = None) -> FileInfo:
    """Return the `FileInfo` of *node*."""
    kind, size = FileKind.DIRECTORY, 0
    if isinstance(node, File):
        kind, size = FileKind.FILE, len(node.content)
    elif isinstance(node, Link):
        kind, size = FileKind.LINK, len(os.fsencode(node.target))
    return FileInfo(
        path=path,
        kind=kind,
        size_bytes=size,
        modified_ns=node.modified_ns,
        mode=node.mode,
        links=1,
        inode=node.inode,
        target=target,
        host_bytes=size,
        blocks=-(-size // 512),
        accessed_ns=node.accessed_ns,
        created_ns=created_ns,
    )


def _child(directory: Directory, name: str) -> Node | None:
    if name == "..":
        if directory.parent is None:
            raise os_error(errno.EXDEV)
        return directory.parent
    return directory.entries.get(name)


def _require_directory(node: Node) -> Directory:
    if not isinstance(node, Directory):
        raise os_error(errno.ENOTDIR)
    return node


def _self_and_parents(directory: Directory) -> Iterator[Node | None]:
    """Yield the directory and all above it."""
    here: Directory | None = directory
    while here is not None:
        yield here
        here = here.parent


def _require_replaceable(node: Node, old: Node) -> None:
    if not isinstance(old, Directory):
        if isinstance(node, Directory):
            raise os_error(errno.ENOTDIR)
    elif not isinstance(node, Directory):
        raise os_error(errno.EISDIR)
    elif old.entries:
        raise os_error(errno.ENOTEMPTY)


def _discard(node: Node) -> None:
    """Empty a removed tree, so that running walks and writes see that it is gone."""
    todo = [node]
    while todo:
        gone = todo.pop()
        if isinstance(gone, Directory):
            todo.extend(gone.entries.values())
            gone.entries.clear()
            gone.removed = True


def scan(directory: Directory, prefix: str, limit: int | None) -> list[FileInfo]:
    """List the entries of *directory*, sorted by name, each path beginning with *prefix*."""
    if limit is not None and len(directory.entries) > limit:
        raise list_limit_error(limit, prefix)
    return [describe(prefix + name, node) for name, node in sorted(directory.entries.items())]


class MemoryWalk:
    """One walk: parents before children, sorted by name; holds the lock only while it reads a directory."""

    def __init__(self, lock: RLock, limits: Limits, enter: Enter | None = None) -> None:
        self._lock = lock
        self._enter_filter = enter
        self._limits = limits

    def run(self, top: Directory, prefix: str) -> Iterator[FileInfo]:
        """Yield everything beneath *top*.

        Raises:
            LimitError: At the limit of entries, or at the end if parts of the tree were too deep.
        """
        seen = 0
        too_deep: str | None = None
        levels = [(top, self._scan(top, prefix))]
        while levels:
            here, infos = levels[-1]
            info = next(infos, None)
            if info is None:
                levels.pop()
                continue
            self._require_fewer(seen, prefix)
            seen += 1
            yield info
            if not info.is_directory or (self._enter_filter and not self._enter_filter(info)):
                continue
            child = self._enter(here, info)
            if child is None:
                continue
            if self._limits.depth is not None and len(levels) >= self._limits.depth:
                too_deep = too_deep or (info.path if child.entries else None)
            else:
                levels.append((child, self._scan(child, info.path + "/")))
        self._require_depth(too_deep)

    def _scan(self, directory: Directory, prefix: str) -> Iterator[FileInfo]:
        with self._lock:
            return iter(scan(directory, prefix, self._limits.list_entries))

    def _enter(self, parent: Directory, info: FileInfo) -> Directory | None:
        """Return the directory, or `None` if it was removed or replaced."""
        with self._lock:
            child = parent.entries.get(info.name)
            return child if isinstance(child, Directory) else None

    def _require_fewer(self, seen: int, prefix: str) -> None:
        limit = self._limits.walk_entries
        if limit is not None and seen >= limit:
            raise walk_limit_error(limit, prefix)

    def _require_depth(self, too_deep: str | None) -> None:
        limit = self._limits.depth
        if too_deep is not None and limit is not None:
            raise depth_limit_error(limit, too_deep)


class MemoryReader:
    """An open file, read in chunks; it outlives the name and the workspace."""

    def __init__(self, file: File, info: FileInfo, lock: RLock) -> None:
        self._file = file
        self._lock = lock
        self._at = 0
        self.info = info

    def chunks(self, chunk_bytes: int, offset: int = 0) -> Iterator[bytes]:
        """Yield the content from *offset* on, at most *chunk_bytes* at a time."""
        self._at += offset
        while chunk := self._read(chunk_bytes):
            yield chunk

    def read(self, length: int, offset: int = 0) -> bytes:
        """Read at most *length* bytes at *offset*."""
        with self._lock:
            return bytes(self._file.content[offset : offset + length])

    def _read(self, count: int) -> bytes:
        with self._lock:
            chunk = bytes(self._file.content[self._at : self._at + count])
            self._at += len(chunk)
            return chunk
