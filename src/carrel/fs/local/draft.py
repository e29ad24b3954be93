"""Drafts: new content for a file, invisible until it is complete.

There are three kinds, by what the file system offers:

- a file in a scratch directory outside the workspace, under a random name and locked by its writer, so that
  `sweep_abandoned` recognizes an abandoned one;
- an unnamed file (`O_TMPFILE`) in the target's directory, which disappears if the process dies; to replace a
  file, it gets a random name at the top of the root just before the rename;
- a named temporary file at the top of the root, if the file system has no unnamed files or the host has no
  /proc.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from contextlib import suppress

from carrel.fs import syscalls
from carrel.fs.errors import os_error
from carrel.fs.handle import Handle, names_in
from carrel.fs.nonblocking import require_may_block
from carrel.fs.rules import DRAFT_PREFIX

ABANDONED_SECONDS = 60
"""Younger drafts are not swept, because their writer may not have locked them yet."""

LOCK_TRIES = 500
LOCK_WAIT_SECONDS = 0.001

_NAMED = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
_NO_TMPFILE = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)


class Draft:
    """One temporary file; ends with `replace`, `create` or `discard`."""

    __slots__ = ("_name", "_names", "fd")

    def __init__(self, names: Handle, unnamed_in: Handle | None = None) -> None:
        """Create a draft whose name, if it needs one, is in the directory *names*.

        With *unnamed_in*, it is an unnamed file in that directory if the file system supports that.
        """
        self._names = names
        self._name: bytes | None = None
        self.fd = -1 if unnamed_in is None else _open_unnamed(unnamed_in.fd)
        if self.fd < 0:
            self._open_named()

    def __enter__(self) -> Draft:
        return self

    def __exit__(self, *exception: object) -> None:
        self.discard()

    def _open_named(self) -> None:
        name = _fresh_name()
        self.fd = os.open(name, _NAMED, 0o666, dir_fd=self._names.fd)
        self._name = name
        # The lock shows that the writer is alive; without locks, abandoned drafts are not swept.
        with suppress(OSError):
            lock_soon(self.fd)

    def write(self, data: bytes) -> None:
        """Append *data* to the draft."""
        done = os.write(self.fd, data)
        if done < len(data):
            view = memoryview(data)
            while done < len(data):
                done += os.write(self.fd, view[done:])

    def replace(self, directory: Handle, name: bytes) -> None:
        """Rename the draft over the file at *name*."""
        if self._name is None:
            self._give_name(directory)
        os.rename(self._name or b"", name, src_dir_fd=self._names.fd, dst_dir_fd=directory.fd)
        self._name = None

    def _give_name(self, directory: Handle) -> None:
        """Name an unnamed draft where sweepers look, or next to its target if permissions forbid that."""
        name = _fresh_name()
        try:
            syscalls.link_held_unchecked(self.fd, self._names.fd, name)
        except PermissionError:
            self._names = directory
            syscalls.link_held_unchecked(self.fd, directory.fd, name)
        self._name = name

    def create(self, directory: Handle, name: bytes) -> None:
        """Give the draft the name *name*; EEXIST if it is taken."""
        if self._name is None:
            syscalls.link_held_unchecked(self.fd, directory.fd, name)
            return
        rename_without_replacing(self._names.fd, self._name, directory.fd, name)
        self._name = None

    def hide(self) -> None:
        """Remove the name, so that the file is no longer a draft; the content stays until `discard`."""
        if self._name is not None:
            with suppress(FileNotFoundError):
                os.unlink(self._name, dir_fd=self._names.fd)
            self._name = None

    def discard(self) -> None:
        """Close the draft, and remove it unless it was put in place."""
        self.hide()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def replace_by_link(text: bytes, names: Handle, directory: Handle, name: bytes) -> None:
    """Replace the file or link at *name* by a link with *text*, which is created in *names* first."""
    temporary = _fresh_name()
    os.symlink(text, temporary, dir_fd=names.fd)
    try:
        os.rename(temporary, name, src_dir_fd=names.fd, dst_dir_fd=directory.fd)
    except OSError:
        os.unlink(temporary, dir_fd=names.fd)
        raise


def lock_soon(fd: int) -> None:
    """Lock an open file against other carrel processes; EAGAIN if it stays locked for half a second.

    Does nothing if the file system has no locks.
    """
    for _ in range(LOCK_TRIES):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            require_may_block()
            time.sleep(LOCK_WAIT_SECONDS)
        except OSError:
            return
        else:
            return
    raise os_error(errno.EAGAIN)


def _fresh_name() -> bytes:
    return DRAFT_PREFIX + os.urandom(8).hex().encode()


def _open_unnamed(directory: int) -> int:
    """Open an unnamed file; -1 if it is not supported or could not be named later."""
    if not os.path.exists("/proc/self/fd"):
        return -1
    try:
        return os.open(b".", os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o666, dir_fd=directory)
    except OSError as error:
        if error.errno not in _NO_TMPFILE:
            raise
        return -1


def rename_without_replacing(source_dir: int, source: bytes, target_dir: int, target: bytes) -> None:
    """Rename atomically; EEXIST if *target* exists, also where the file system has no flag for that."""
    try:
        syscalls.renameat2_unchecked(source_dir, source, target_dir, target, syscalls.RENAME_NOREPLACE)
        return
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS):
            raise
    if stat.S_ISDIR(os.stat(source, dir_fd=source_dir, follow_symlinks=False).st_mode):
        # A directory cannot have a second name, but it may replace an empty directory created just now.
        os.mkdir(target, 0o700, dir_fd=target_dir)
        try:
            os.rename(source, target, src_dir_fd=source_dir, dst_dir_fd=target_dir)
        except OSError:
            os.rmdir(target, dir_fd=target_dir)
            raise
        return
    os.link(source, target, src_dir_fd=source_dir, dst_dir_fd=target_dir, follow_symlinks=False)
    os.unlink(source, dir_fd=source_dir)


def drafted_bytes(directory: int) -> int:
    """Return the total size of the drafts in *directory* whose writers are alive."""
    size = 0
    for name in names_in(directory):
        if not name.startswith(DRAFT_PREFIX):
            continue
        with suppress(OSError):
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
            try:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                size += os.fstat(fd).st_size
            finally:
                os.close(fd)
    return size


def sweep_abandoned(directory: int, now: float) -> int:
    """Remove the drafts in *directory* whose writers are gone; returns how many."""
    removed = 0
    for name in names_in(directory):
        if not name.startswith(DRAFT_PREFIX):
            continue
        with suppress(OSError):
            if _is_abandoned(directory, name, now - ABANDONED_SECONDS):
                os.unlink(name, dir_fd=directory)
                removed += 1
    return removed


def _is_abandoned(directory: int, name: bytes, oldest: float) -> bool:
    """Whether this is an old draft, file or link, that no process has locked."""
    found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if found.st_mtime > oldest:
        return False
    if not stat.S_ISREG(found.st_mode):
        return stat.S_ISLNK(found.st_mode)
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=directory)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        os.close(fd)
    return True
