"""`Handle`, a descriptor closed with its last reference, and the names in an open directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Handle:
    """Owns one descriptor; closing is dropping the last reference.

    An operation keeps its own reference while it runs, so `close()` in another thread cannot hand the number
    to somebody else's file underneath it.
    """

    __slots__ = ("__weakref__", "_close", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._close: Callable[[int], None] = os.close

    def __del__(self) -> None:
        self._close(self.fd)


_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def names_in(directory: int) -> list[bytes]:
    """All names in the open directory *directory*, whoever else looks at the same time.

    It is opened anew, because all who share a descriptor, or a copy of one, share one place in the listing:
    two who read there at the same time get a part each.
    """
    with _scanning(directory) as entries:
        return [os.fsencode(entry.name) for entry in entries]


def directories_in(directory: int) -> list[str]:
    """The names of the directories in the open directory *directory*, found in the same way."""
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
