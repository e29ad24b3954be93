"""Paths beneath a root that belong to another rule, whether they exist yet or not."""

from __future__ import annotations

import os
from collections.abc import Iterator

from carrel.fs.errors import ExcludedPathError
from carrel.fs.handle import Handle

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

InodeId = tuple[int, int]


class ExcludedPaths:
    """Looks where the places are now each time it is asked, because they may come, go and move."""

    def __init__(self, root: Handle, places: tuple[tuple[str, ...], ...]) -> None:
        """Bar *places*, each given by the names that lead to it from *root*."""
        self._root = root
        self._places = [tuple(os.fsencode(name) for name in place) for place in places]

    def require_free(self, found: os.stat_result) -> None:
        """Refuse to enter a place that belongs to another rule."""
        for names in self._places:
            if self._trail(names)[len(names) :] == [inode_id(found)]:
                raise ExcludedPathError

    def require_movable(self, found: os.stat_result) -> None:
        """Refuse to move or remove a place that belongs to another rule, or a directory above one."""
        for names in self._places:
            if inode_id(found) in self._trail(names)[1:]:
                raise ExcludedPathError

    def require_name(self, parent: int, name: bytes) -> None:
        """Refuse to make or change the entry *name* of the directory *parent* where that is such a place."""
        for names in self._places:
            above = self._trail(names[:-1])
            if name == names[-1] and above[len(names) - 1 :] == [inode_id(os.fstat(parent))]:
                raise ExcludedPathError

    def _trail(self, names: tuple[bytes, ...]) -> list[InodeId]:
        """Who the root and the directories on the way to *names* are, as far as they exist."""
        return list(self._identities(names))

    def _identities(self, names: tuple[bytes, ...]) -> Iterator[InodeId]:
        here = self._root
        yield inode_id(os.fstat(here.fd))
        for name in names:
            try:
                here = Handle(os.open(name, _DIRECTORY, dir_fd=here.fd))
            except OSError:
                return
            yield inode_id(os.fstat(here.fd))


def inode_id(found: os.stat_result) -> InodeId:
    """What stays the same when something is renamed."""
    return found.st_dev, found.st_ino
