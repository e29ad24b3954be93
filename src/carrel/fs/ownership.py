"""Give what lies in a tree to another user: for programs that run on it as that user.

Only what belongs to us is given, never somebody else's. Everything is given through a descriptor that is
held, so nothing can be put in its place; links are neither followed nor given, as nobody asks whose they are;
a file with other names, which may lie anywhere, stays as it is. The directory at the top stays ours too, and
the group of the other user may work in it.
"""

from __future__ import annotations

import os
import stat

from carrel.fs import _sys
from carrel.fs._resolve import Open
from carrel.fs.handle import Handle
from carrel.fs.tree import descend, entries_of

_MOST_TOLD = 10


def hand_over(open_child: Open, top: Handle, *, user: int, group: int) -> list[str]:
    """Give all of ours beneath *top* to *user* and *group*; the names of the first files that stay ours.

    Only root can, so nothing is given by others.

    Raises:
        OSError: EAGAIN if directories were moved meanwhile.
        WalkCancelledError: There was no time for all of it.
    """
    if os.geteuid() != 0 or user == 0:
        # Others cannot give anything away, and root need not give to itself.
        return []
    found = os.fstat(top.fd)
    if found.st_uid != user:
        if found.st_gid != group:
            os.fchown(top.fd, -1, group)
        if found.st_mode & 0o070 != 0o070:
            os.fchmod(top.fd, stat.S_IMODE(found.st_mode) | 0o070)
    look = _HandingOver(open_child, user, group)
    descend(open_child, top, look)
    return look.left


class _HandingOver:
    """Gives what each directory holds."""

    def __init__(self, open_child: Open, user: int, group: int) -> None:
        self._open = open_child
        self._user = user
        self._group = group
        self._ours = os.geteuid()
        self.left: list[str] = []

    def enter(self, fd: int, name: bytes) -> list[bytes]:
        """Give what is in the directory *fd*, and return the names of its directories."""
        directories: list[bytes] = []
        for entry in entries_of(fd):
            try:
                found = entry.stat(follow_symlinks=False)
                if found.st_uid == self._ours and not stat.S_ISLNK(found.st_mode):
                    self._give(fd, entry.name)
            except (FileNotFoundError, NotADirectoryError):
                continue
            if stat.S_ISDIR(found.st_mode):
                directories.append(os.fsencode(entry.name))
        return directories

    def leave(self) -> None:
        """Nothing is kept of a directory."""

    def _give(self, directory: int, name: str) -> None:
        held = Handle(self._open(directory, os.fsencode(name), os.O_PATH | os.O_NOFOLLOW))
        found = os.fstat(held.fd)
        if found.st_uid != self._ours or stat.S_ISLNK(found.st_mode):
            return
        if not stat.S_ISDIR(found.st_mode) and found.st_nlink > 1:
            if len(self.left) < _MOST_TOLD:
                self.left.append(name)
            return
        _sys.chown_held_unchecked(held.fd, self._user, self._group)
