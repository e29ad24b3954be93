"""Remove whole trees, iteratively, and count what that frees.

Nothing here follows a link or enters another mount: the resolver opens each child beneath the descriptor of
its parent, with `O_NOFOLLOW`.
"""

from __future__ import annotations

import errno
import os

from carrel.fs import syscalls
from carrel.fs.errors import os_error
from carrel.fs.local.resolve import Open
from carrel.fs.rules import freed_bytes
from carrel.values import Usage

LEVELS = 32
"""Most directories that a removal holds open; deeper ones are moved up first."""
PASSES = 1_000_000
"""Most rounds of moving directories up: enough for any real depth, and a bound for a hostile one."""
ATTEMPTS = 64
"""Most attempts to remove a directory that others keep filling."""

SCAN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Removal:
    """Removes trees and counts what that frees: a file counts when its last name is unlinked here."""

    def __init__(self, open_child: Open) -> None:
        self._open = open_child
        self._disk_bytes = 0
        self._entries = 0

    @property
    def freed(self) -> Usage:
        """The usage of everything removed so far."""
        return Usage(disk_bytes=self._disk_bytes, entries=self._entries)

    def remove(self, parent: int, name: bytes) -> None:
        """Remove the directory *name* of *parent* and everything in it.

        Others may remove the same tree at the same time; missing entries are ignored.
        """
        for _ in range(ATTEMPTS):
            try:
                top = open_to_empty(self._open, parent, name)
            except FileNotFoundError:
                return
            except NotADirectoryError:
                self._unlink(parent, name)
                return
            try:
                self.empty(top)
            finally:
                os.close(top)
            try:
                os.rmdir(name, dir_fd=parent)
            except FileNotFoundError:
                return
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
            else:
                self._entries += 1
                return
        raise os_error(errno.ENOTEMPTY)

    def empty(self, top: int) -> None:
        """Remove everything in the directory *top*."""
        for _ in range(PASSES):
            if not self._empty_once(top):
                return

    def _empty_once(self, top: int) -> bool:
        """Remove everything in *top* down to `LEVELS`; deeper directories are moved up into *top*.

        Returns whether anything was moved up, so that *top* must be emptied again.
        """
        moved = False
        levels: list[tuple[int, bytes, list[bytes]]] = [(top, b"", self._unlink_files(top))]
        try:
            while True:
                fd, name, directories = levels[-1]
                if directories:
                    child = directories.pop()
                    if len(levels) < LEVELS:
                        self._push(levels, fd, child)
                    else:
                        moved = _move_up(self._open, fd, child, top) or moved
                    continue
                if len(levels) == 1:
                    return moved
                levels.pop()
                os.close(fd)
                self._rmdir(levels[-1][0], name)
        finally:
            for fd, _, _ in levels[1:]:
                os.close(fd)

    def _push(self, levels: list[tuple[int, bytes, list[bytes]]], fd: int, name: bytes) -> None:
        try:
            child = open_to_empty(self._open, fd, name)
        except FileNotFoundError:
            return
        except NotADirectoryError:
            self._unlink(fd, name)
            return
        levels.append((child, name, []))
        levels[-1][2].extend(self._unlink_files(child))

    def _unlink_files(self, fd: int) -> list[bytes]:
        """Unlink everything in *fd* but its directories, and return those."""
        directories: list[bytes] = []
        with os.scandir(fd) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    directories.append(os.fsencode(entry.name))
                    continue
                try:
                    found = entry.stat(follow_symlinks=False)
                    os.unlink(entry.name, dir_fd=fd)
                except (FileNotFoundError, IsADirectoryError):
                    continue
                self._entries += 1
                self._disk_bytes += freed_bytes(found)
        return directories

    def _unlink(self, fd: int, name: bytes) -> None:
        """Unlink an entry that turned out not to be a directory."""
        try:
            found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            os.unlink(name, dir_fd=fd)
        except (FileNotFoundError, IsADirectoryError):
            return
        self._entries += 1
        self._disk_bytes += freed_bytes(found)

    def _rmdir(self, fd: int, name: bytes) -> None:
        """Remove an emptied directory; one that is no longer empty is left for the next attempt."""
        try:
            os.rmdir(name, dir_fd=fd)
        except FileNotFoundError:
            return
        except NotADirectoryError:
            self._unlink(fd, name)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
        else:
            self._entries += 1


def open_to_empty(open_child: Open, parent: int, name: bytes) -> int:
    """Open the directory *name* for removal, adding the missing permissions of its owner."""
    try:
        fd = open_child(parent, name, SCAN)
    except PermissionError:
        unlock(open_child, parent, name)
        fd = open_child(parent, name, SCAN)
    mode = os.fstat(fd).st_mode
    if mode & 0o700 != 0o700:
        try:
            os.fchmod(fd, 0o700)
        except PermissionError:
            os.close(fd)
            raise
    return fd


def unlock(open_child: Open, parent: int, name: bytes) -> None:
    """Give the owner of the directory *name* all permissions."""
    fd = open_child(parent, name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        syscalls.chmod_held_unchecked(fd, 0o700)
    finally:
        os.close(fd)


def _move_up(open_child: Open, fd: int, name: bytes, top: int) -> bool:
    fresh = os.urandom(12).hex()
    try:
        os.rename(name, fresh, src_dir_fd=fd, dst_dir_fd=top)
    except FileNotFoundError:
        return False
    except PermissionError:
        # Moving a directory changes its `..`, so its own mode counts too.
        unlock(open_child, fd, name)
        os.rename(name, fresh, src_dir_fd=fd, dst_dir_fd=top)
    return True
