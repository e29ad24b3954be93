"""`Bypass`: what has to be known about a root when programs change it without asking.

They run in a container that has the directory, as another user perhaps. Before, they are given the files;
afterwards somebody has to see what became of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from carrel.fs import _sys, ownership
from carrel.fs._beneath import Beneath
from carrel.fs.handle import Handle
from carrel.fs.removal import SCAN
from carrel.fs.rules import DRAFT_PREFIX
from carrel.fs.survey import Survey, survey
from carrel.fs.translate import translated
from carrel.paths.rel import Where, parse

_TOP = parse(".")
_MARK = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC


class Bypass:
    """The whole of one root."""

    def __init__(self, beneath: Beneath) -> None:
        self._beneath = beneath

    def survey(self, most: int) -> Survey:
        """See what there is, up to *most* entries, so that a later survey shows what was changed."""
        return self._survey(_TOP, most)

    def hand_over(self, user: int, group: int) -> list[str]:
        """Give what is ours to another user; the names of the first files that stay ours."""
        return self._hand_over(_TOP, user, group)

    def free_bytes(self) -> int:
        """How much the host's disk has free."""
        return self._free_bytes(_TOP)

    def identity(self) -> tuple[int, int]:
        """Tells the directory from all others that are there now."""
        return self._identity(_TOP)

    def flush(self) -> None:
        """Flush everything on the host's disk, however much it is."""
        self._flush(_TOP)

    @contextmanager
    def marked(self) -> Iterator[str]:
        """Put an empty file at the top for the time, with a name that nobody can guess; gives the name.

        One that a killed process leaves is removed like an unfinished file.
        """
        top, name = self._mark(_TOP)
        try:
            yield os.fsdecode(name)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=top.fd)

    @translated
    def _survey(self, where: Where, most: int) -> Survey:
        return survey(self._beneath.resolver.open, self._open(where), most)

    @translated
    def _hand_over(self, where: Where, user: int, group: int) -> list[str]:
        return ownership.hand_over(self._beneath.resolver.open, self._open(where), user=user, group=group)

    @translated
    def _free_bytes(self, where: Where) -> int:
        top = self._open(where)
        found = os.fstatvfs(top.fd)
        return found.f_bavail * found.f_frsize

    @translated
    def _identity(self, where: Where) -> tuple[int, int]:
        top = self._open(where)
        found = os.fstat(top.fd)
        return found.st_dev, found.st_ino

    @translated
    def _flush(self, where: Where) -> None:
        top = self._open(where)
        _sys.syncfs_unchecked(top.fd)

    @translated
    def _mark(self, where: Where) -> tuple[Handle, bytes]:
        top, name = self._open(where), DRAFT_PREFIX + os.urandom(16).hex().encode()
        os.close(os.open(name, _MARK, 0o600, dir_fd=top.fd))
        return top, name

    def _open(self, where: Where) -> Handle:
        return Handle(self._beneath.open(where, SCAN))
