"""`UsageLock`: tells all processes of this host that a container is in use.

Everybody who uses it holds a shared lock on a file. The kernel lets go of it when a process ends, however it
ends, so whoever gets the lock alone knows that nobody alive uses the container.
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
    """The lock of one container, shared with others or held alone."""

    def __init__(self, path: Path, fd: int) -> None:
        self._path = path
        self._fd = fd

    @classmethod
    def share(cls, path: Path) -> UsageLock:
        """Hold it with others, waiting for one who has it alone."""
        return cls(path, _locked(path, fcntl.LOCK_SH))

    def alone(self) -> bool:
        """Whether nobody else holds it; if so, nobody else gets it until `share_again` or `release`."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # The kernel may have let go of the shared one to try.
            fcntl.flock(self._fd, fcntl.LOCK_SH)
            return False
        return True

    def is_there(self) -> bool:
        """Whether this still is what others would hold; somebody may have taken the file away."""
        return _is_at(self._fd, self._path)

    def share_again(self) -> None:
        """Let others hold it too."""
        fcntl.flock(self._fd, fcntl.LOCK_SH)

    def release(self, *, forget: bool = False) -> None:
        """Let go; with *forget*, which wants it held alone, the file goes too."""
        if forget:
            with suppress(FileNotFoundError):
                self._path.unlink()
        os.close(self._fd)


@contextmanager
def exclusive_usage_lock(path: Path) -> Iterator[UsageLock | None]:
    """Hold it alone if nobody else holds it; `None` if somebody does."""
    try:
        fd = _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield None
        return
    hold = UsageLock(path, fd)
    forget = False
    try:
        yield hold
        forget = True
    finally:
        hold.release(forget=forget)


def recorded_keys(directory: Path) -> list[str]:
    """The names whose locks are in *directory*, held or not."""
    try:
        found = sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return []
    names = (name.removesuffix(LOCK_SUFFIX) for name in found if name.endswith(LOCK_SUFFIX))
    return [name for name in names if id_problem(name) is None]


def is_held(path: Path) -> bool:
    """Whether somebody alive holds it; looking changes nothing."""
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


def _locked(path: Path, how: int) -> int:
    """The file with a lock on it, which still is at *path*."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    for _ in range(_TRIES):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, how)
            if _is_at(fd, path):
                return fd
        except BaseException:
            os.close(fd)
            raise
        # Whoever had it alone took the file away meanwhile.
        os.close(fd)
    raise BlockingIOError(f"the lock {path.name!r} is taken away again and again")


def _is_at(fd: int, path: Path) -> bool:
    mine = os.fstat(fd)
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return (found.st_dev, found.st_ino) == (mine.st_dev, mine.st_ino)
