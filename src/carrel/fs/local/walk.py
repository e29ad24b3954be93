"""List, walk and count whole trees iteratively, whatever their depth.

Nothing here follows a link or enters another mount: the resolver opens each child beneath the descriptor of
its parent, with `O_NOFOLLOW`. `os.scandir` gets descriptors only; with a path, it could list another
directory that has replaced the first.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from operator import attrgetter
from typing import NamedTuple, Protocol

from carrel.fs.api import Enter, OnUnreadable
from carrel.fs.cancellable import WalkCancelledError, checkpoint
from carrel.fs.errors import depth_limit_error, list_limit_error, os_error, walk_limit_error
from carrel.fs.handle import Handle
from carrel.fs.local.removal import SCAN, unlock
from carrel.fs.local.resolve import Open
from carrel.fs.rules import InodeId, counted_bytes, info_of, inode_id
from carrel.values import FileInfo, FileKind, Named, Usage

# A listing needs these for every entry, and looking up a member of an enum is slow.
_FILE = FileKind.FILE
_DIRECTORY = FileKind.DIRECTORY
_LINK = FileKind.LINK
_OTHER = FileKind.OTHER
_PATH = attrgetter("path")
BATCH_ENTRIES = 256
"""Names per batch of `names`, and entries between two checks for cancellation."""


def scan(fd: int, prefix: str, limit: int | None) -> list[FileInfo]:
    """List the entries of the directory *fd*, sorted by name, each path beginning with *prefix*."""
    found: list[FileInfo] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            if limit is not None and len(found) >= limit:
                raise list_limit_error(limit, prefix)
            try:
                found.append(info_of(prefix + entry.name, entry.stat(follow_symlinks=False)))
            except FileNotFoundError:
                continue
    found.sort(key=_PATH)
    return found


def names(directory: Handle, prefix: str, limit: int | None) -> Iterator[list[Named]]:
    """Yield the names in *directory* in batches, each with its kind as the listing has it."""
    count = 0
    with os.scandir(directory.fd) as entries:
        while batch := list(islice(entries, BATCH_ENTRIES)):
            count += len(batch)
            if limit is not None and count > limit:
                raise list_limit_error(limit, prefix)
            yield [
                (entry.name, _FILE if entry.is_file(follow_symlinks=False) else _other_kind(entry))
                for entry in batch
            ]


def _other_kind(entry: os.DirEntry[str]) -> FileKind:
    if entry.is_dir(follow_symlinks=False):
        return _DIRECTORY
    return _LINK if entry.is_symlink() else _OTHER


class TreeWalk:
    """One walk through a tree: parents before children, sorted by name."""

    def __init__(
        self,
        open_child: Open,
        *,
        depth: int | None,
        entries: int | None,
        listing: int | None,
        unreadable: OnUnreadable,
        enter: Enter | None = None,
    ) -> None:
        self._open = open_child
        self._enter_filter = enter
        self._depth = depth
        self._entries = entries
        self._listing = listing
        self._unreadable = unreadable

    def run(self, top: Handle, prefix: str) -> Iterator[FileInfo]:
        """Yield everything beneath the directory *top*.

        Raises:
            LimitError: At the limit of entries, or at the end if parts of the tree were too deep.
        """
        seen = 0
        deeper: str | None = None
        levels = [(top, iter(scan(top.fd, prefix, self._listing)))]
        while levels:
            here, infos = levels[-1]
            info = next(infos, None)
            if info is None:
                levels.pop()
                continue
            if self._entries is not None and seen >= self._entries:
                raise walk_limit_error(self._entries, prefix)
            seen += 1
            yield info
            if info.kind is not FileKind.DIRECTORY or (self._enter_filter and not self._enter_filter(info)):
                continue
            child = self._enter(here, info)
            if child is None:
                continue
            if self._depth is not None and len(levels) >= self._depth:
                deeper = deeper or (info.path if has_entries(child.fd) else None)
            else:
                levels.append((child, iter(scan(child.fd, info.path + "/", self._listing))))
        if deeper is not None and self._depth is not None:
            raise depth_limit_error(self._depth, deeper)

    def _enter(self, parent: Handle, info: FileInfo) -> Handle | None:
        """Open a directory; `None` if it is gone, replaced, or unreadable and those are skipped."""
        try:
            return Handle(self._open(parent.fd, os.fsencode(info.name), SCAN))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            if self._unreadable is OnUnreadable.REFUSE or error.errno in (errno.EMFILE, errno.ENFILE):
                raise
            return None


def has_entries(fd: int) -> bool:
    """Whether the directory *fd* has any entries."""
    with os.scandir(fd) as entries:
        return next(entries, None) is not None


class DirectoryVisitor(Protocol):
    """Callbacks for every directory of a tree."""

    def enter(self, fd: int, name: bytes) -> list[bytes]:
        """Process the directory *fd*, named *name* in its parent; returns the names in it to enter next."""
        ...

    def leave(self) -> None:
        """Leave the directory that was entered last and not left yet."""
        ...


def descend(open_child: Open, top: Handle, visitor: DirectoryVisitor) -> None:
    """Call *visitor* for every directory from *top* on; two descriptors at any depth.

    A directory without permissions for its owner gets them for the duration of the visit; an unreadable
    directory of someone else is skipped.

    Raises:
        OSError: EAGAIN if directories were moved at the same time.
        WalkCancelledError: The walk was cancelled before its end.
    """
    descent = _Descent(open_child, top)
    try:
        descent.levels[-1].directories.extend(visitor.enter(top.fd, b""))
        while descent.levels:
            if not descent.levels[-1].directories:
                visitor.leave()
                descent.leave()
            elif (name := descent.enter()) is not None:
                descent.levels[-1].directories.extend(visitor.enter(descent.here.fd, name))
    except WalkCancelledError:
        descent.restore_modes()
        raise


def entries_of(fd: int) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of the directory *fd*, checking for cancellation."""
    with os.scandir(fd) as entries:
        checkpoint()
        for number, entry in enumerate(entries, 1):
            yield entry
            if number % BATCH_ENTRIES == 0:
                checkpoint()


def measure(open_child: Open, top: Handle, limit: int | None = None) -> Usage:
    """Count everything beneath *top*, each inode once; unreadable directories of others count as empty.

    Raises:
        LimitError: There are more than *limit* entries.
        OSError: EAGAIN if directories were moved at the same time.
        WalkCancelledError: The walk was cancelled before its end.
    """
    count = _UsageCounter(limit)
    descend(open_child, top, count)
    return Usage(disk_bytes=count.disk_bytes, entries=count.entries)


class _Descent:
    """The path from the top of a tree to the current directory of a walk."""

    def __init__(self, open_child: Open, top: Handle) -> None:
        self._open = open_child
        self.here = top
        self.levels = [_Level(inode_id(os.fstat(top.fd)), [], None)]

    def enter(self) -> bytes | None:
        """Enter the next directory; returns its name, or `None` if it cannot be opened."""
        name = self.levels[-1].directories.pop()
        child, mode = _open_unlocked(self._open, self.here.fd, name)
        if child is None:
            return None
        self.here = child
        self.levels.append(_Level(inode_id(os.fstat(child.fd)), [], mode))
        return name

    def leave(self) -> None:
        """Return to the parent directory, and restore the mode of this one."""
        old_mode = self.levels.pop().old_mode
        if not self.levels:
            return
        above = Handle(os.open("..", SCAN, dir_fd=self.here.fd))
        if old_mode is not None:
            os.fchmod(self.here.fd, old_mode)
        self.here = above
        if inode_id(os.fstat(above.fd)) != self.levels[-1].id:
            raise os_error(errno.EAGAIN)

    def restore_modes(self) -> None:
        """Restore the modes of all directories on the path, unless they are moved at the same time."""
        first = next(
            (at for at, level in enumerate(self.levels) if level.old_mode is not None), len(self.levels)
        )
        with suppress(OSError):
            while len(self.levels) > first:
                self.leave()


class _Level(NamedTuple):
    """A directory on the path of a descent."""

    id: InodeId
    directories: list[bytes]
    """Its directories still to be entered."""
    old_mode: int | None
    """The mode to restore, if it was changed to open the directory."""


class _UsageCounter:
    """A `DirectoryVisitor` that counts entries and bytes."""

    def __init__(self, limit: int | None) -> None:
        self.disk_bytes = 0
        self.entries = 0
        self._limit = limit
        self._seen: set[InodeId] = set()
        """Files with several hard links that were counted already."""

    def enter(self, fd: int, name: bytes) -> list[bytes]:
        """Count the entries of the directory *fd*, and return the names of its directories."""
        directories: list[bytes] = []
        for entry in entries_of(fd):
            try:
                found = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            if self.entries == self._limit:
                raise walk_limit_error(self._limit, "")
            self.entries += 1
            if stat.S_ISDIR(found.st_mode):
                directories.append(os.fsencode(entry.name))
            elif stat.S_ISREG(found.st_mode):
                self._add_file(found)
        return directories

    def leave(self) -> None:
        """Do nothing: no state is kept per directory."""

    def _add_file(self, found: os.stat_result) -> None:
        if found.st_nlink > 1:
            if inode_id(found) in self._seen:
                return
            self._seen.add(inode_id(found))
        self.disk_bytes += counted_bytes(found.st_size, found.st_blocks)


def _open_unlocked(open_child: Open, parent: int, name: bytes) -> tuple[Handle | None, int | None]:
    """Open the directory *name*, and return its old mode if that had to be changed; no handle on failure."""
    try:
        return Handle(open_child(parent, name, SCAN)), None
    except PermissionError:
        pass
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR, errno.EXDEV):
            raise
        return None, None
    try:
        mode = stat.S_IMODE(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
        unlock(open_child, parent, name)
        return Handle(open_child(parent, name, SCAN)), mode
    except PermissionError:
        return None, None


def require_empty(open_child: Open, parent: int, name: bytes) -> None:
    """Refuse a directory that has entries, if it is readable.

    Raises:
        OSError: ENOTEMPTY.
    """
    try:
        handle = Handle(open_child(parent, name, SCAN))
    except PermissionError:
        return
    if has_entries(handle.fd):
        raise os_error(errno.ENOTEMPTY)
