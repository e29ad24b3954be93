"""Give a root to programs that bypass the gate, and find out afterwards what they changed.

Not covered: what changes while the survey is made may be told as it was or as it is.

Only what belongs to us is given, never somebody else's. Everything is given through a descriptor that is
held, so nothing can be put in its place; links are neither followed nor given, as nobody asks whose they are;
a file with other names, which may lie anywhere, stays as it is. The directory at the top stays ours too, and
the group of the other user may work in it.

They run in a container that has the directory, as another user perhaps. Before, they are given the files;
afterwards somebody has to see what became of them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from carrel.fs import syscalls
from carrel.fs.cancellable import WalkCancelledError
from carrel.fs.errors import translated
from carrel.fs.handle import Handle
from carrel.fs.local.lookup import Lookup
from carrel.fs.local.removal import SCAN
from carrel.fs.local.resolve import Open
from carrel.fs.local.walk import descend, entries_of
from carrel.fs.rules import DRAFT_PREFIX, KINDS
from carrel.paths.parsed_path import PATH_BYTES, ParsedPath, parse
from carrel.values import FileKind


class EntryState(NamedTuple):
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
class TreeState:
    """What was found, by path."""

    entries: dict[str, EntryState] = field(default_factory=dict)
    is_whole: bool = True
    """Whether that is everything; not if there were too many, or too deep to name, or if it was cancelled."""


def read_tree_state(open_child: Open, top: Handle, most: int) -> TreeState:
    """See what is beneath *top*, up to *most* entries; two descriptors, whatever the depth.

    Raises:
        OSError: EAGAIN if directories were moved meanwhile.
    """
    look = _StateReader(most)
    try:
        descend(open_child, top, look)
    except WalkCancelledError:
        look.found.is_whole = False
    return look.found


class _StateReader:
    """A survey that is being made."""

    def __init__(self, most: int) -> None:
        self.found = TreeState()
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
            EntryState(kind, found.st_ino, 0, 0, 0)
            if is_directory
            else EntryState(kind, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, target)
        )
        return is_directory


class TreeDifference(NamedTuple):
    """One change."""

    operation: str
    """`remove`, `mkdir`, `link` or `write`."""
    path: str
    is_directory: bool
    target: str | None = None
    """The text of a link."""
    before_bytes: int | None = None
    after_bytes: int | None = None


def tree_differences(before: TreeState, after: TreeState) -> Iterator[TreeDifference]:
    """Removals first, from the depth up; then what was made or changed, parents first.

    What was renamed is a removal and something new.
    """
    old, new = before.entries, after.entries
    for path in sorted(old, reverse=True):
        if path not in new or _is_replaced(old[path], new[path]):
            yield _removal(path, old[path])
    for path in sorted(new):
        now, was = new[path], old.get(path)
        if was != now and (change := _change(path, was, now)):
            yield change


def _is_replaced(was: EntryState, now: EntryState) -> bool:
    """Whether there is something of another kind now, where one was that is recorded otherwise."""
    return was.kind is not now.kind and FileKind.DIRECTORY in (was.kind, now.kind)


def _removal(path: str, was: EntryState) -> TreeDifference:
    is_directory = was.kind is FileKind.DIRECTORY
    return TreeDifference("remove", path, is_directory, before_bytes=was.size_bytes)


def _change(path: str, was: EntryState | None, now: EntryState) -> TreeDifference | None:
    if now.kind is FileKind.DIRECTORY:
        # One that took the place of another is the same to everybody but for what is in it.
        is_new = was is None or was.kind is not FileKind.DIRECTORY
        return TreeDifference("mkdir", path, True) if is_new else None
    before_bytes = None if was is None or _is_replaced(was, now) else was.size_bytes
    if now.kind is FileKind.LINK:
        return TreeDifference("link", path, False, now.target, before_bytes=before_bytes)
    return TreeDifference("write", path, False, None, before_bytes, now.size_bytes)


_MOST_TOLD = 10


def chown_tree(open_child: Open, top: Handle, *, user: int, group: int) -> list[str]:
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
    look = _Chown(open_child, user, group)
    descend(open_child, top, look)
    return look.left


class _Chown:
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
        syscalls.chown_held_unchecked(held.fd, self._user, self._group)


_TOP = parse(".")
_CREATE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC


class UnmediatedAccess:
    """The whole of one root."""

    def __init__(self, beneath: Lookup) -> None:
        self._beneath = beneath

    def read_state(self, most: int) -> TreeState:
        """See what there is, up to *most* entries, so that a later survey shows what was changed."""
        return self._read_state(_TOP, most)

    def chown(self, user: int, group: int) -> list[str]:
        """Give what is ours to another user; the names of the first files that stay ours."""
        return self._chown(_TOP, user, group)

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
    def marker_file(self) -> Iterator[str]:
        """Put an empty file at the top for the time, with a name that nobody can guess; gives the name.

        One that a killed process leaves is removed like an unfinished file.
        """
        top, name = self._create_marker(_TOP)
        try:
            yield os.fsdecode(name)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=top.fd)

    @translated
    def _read_state(self, path: ParsedPath, most: int) -> TreeState:
        return read_tree_state(self._beneath.resolver.open, self._open(path), most)

    @translated
    def _chown(self, path: ParsedPath, user: int, group: int) -> list[str]:
        return chown_tree(self._beneath.resolver.open, self._open(path), user=user, group=group)

    @translated
    def _free_bytes(self, path: ParsedPath) -> int:
        top = self._open(path)
        found = os.fstatvfs(top.fd)
        return found.f_bavail * found.f_frsize

    @translated
    def _identity(self, path: ParsedPath) -> tuple[int, int]:
        top = self._open(path)
        found = os.fstat(top.fd)
        return found.st_dev, found.st_ino

    @translated
    def _flush(self, path: ParsedPath) -> None:
        top = self._open(path)
        syscalls.syncfs_unchecked(top.fd)

    @translated
    def _create_marker(self, path: ParsedPath) -> tuple[Handle, bytes]:
        top, name = self._open(path), DRAFT_PREFIX + os.urandom(16).hex().encode()
        os.close(os.open(name, _CREATE, 0o600, dir_fd=top.fd))
        return top, name

    def _open(self, path: ParsedPath) -> Handle:
        return Handle(self._beneath.open(path, SCAN))
