"""The names in a directory that is held open."""

from __future__ import annotations

import os

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def names_in(directory: int) -> list[bytes]:
    """All names in the open directory *directory*, whoever else looks at the same time.

    It is opened anew, because all who share a descriptor, or a copy of one, share one place in the listing:
    two who read there at the same time get a part each.
    """
    fd = os.open(b".", _FLAGS, dir_fd=directory)
    try:
        with os.scandir(fd) as entries:
            return [os.fsencode(entry.name) for entry in entries]
    finally:
        os.close(fd)
