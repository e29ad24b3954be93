"""Scratch directories: unfinished files, and trees being removed, outside every workspace."""

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
    """Directories on the same mount as the workspaces, so that one rename moves a file in or a tree out."""

    drafts: Handle
    trash: Handle
    tag: str = ""
    """Prefix of the names in the trash, which shows where a tree came from."""

    def move_to_trash(self, open_child: Open, parent: Handle, name: bytes) -> TrashedTree:
        """Move the directory *name* to the trash, locked so that only this process removes it."""
        lock = _open_locked(open_child, parent.fd, name)
        token = f"{self.tag}~{os.urandom(12).hex()}".encode()
        os.rename(name, token, src_dir_fd=parent.fd, dst_dir_fd=self.trash.fd)
        return TrashedTree(self.trash, token, lock, open_child)

    def count_removals(self) -> int:
        """Return how many trees of this tag a living process is removing."""
        prefix = f"{self.tag}~".encode()
        names = [name for name in names_in(self.trash.fd) if name.startswith(prefix)]
        return sum(_is_locked(self.trash.fd, name) for name in names)

    def spool(self) -> Draft:
        """Create a file for content that may never be published; it counts as a draft."""
        return Draft(self.drafts)

    def drafted_bytes(self) -> int:
        """Return the total size of the unfinished files of living writers."""
        return drafted_bytes(self.drafts.fd)

    def sweep_drafts(self, now: float) -> None:
        """Remove the drafts of killed writers; those that cannot be removed are left for the next sweep."""
        with suppress(OSError):
            sweep_abandoned(self.drafts.fd, now)


@dataclass(frozen=True, slots=True)
class TrashedTree:
    """A tree in the trash."""

    trash: Handle
    token: bytes
    lock: Handle
    """Locked, if the file system has locks, so that other processes see that it is being removed."""
    open_child: Open

    def empty(self) -> Usage:
        """Remove its content; returns the usage that this and the later `remove` free."""
        removal = Removal(self.open_child)
        removal.empty(self.lock.fd)
        freed = removal.freed
        return Usage(disk_bytes=freed.disk_bytes, entries=freed.entries + 1)

    def remove(self) -> Usage:
        """Remove the tree; returns the usage that this freed."""
        removal = Removal(self.open_child)
        removal.remove(self.trash.fd, self.token)
        return removal.freed


def empty_trash(trash: Handle) -> None:
    """Remove trees left by killed processes; those that cannot be removed are left for the next sweep."""
    for name in names_in(trash.fd):
        with suppress(OSError):
            if not _is_locked(trash.fd, name):
                Removal(open_child).remove(trash.fd, name)


def open_child(parent: int, name: bytes, flags: int) -> int:
    """Open a name in a trusted directory, without following a link."""
    return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)


def _open_locked(open_child: Open, parent: int, name: bytes) -> Handle:
    """Open the directory for removal, and lock it if the file system has locks."""
    lock = Handle(open_to_empty(open_child, parent, name))
    with suppress(OSError):
        fcntl.flock(lock.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return lock


def _is_locked(parent: int, name: bytes) -> bool:
    """Whether a living process has locked the directory."""
    try:
        lock = Handle(open_child(parent, name, SCAN))
        fcntl.flock(lock.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
