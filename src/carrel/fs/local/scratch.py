"""Directories outside every workspace for unfinished files and for trees that are being removed."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass

from carrel.fs.handle import Handle, names_in
from carrel.fs.local.draft import Draft, drafted_bytes, sweep_abandoned
from carrel.fs.local.removal import SCAN, Removal, open_to_empty
from carrel.fs.local.resolve import Open
from carrel.values import Usage


@dataclass(frozen=True, slots=True)
class Scratch:
    """On the same mount as the workspaces, so that one rename moves a file in or a tree out."""

    drafts: Handle
    trash: Handle
    tag: str = ""
    """Begins the name of everything thrown away, so that it can be told whose it was."""

    def move_to_trash(self, open_child: Open, parent: Handle, name: bytes) -> TrashedTree:
        """Move the directory *name* into the trash, where it is ours to remove as long as we live."""
        held = _hold(open_child, parent.fd, name)
        token = f"{self.tag}~{os.urandom(12).hex()}".encode()
        os.rename(name, token, src_dir_fd=parent.fd, dst_dir_fd=self.trash.fd)
        return TrashedTree(self.trash, token, held, open_child)

    def being_removed(self) -> int:
        """How many trees of this tag somebody alive is removing."""
        prefix = f"{self.tag}~".encode()
        names = [name for name in names_in(self.trash.fd) if name.startswith(prefix)]
        return sum(_is_held(self.trash.fd, name) for name in names)

    def spool(self) -> Draft:
        """A file for content that may never be put in place; it counts as a draft."""
        return Draft(self.drafts)

    def drafted_bytes(self) -> int:
        """The sizes of all unfinished files that somebody alive is writing."""
        return drafted_bytes(self.drafts.fd)

    def sweep_drafts(self, now: float) -> None:
        """Remove the drafts of writers that were killed; what cannot be removed waits."""
        with suppress(OSError):
            sweep_abandoned(self.drafts.fd, now)


@dataclass(frozen=True, slots=True)
class TrashedTree:
    """A tree in the trash."""

    trash: Handle
    token: bytes
    held: Handle
    """Locked, so that others can see that somebody removes it; not so where the file system has no locks."""
    open_child: Open

    def empty(self) -> Usage:
        """Remove what is in it; returns what that and its own end free, which is left to `remove`."""
        removal = Removal(self.open_child)
        removal.empty(self.held.fd)
        freed = removal.freed
        return Usage(disk_bytes=freed.disk_bytes, entries=freed.entries + 1)

    def remove(self) -> Usage:
        """Remove it; returns what that freed."""
        removal = Removal(self.open_child)
        removal.remove(self.trash.fd, self.token)
        return removal.freed


def empty_trash(trash: Handle) -> None:
    """Remove what processes that were killed had thrown away; what cannot be removed waits."""
    for name in names_in(trash.fd):
        with suppress(OSError):
            if not _is_held(trash.fd, name):
                Removal(open_child).remove(trash.fd, name)


def open_child(parent: int, name: bytes, flags: int) -> int:
    """Open a name in a directory of ours, without following a link."""
    return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)


def _hold(open_child: Open, parent: int, name: bytes) -> Handle:
    """The directory, locked where the file system has locks."""
    held = Handle(open_to_empty(open_child, parent, name))
    with suppress(OSError):
        fcntl.flock(held.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return held


def _is_held(parent: int, name: bytes) -> bool:
    """Whether somebody alive has locked the directory."""
    try:
        held = Handle(open_child(parent, name, SCAN))
        fcntl.flock(held.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
