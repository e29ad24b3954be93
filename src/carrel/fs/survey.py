"""A survey of a tree: what is in it, told so that a later one shows every change.

Not covered: what changes while the survey is made may be told as it was or as it is.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import NamedTuple

from carrel.fs._resolve import Open
from carrel.fs.cancel import WalkCancelledError
from carrel.fs.handle import Handle
from carrel.fs.tree import KINDS, descend, entries_of
from carrel.paths.rel import PATH_BYTES
from carrel.values import FileKind


class Seen(NamedTuple):
    """One entry; another one at the same path means that it was changed, though perhaps only its mode."""

    kind: FileKind
    inode: int
    size_bytes: int
    modified_ns: int
    changed_ns: int
    """When anything about it changed, which no program can set; 0 where that is not told."""
    target: str | None = None
    """The text of a link."""


@dataclass(slots=True)
class Survey:
    """What was found, by path."""

    entries: dict[str, Seen] = field(default_factory=dict)
    is_whole: bool = True
    """Whether that is everything; not if there were too many, or too deep to name, or if it was cancelled."""


def survey(open_child: Open, top: Handle, most: int) -> Survey:
    """See what is beneath *top*, up to *most* entries; two descriptors, whatever the depth.

    Raises:
        OSError: EAGAIN if directories were moved meanwhile.
    """
    look = _Surveying(most)
    try:
        descend(open_child, top, look)
    except WalkCancelledError:
        look.found.is_whole = False
    return look.found


class _Surveying:
    """A survey that is being made."""

    def __init__(self, most: int) -> None:
        self.found = Survey()
        self._most = most
        self._prefixes: list[str] = []

    def enter(self, fd: int, name: bytes) -> list[bytes]:
        """See what the directory *fd* holds, and return the names of its directories."""
        prefix = f"{self._prefixes[-1]}{os.fsdecode(name)}/" if self._prefixes else ""
        self._prefixes.append(prefix)
        directories: list[bytes] = []
        for entry in entries_of(fd):
            if len(self.found.entries) >= self._most:
                self.found.is_whole = False
                return []
            if self._see(prefix, entry, fd):
                directories.append(os.fsencode(entry.name))
        return directories

    def leave(self) -> None:
        """Go back to where the directory is."""
        self._prefixes.pop()

    def _see(self, prefix: str, entry: os.DirEntry[str], fd: int) -> bool:
        """Note one entry; whether it is a directory to go into."""
        path = prefix + entry.name
        if len(os.fsencode(path)) >= PATH_BYTES:
            self.found.is_whole = False
            return False
        try:
            found = entry.stat(follow_symlinks=False)
            kind = KINDS.get(found.st_mode & 0o170000, FileKind.OTHER)
            target = os.readlink(entry.name, dir_fd=fd) if kind is FileKind.LINK else None
        except OSError:
            # Gone or replaced meanwhile.
            return False
        is_directory = kind is FileKind.DIRECTORY
        # What is in a directory is told by its entries; its own times change with each of them.
        self.found.entries[path] = (
            Seen(kind, found.st_ino, 0, 0, 0)
            if is_directory
            else Seen(kind, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, target)
        )
        return is_directory
