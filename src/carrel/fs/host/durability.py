"""Durability: what an acknowledged change survives, the end of the process or a power loss.

`Durability.PROCESS` leaves writing back to the host: a change survives `kill -9`, and a power loss may take
the last seconds. `Durability.DISK` flushes the content, the records and the names of a change first.

Not covered: a disk that reports data as stored when it is not; a directory without read permission, which is
flushed with everything else on the host, so that its errors are not reported.
"""

from __future__ import annotations

import errno
import os
from enum import StrEnum

from carrel.errors import DiskError, DiskFullError
from carrel.fs.nonblocking import blocking, require_may_block

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Durability(StrEnum):
    """Where a change is when it is acknowledged; with `PROCESS`, the flush methods do nothing."""

    PROCESS = "process"
    """In the kernel's cache."""
    DISK = "disk"
    """On disk."""

    def flush(self, fd: int) -> None:
        """Flush an open file or directory, with its metadata."""
        if self is Durability.DISK:
            with blocking():
                os.fsync(fd)

    def flush_data(self, fd: int) -> None:
        """Flush the content and the size of an open file."""
        if self is Durability.DISK:
            with blocking():
                os.fdatasync(fd)

    def flush_held(self, fd: int) -> None:
        """Flush the file or directory that an `O_PATH` descriptor refers to."""
        if self is Durability.DISK:
            _flush_opened(b".", fd)

    def flush_directory(self, path: str | os.PathLike[str]) -> None:
        """Flush a directory of the host."""
        if self is Durability.DISK:
            _flush_opened(path, None)

    def require_waiting(self) -> None:
        """Do nothing unless this thread would have to wait for the disk and must not.

        Raises:
            WouldBlock: It would.
        """
        if self is Durability.DISK:
            require_may_block()


def unwritten(what: str, error: OSError) -> DiskError:
    """Return the error for *what*, which could not be written."""
    number = error.errno or errno.EIO
    kind = DiskFullError if number in (errno.ENOSPC, errno.EDQUOT) else DiskError
    return kind(f"{what} cannot be written: {os.strerror(number)}")


def _flush_opened(path: str | bytes | os.PathLike[str], path_fd: int | None) -> None:
    """Flush a directory, or the file that *path_fd* refers to."""
    try:
        try:
            fd = os.open(path, _DIRECTORY, dir_fd=path_fd)
        except NotADirectoryError:
            fd = os.open(f"/proc/self/fd/{path_fd}", _FILE)
    except FileNotFoundError:
        # It was removed in the meantime.
        return
    except PermissionError:
        os.sync()
        return
    try:
        with blocking():
            os.fsync(fd)
    finally:
        os.close(fd)
