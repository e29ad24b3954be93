"""The directory of a worker process, beside the compiled guest: the engine needs a place for its own files.

A worker may write nowhere else, and removes it when its host is gone. What is left where both were killed is
removed when the next worker starts. Where the guest lies on a disk that cannot be written to, as in the image
of a container, the directory is among the temporary files of the system; a worker whose host was killed then
only empties it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress

from carrel.errors import SandboxExecutionError

_PREFIX = "worker-"
_PREFIX_ELSEWHERE = "carrel-worker-"
_CLOSED = (errno.EACCES, errno.EPERM, errno.EROFS)
_YOUNG_SECONDS = 60
"""A directory that was just made may not be locked yet."""


class WorkerDirectory:
    """A new directory, locked as long as the host needs it."""

    def __init__(self, parent: str) -> None:
        """Make one in *parent*, or among the temporary files if *parent* cannot be written to.

        Raises:
            SandboxExecutionError: The host does not let us.
        """
        try:
            self.path = _made(parent)
            self._lock = _locked(self.path, fcntl.LOCK_SH)
            return
        except OSError as error:
            problem = error.strerror
        raise SandboxExecutionError(f"no directory for a worker process could be made: {problem}")

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)

    def abandon(self) -> None:
        """Let go of it in a child that was forked; it is the parent's."""
        os.close(self._lock)


def _made(parent: str) -> str:
    try:
        return _made_in(parent, _PREFIX)
    except OSError as error:
        if error.errno not in _CLOSED:
            raise
    return _made_in(tempfile.gettempdir(), _PREFIX_ELSEWHERE)


def _made_in(parent: str, prefix: str) -> str:
    _sweep(parent, prefix)
    return tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=parent)


def _sweep(parent: str, prefix: str) -> None:
    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        with suppress(OSError):
            if name.startswith(prefix) and time.time() - os.stat(path).st_mtime > _YOUNG_SECONDS:
                os.close(_locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB))
                shutil.rmtree(path, ignore_errors=True)


def _locked(path: str, how: int) -> int:
    """The directory, open and locked.

    Raises:
        OSError: Somebody else has it.
    """
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, how)
    except OSError:
        os.close(fd)
        raise
    return fd
