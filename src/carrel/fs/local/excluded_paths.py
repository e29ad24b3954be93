"""Excluded paths: paths beneath a root that belong to another rule, whether they exist yet or not."""

from __future__ import annotations

import os

from carrel.fs.errors import ExcludedPathError
from carrel.fs.handle import Handle
from carrel.fs.rules import InodeId, inode_id

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class ExcludedPaths:
    """Excluded paths of one root, looked up at each check, because they may be created, removed or moved."""

    def __init__(self, root: Handle, paths: tuple[tuple[str, ...], ...]) -> None:
        """Exclude *paths*, each given as its names beneath *root*."""
        self._root = root
        self._paths = [tuple(os.fsencode(name) for name in path) for path in paths]

    def require_enterable(self, found: os.stat_result) -> None:
        """Refuse to enter an excluded path."""
        for names in self._paths:
            if self._inode_ids(names)[len(names) :] == [inode_id(found)]:
                raise ExcludedPathError

    def require_movable(self, found: os.stat_result) -> None:
        """Refuse to move or remove an excluded path or a directory above one."""
        for names in self._paths:
            if inode_id(found) in self._inode_ids(names)[1:]:
                raise ExcludedPathError

    def require_name(self, parent: int, name: bytes) -> None:
        """Refuse to create or change the entry *name* of the directory *parent* if it is excluded."""
        for names in self._paths:
            above = self._inode_ids(names[:-1])
            if name == names[-1] and above[len(names) - 1 :] == [inode_id(os.fstat(parent))]:
                raise ExcludedPathError

    def _inode_ids(self, names: tuple[bytes, ...]) -> list[InodeId]:
        """Return the ids of the root and of the directories along *names*, as far as they exist."""
        here = self._root
        found = [inode_id(os.fstat(here.fd))]
        for name in names:
            try:
                here = Handle(os.open(name, _DIRECTORY, dir_fd=here.fd))
            except OSError:
                break
            found.append(inode_id(os.fstat(here.fd)))
        return found
