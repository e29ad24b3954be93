"""`UsageLock`: shows all processes of this host that a container is in use.

Every user holds a shared lock on a file. The kernel releases the lock when a process ends, however it ends,
so a process that gets the exclusive lock knows that no living process uses the container.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from carrel.paths.session_id import id_problem

LOCK_SUFFIX = ".lock"
_TRIES = 100


class UsageLock:
    """The usage lock of one container, shared or exclusive."""

    def __init__(self, path: Path, fd: int) -> None:
        self._path = path
        self._fd = fd

    @classmethod
    def share(cls, path: Path) -> UsageLock:
        """Take the shared lock, waiting for a process that holds it exclusively."""
        return cls(path, _open_locked(path, fcntl.LOCK_SH))

    def try_exclusive(self) -> bool:
        """Try to make the lock exclusive; if true, no one else gets it until `make_shared` or `release`."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # The kernel may have released the shared lock in the attempt.
            fcntl.flock(self._fd, fcntl.LOCK_SH)
            return False
        return True

    def exists(self) -> bool:
        """Whether the lock file still exists at its path; someone may have removed it."""
        return _is_at(self._fd, self._path)

    def make_shared(self) -> None:
        """Go back to the shared lock."""
        fcntl.flock(self._fd, fcntl.LOCK_SH)

    def release(self, *, remove_file: bool = False) -> None:
        """Release the lock; with *remove_file*, which requires the exclusive lock, also remove the file."""
        if remove_file:
            with suppress(FileNotFoundError):
                self._path.unlink()
        os.close(self._fd)


@contextmanager
def exclusive_usage_lock(path: Path) -> Iterator[UsageLock | None]:
    """Take the exclusive lock, or yield `None` if someone holds the lock."""
    try:
        fd = _open_locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield None
        return
    lock = UsageLock(path, fd)
    is_done = False
    try:
        yield lock
        is_done = True
    finally:
        lock.release(remove_file=is_done)


def recorded_keys(directory: Path) -> list[str]:
    """Return the keys whose lock files are in *directory*, held or not."""
    try:
        found = sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []
    names = (name.removesuffix(LOCK_SUFFIX) for name in found if name.endswith(LOCK_SUFFIX))
    return [name for name in names if id_problem(name) is None]


def is_held(path: Path) -> bool:
    """Whether a living process holds the lock; does not change anything."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _open_locked(path: Path, operation: int) -> int:
    """Open and lock the file that is at *path* when the lock is taken."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for _ in range(_TRIES):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, operation)
            if _is_at(fd, path):
                return fd
        except BaseException:
            os.close(fd)
            raise
        # A process with the exclusive lock removed the file in the meantime.
        os.close(fd)
    raise BlockingIOError(f"the lock {path.name!r} is removed again and again; try again later")


def _is_at(fd: int, path: Path) -> bool:
    held = os.fstat(fd)
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino)
