"""Read all files of a tree, opening each in its own directory, which is faster than by path."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from carrel.fs import syscalls
from carrel.fs.api import Content, Wants
from carrel.fs.errors import depth_limit_error, list_limit_error, translate, walk_limit_error
from carrel.fs.handle import Handle
from carrel.fs.local.removal import SCAN
from carrel.fs.local.resolve import Open
from carrel.fs.local.walk import has_entries
from carrel.paths.parsed_path import ParsedPath, child
from carrel.values import Limits

_KIND_MASK = 0o170000
_GONE = (errno.ENOENT, errno.ELOOP, errno.ENXIO)
"""Errors that mean the entry is gone or was never a file."""


_Entry = tuple[str, bool, int]
"""A name in a directory, whether it is a directory, and its inode, as the listing has them."""


class _Level(NamedTuple):
    """A directory on the way from the top to the current one."""

    directory: Handle
    fd: int
    prefix: str
    entries: Iterator[_Entry]
    """Entries still to be read."""
    device: int


class TreeReader:
    """Reads one tree in order of its names, skipping links and anything but regular files."""

    def __init__(
        self,
        open_child: Open,
        path: ParsedPath,
        prefix: str,
        limits: Limits,
        *,
        enter: Wants | None,
        wants: Wants | None,
        chunk_bytes: int,
    ) -> None:
        """Read the directory at *path*; the paths of files begin with *prefix*."""
        self._open = open_child
        self._path = path
        self._prefix = prefix
        self._limits = limits
        self._enter = enter
        self._wants = wants
        self._chunk_bytes = chunk_bytes
        self._seen = 0
        self._too_deep: str | None = None

    def run(self, top: Handle) -> Iterator[Content]:
        """Yield the files beneath the directory *top*.

        Raises:
            LimitError: At the limit of entries, or at the end if parts of the tree were too deep.
        """
        levels = [self._list_level(top, self._prefix)]
        while levels:
            here = levels[-1]
            for name, is_directory, inode in here.entries:
                path = here.prefix + name
                if not is_directory:
                    content = self._read(here, name, inode, path)
                    if content is not None:
                        yield Content(path, content)
                    continue
                below = self._open_directory(here.fd, name)
                if isinstance(below, int):
                    yield Content(path, self._unreadable(below, path))
                elif below is not None and len(levels) == self._limits.depth:
                    self._too_deep = self._too_deep or (path if has_entries(below.fd) else None)
                elif below is not None:
                    levels.append(self._list_level(below, f"{path}/"))
                    break
            else:
                levels.pop()
        if self._too_deep is not None and self._limits.depth is not None:
            raise depth_limit_error(self._limits.depth, self._too_deep)

    def _list_level(self, directory: Handle, prefix: str) -> _Level:
        """List the wanted files and directories of one directory, sorted by name."""
        found: list[_Entry] = []
        enter, wants, count, room = self._enter, self._wants, 0, self._max_entries()
        with os.scandir(directory.fd) as entries:
            for entry in entries:
                count += 1
                if count > room:
                    break
                if entry.is_symlink():
                    continue
                is_directory = entry.is_dir(follow_symlinks=False)
                wanted = enter if is_directory else wants
                if wanted is None or wanted(entry.name):
                    found.append((entry.name, is_directory, entry.inode()))
        self._count(count, prefix)
        found.sort()
        return _Level(directory, directory.fd, prefix, iter(found), os.fstat(directory.fd).st_dev)

    def _max_entries(self) -> int:
        """Return how many entries the next directory may have."""
        limits = self._limits
        listing = sys.maxsize if limits.list_entries is None else limits.list_entries
        return listing if limits.walk_entries is None else min(listing, limits.walk_entries - self._seen)

    def _count(self, count: int, prefix: str) -> None:
        """Count the entries of one directory against the limits; at most one too many was listed."""
        limits = self._limits
        if limits.list_entries is not None and count > limits.list_entries:
            raise list_limit_error(limits.list_entries, prefix)
        self._seen += count
        if limits.walk_entries is not None and self._seen > limits.walk_entries:
            raise walk_limit_error(limits.walk_entries, prefix)

    def _open_directory(self, parent: int, name: str) -> Handle | int | None:
        """Open a directory; returns an errno on failure, `None` if it is gone or not a directory."""
        try:
            return Handle(self._open(parent, os.fsencode(name), SCAN))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            return error.errno or errno.EIO

    def _read(self, here: _Level, name: str, inode: int, path: str) -> Iterable[bytes] | None:
        """Return the content of a file, read at once if it is small; `None` if it is not a regular file.

        The name is opened with a plain `openat`, which is faster. If that opens anything but the listed inode
        (a mount, or another file by now), it is opened again by the resolver.
        """
        fd = -1
        try:
            fd = syscalls.open_listed_unchecked(here.fd, name)
            found = os.fstat(fd)
            if found.st_ino != inode or found.st_dev != here.device:
                os.close(fd)
                fd = -1
                fd = self._open(here.fd, os.fsencode(name), syscalls.LISTED_FILE)
                found = os.fstat(fd)
            if found.st_mode & _KIND_MASK != stat.S_IFREG:
                return None
            size = found.st_size
            if size < self._chunk_bytes:
                data = os.read(fd, size + 1)
                if len(data) <= size:
                    return (data,)
            else:
                data = os.read(fd, self._chunk_bytes)
            handle, fd = Handle(fd), -1
            return self._chunks(data, handle, path)
        except OSError as error:
            number = error.errno or errno.EIO
            return None if number in _GONE else self._unreadable(number, path)
        finally:
            if fd >= 0:
                os.close(fd)

    def _chunks(self, data: bytes, handle: Handle, path: str) -> Iterator[bytes]:
        """Yield what was read already, and then the rest."""
        while data:
            yield data
            try:
                data = os.read(handle.fd, self._chunk_bytes)
            except OSError as error:
                yield from self._unreadable(error.errno or errno.EIO, path)

    def _unreadable(self, number: int, path: str) -> Iterable[bytes]:
        return _Unreadable(number, child(self._path, path[len(self._prefix) :]))


class _Unreadable:
    """Content that cannot be read: iterating raises the error."""

    def __init__(self, number: int, path: ParsedPath) -> None:
        self._number = number
        self._path = path

    def __iter__(self) -> Iterator[bytes]:
        raise translate(self._number, self._path)
