"""What an acknowledged change survives: the end of the process, or a power loss.

`Durability.PROCESS` leaves writing back to the host: a change survives `kill -9`, and a power loss may take
the last seconds. `Durability.DISK` flushes the content, the records and the names of a change first.

Not covered: a disk that says it has stored what it has not; a directory that we may not read, which is
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
    """How far a change has come when it is acknowledged; `PROCESS` makes each method do nothing."""

    PROCESS = "process"
    """The kernel has it."""
    DISK = "disk"
    """The disk has it."""

    def flush(self, fd: int) -> None:
        """Flush an open file or directory, with what is known about it."""
        if self is Durability.DISK:
            with blocking():
                os.fsync(fd)

    def flush_data(self, fd: int) -> None:
        """Flush the content and the size of an open file."""
        if self is Durability.DISK:
            with blocking():
                os.fdatasync(fd)

    def flush_held(self, fd: int) -> None:
        """Flush the file or directory that an `O_PATH` descriptor holds."""
        if self is Durability.DISK:
            _flush_opened(b".", fd)

    def flush_directory(self, path: str | os.PathLike[str]) -> None:
        """Flush a directory of the host."""
        if self is Durability.DISK:
            _flush_opened(path, None)

    def require_waiting(self) -> None:
        """Do nothing where this thread may wait for the disk, or need not.

        Raises:
            WouldWait: It has to wait and must not.
        """
        if self is Durability.DISK:
            require_may_block()


def unwritten(what: str, error: OSError) -> DiskError:
    """The error about *what*, which the disk did not take."""
    number = error.errno or errno.EIO
    kind = DiskFullError if number in (errno.ENOSPC, errno.EDQUOT) else DiskError
    return kind(f"{what} cannot be written: {os.strerror(number)}")


def _flush_opened(path: str | bytes | os.PathLike[str], held: int | None) -> None:
    """Flush a directory, or the file that *held* refers to."""
    try:
        try:
            fd = os.open(path, _DIRECTORY, dir_fd=held)
        except NotADirectoryError:
            fd = os.open(f"/proc/self/fd/{held}", _FILE)
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
