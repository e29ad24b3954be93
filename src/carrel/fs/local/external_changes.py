"""Unmediated access: let programs change a root without the gate, and find out afterwards what they changed.

The programs run in a container that mounts the directory, possibly as another user. The files are given to
that user before, and the state of the tree is read before and after to find the differences.

Only our own files change owner. Each is changed through an open descriptor, so nothing can be swapped in;
links are neither followed nor changed, because their owner does not matter; a file with several hard links,
whose other names may be anywhere, is left alone. The top directory keeps its owner, and the group of the
other user gets access to it.

Not covered: an entry that changes while the state is read may be reported as it was before or after.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from carrel.fs import syscalls
from carrel.fs.cancellable import WalkCancelledError
from carrel.fs.errors import translated
from carrel.fs.handle import Handle
from carrel.fs.local.lookup import Lookup
from carrel.fs.local.removal import SCAN
from carrel.fs.local.resolve import Open
from carrel.fs.local.walk import descend, entries_of
from carrel.fs.rules import DRAFT_PREFIX, KINDS, inode_id
from carrel.paths.parsed_path import PATH_BYTES, ParsedPath, parse
from carrel.values import FileKind


class EntryState(NamedTuple):
    """State of one entry; a different state at the same path means a change, though perhaps only of mode."""

    kind: FileKind
    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int
    """The ctime, which programs cannot set; 0 if unknown."""
    target: str | None = None
    """The target text of a link."""


@dataclass(slots=True)
class TreeState:
    """State of a tree, by path."""

    entries: dict[str, EntryState] = field(default_factory=dict)
    is_whole: bool = True
    """False if there were too many entries, paths too long to name, or if reading was cancelled."""


def read_tree_state(open_child: Open, top: Handle, max_entries: int) -> TreeState:
    """Read the state of everything beneath *top*, up to *max_entries*; two descriptors at any depth.

    Raises:
        OSError: EAGAIN if directories were moved at the same time.
    """
    visitor = _StateReader(max_entries)
    try:
        descend(open_child, top, visitor)
    except WalkCancelledError:
        visitor.state.is_whole = False
    return visitor.state


class _StateReader:
    """A `DirectoryVisitor` that collects the state of a tree."""

    def __init__(self, max_entries: int) -> None:
        self.state = TreeState()
        self._max_entries = max_entries
        self._prefixes: list[str] = []

    def enter(self, fd: int, name: bytes) -> list[bytes]:
        """Read the state of the entries of *fd*, and return the names of its directories."""
        prefix = f"{self._prefixes[-1]}{os.fsdecode(name)}/" if self._prefixes else ""
        self._prefixes.append(prefix)
        directories: list[bytes] = []
        for entry in entries_of(fd):
            if len(self.state.entries) >= self._max_entries:
                self.state.is_whole = False
                return []
            if self._add(prefix, entry, fd):
                directories.append(os.fsencode(entry.name))
        return directories

    def leave(self) -> None:
        """Return to the parent directory."""
        self._prefixes.pop()

    def _add(self, prefix: str, entry: os.DirEntry[str], fd: int) -> bool:
        """Add one entry; returns whether it is a directory to enter."""
        path = prefix + entry.name
        if len(os.fsencode(path)) >= PATH_BYTES:
            self.state.is_whole = False
            return False
        try:
            found = entry.stat(follow_symlinks=False)
            kind = KINDS.get(found.st_mode & 0o170000, FileKind.OTHER)
            target = os.readlink(entry.name, dir_fd=fd) if kind is FileKind.LINK else None
        except OSError:
            # Removed or replaced in the meantime.
            return False
        is_directory = kind is FileKind.DIRECTORY
        # The times of a directory change with every entry, and the entries have states of their own.
        self.state.entries[path] = (
            EntryState(kind, found.st_ino, 0, 0, 0)
            if is_directory
            else EntryState(kind, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, target)
        )
        return is_directory


class TreeDifference(NamedTuple):
    """One difference between two states of a tree."""

    operation: str
    """`remove`, `mkdir`, `link` or `write`."""
    path: str
    is_directory: bool
    target: str | None = None
    """The target text of a link."""
    before_bytes: int | None = None
    after_bytes: int | None = None


def tree_differences(before: TreeState, after: TreeState) -> Iterator[TreeDifference]:
    """Yield the differences: removals first, deepest first, then creations and changes, parents first.

    A rename is a removal and a creation.
    """
    old, new = before.entries, after.entries
    for path in sorted(old, reverse=True):
        if path not in new or _changes_kind(old[path], new[path]):
            yield _remove_difference(path, old[path])
    for path in sorted(new):
        entry, previous = new[path], old.get(path)
        if previous != entry and (difference := _difference(path, previous, entry)):
            yield difference


def _changes_kind(before: EntryState, after: EntryState) -> bool:
    """Whether a directory was replaced by something else, or something else by a directory."""
    return before.kind is not after.kind and FileKind.DIRECTORY in (before.kind, after.kind)


def _remove_difference(path: str, before: EntryState) -> TreeDifference:
    is_directory = before.kind is FileKind.DIRECTORY
    return TreeDifference("remove", path, is_directory, before_bytes=before.size_bytes)


def _difference(path: str, before: EntryState | None, after: EntryState) -> TreeDifference | None:
    if after.kind is FileKind.DIRECTORY:
        # A directory that replaced another one differs only in its entries.
        is_new = before is None or before.kind is not FileKind.DIRECTORY
        return TreeDifference("mkdir", path, True) if is_new else None
    before_bytes = None if before is None or _changes_kind(before, after) else before.size_bytes
    if after.kind is FileKind.LINK:
        return TreeDifference("link", path, False, after.target, before_bytes=before_bytes)
    return TreeDifference("write", path, False, None, before_bytes, after.size_bytes)


_MAX_LISTED = 10
"""Most names of files that `chown_tree` returns."""


def chown_tree(open_child: Open, top: Handle, *, user: int, group: int) -> list[str]:
    """Change the owner of our files beneath *top*; returns the first names of files that were left alone.

    Does nothing unless this process is root, because no other user may change owners.

    Raises:
        OSError: EAGAIN if directories were moved at the same time.
        WalkCancelledError: The walk was cancelled before its end.
    """
    if os.geteuid() != 0 or user == 0:
        # Other users cannot change owners, and root already owns its files.
        return []
    found = os.fstat(top.fd)
    if found.st_uid != user:
        if found.st_gid != group:
            os.fchown(top.fd, -1, group)
        if found.st_mode & 0o070 != 0o070:
            os.fchmod(top.fd, stat.S_IMODE(found.st_mode) | 0o070)
    visitor = _Chown(open_child, user, group)
    descend(open_child, top, visitor)
    return visitor.skipped


class _Chown:
    """A `DirectoryVisitor` that changes owners."""

    def __init__(self, open_child: Open, user: int, group: int) -> None:
        self._open = open_child
        self._user = user
        self._group = group
        self._ours = os.geteuid()
        self.skipped: list[str] = []

    def enter(self, fd: int, name: bytes) -> list[bytes]:
        """Change the owner of the entries of *fd*, and return the names of its directories."""
        directories: list[bytes] = []
        for entry in entries_of(fd):
            try:
                found = entry.stat(follow_symlinks=False)
                if found.st_uid == self._ours and not stat.S_ISLNK(found.st_mode):
                    self._chown(fd, entry.name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            if stat.S_ISDIR(found.st_mode):
                directories.append(os.fsencode(entry.name))
        return directories

    def leave(self) -> None:
        """Do nothing: no state is kept per directory."""

    def _chown(self, directory: int, name: str) -> None:
        handle = Handle(self._open(directory, os.fsencode(name), os.O_PATH | os.O_NOFOLLOW))
        found = os.fstat(handle.fd)
        if found.st_uid != self._ours or stat.S_ISLNK(found.st_mode):
            return
        if not stat.S_ISDIR(found.st_mode) and found.st_nlink > 1:
            if len(self.skipped) < _MAX_LISTED:
                self.skipped.append(name)
            return
        syscalls.chown_held_unchecked(handle.fd, self._user, self._group)


Result = TypeVar("Result")
_TOP = parse(".")
_CREATE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC


class UnmediatedAccess:
    """Operations on a whole root for programs that change it without the gate."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup

    def read_state(self, max_entries: int) -> TreeState:
        """Read the state of the tree, up to *max_entries*, to compare it with a later one."""
        open_child = self._lookup.resolver.open
        return self._apply(_TOP, lambda top: read_tree_state(open_child, top, max_entries))

    def chown(self, user: int, group: int) -> list[str]:
        """Give our files to another user; returns the first names of files that were left alone."""
        open_child = self._lookup.resolver.open
        return self._apply(_TOP, lambda top: chown_tree(open_child, top, user=user, group=group))

    def free_bytes(self) -> int:
        """Return the free space of the host's disk, in bytes."""
        found = self._apply(_TOP, lambda top: os.fstatvfs(top.fd))
        return found.f_bavail * found.f_frsize

    def identity(self) -> tuple[int, int]:
        """Return the device and inode of the directory."""
        return self._apply(_TOP, lambda top: inode_id(os.fstat(top.fd)))

    def flush(self) -> None:
        """Flush the whole file system of the directory."""
        self._apply(_TOP, lambda top: syscalls.syncfs_unchecked(top.fd))

    @contextmanager
    def marker_file(self) -> Iterator[str]:
        """Create an empty file with an unguessable name at the top, and remove it afterwards; gives the name.

        A marker file left by a killed process is swept like an abandoned draft.
        """
        top, name = self._apply(_TOP, _create_marker)
        try:
            yield os.fsdecode(name)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=top.fd)

    @translated
    def _apply(self, path: ParsedPath, operation: Callable[[Handle], Result]) -> Result:
        """Apply *operation* to the open directory at *path*."""
        return operation(Handle(self._lookup.open(path, SCAN)))


def _create_marker(top: Handle) -> tuple[Handle, bytes]:
    name = DRAFT_PREFIX + os.urandom(16).hex().encode()
    os.close(os.open(name, _CREATE, 0o600, dir_fd=top.fd))
    return top, name
