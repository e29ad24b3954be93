"""`LedgerPage`: the content of a ledger file, and how it is read and written."""

from __future__ import annotations

import os
import struct
from functools import cache
from pathlib import Path
from typing import NamedTuple

from carrel.values import Usage

_HEADER = struct.Struct("<8sQQQQQQQ16s")
_MAGIC = b"carrel\0\1"

OPEN = 1
"""Mark: a change is in progress, or its process was killed in the middle of it."""
DELETED = 2
"""Mark: the session was deleted."""
UNMEDIATED = 4
"""Mark: programs change files without the gate, or did so when the process that runs them was killed."""


class LedgerPage(NamedTuple):
    """The content of a ledger file."""

    mark: int
    """0, or a combination of the marks above."""
    disk_bytes: int
    entries: int
    pending_deletions: int
    """Number of trees in the trash whose usage is not released yet."""
    recounts: int
    """How often the workspace was counted; a count settles all earlier pending deletions."""
    position: int
    """Position of the journal before the change in progress."""
    inode: int
    """Inode at the recorded path once the change is made; 0 if that is not known in advance. Of a touch,
    the previous modification time."""

    def plus(self, more_bytes: int, more_entries: int) -> LedgerPage:
        """Return the page with more usage; never less than 0, even if files were removed on the host."""
        mark, disk_bytes, entries, pending, recounts, position, inode = self
        disk_bytes, entries = max(0, disk_bytes + more_bytes), max(0, entries + more_entries)
        return LedgerPage(mark, disk_bytes, entries, pending, recounts, position, inode)

    @property
    def is_settled(self) -> bool:
        """Whether the usage can be relied on."""
        return not self.mark and not self.pending_deletions

    @property
    def usage(self) -> Usage:
        """The usage alone."""
        return Usage(disk_bytes=self.disk_bytes, entries=self.entries)


EMPTY = LedgerPage(0, 0, 0, 0, 0, 0, 0)
"""The page of a session without files."""


def read_page(fd: int) -> LedgerPage | None:
    """Read the page; return `None` if it is new or damaged, or its usage was not flushed before a reboot."""
    found = os.pread(fd, _HEADER.size, 0)
    if len(found) != _HEADER.size:
        return None
    magic, mark, *numbers, boot = _HEADER.unpack(found)
    if magic != _MAGIC:
        return None
    page = LedgerPage(mark, *numbers)
    # A mark is valid after a reboot too.
    return page if page.mark or boot == _boot_id() else None


def write_page(fd: int, page: LedgerPage) -> None:
    """Replace the page."""
    os.pwrite(fd, _HEADER.pack(_MAGIC, *page, _boot_id()), 0)


def write_empty(fd: int) -> None:
    """Write the page of a new session."""
    write_page(fd, EMPTY)


def write_deleted(fd: int) -> None:
    """Mark the session as deleted; everyone who still has it open finds out."""
    write_page(fd, EMPTY._replace(mark=DELETED))


@cache
def _boot_id() -> bytes:
    """Return the id of this run of the host. What was not flushed when the host went down is lost."""
    try:
        return bytes.fromhex(Path("/proc/sys/kernel/random/boot_id").read_text().strip().replace("-", ""))
    except (OSError, ValueError):
        return bytes(16)
