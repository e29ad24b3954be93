"""The names in a directory that is held open."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

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
