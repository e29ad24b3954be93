"""`Handle`, a descriptor closed with its last reference, and the names in an open directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Handle:
    """Owns one descriptor, which is closed when the last reference is dropped.

    An operation keeps its own reference while it runs, so that `close()` in another thread cannot let the
    number be reused for another file.
    """

    __slots__ = ("__weakref__", "_close", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._close: Callable[[int], None] = os.close

    def __del__(self) -> None:
        self._close(self.fd)


_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def names_in(directory: int) -> list[bytes]:
    """Return all names in the open directory *directory*, safe for concurrent callers.

    The directory is opened again, because duplicates of a descriptor share one read position: two concurrent
    listings would each get a part.
    """
    with _scanning(directory) as entries:
        return [os.fsencode(entry.name) for entry in entries]


def directories_in(directory: int) -> list[str]:
    """Return the names of the directories in the open directory *directory*, like `names_in`."""
    with _scanning(directory) as entries:
        return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]


@contextmanager
def _scanning(directory: int) -> Iterator[Iterator[os.DirEntry[str]]]:
    fd = os.open(b".", _FLAGS, dir_fd=directory)
    try:
        with os.scandir(fd) as entries:
            yield entries
    finally:
        os.close(fd)
