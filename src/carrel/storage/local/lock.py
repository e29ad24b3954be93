"""`SessionLock`: one caller at a time in a session, across threads and processes."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from threading import RLock

from carrel.errors import BusyError, CarrelError, ClosedError, SessionMissingError, UnavailableError
from carrel.fs.handle import Handle
from carrel.fs.nonblocking import blocking, require_may_block

FILE = "ledger"
"""Name of the file that holds the lock and the data that it guards."""
WAIT_SECONDS = 30.0
"""Seconds to wait for the lock; one change takes far less."""

_UNMEDIATED = "direct"
"""Name of the file that is locked while programs change files without the gate."""
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_PAUSE_SECONDS = 0.000_05
_MAX_PAUSE_SECONDS = 0.002
_FORK_SECONDS = 1.0
"""Seconds that a fork waits for a change to end."""


class SessionLock:
    """A lock on a file in the state directory of a session.

    The holder of the lock may read and write the file through `fd`. Where `fork_guard` watches the lock, no
    child inherits the lock of a thread that it does not have, nor keeps its parent's file locked.
    """

    def __init__(
        self, state: Handle, *, wait_seconds: float = WAIT_SECONDS, session_id: str | None = None
    ) -> None:
        """Lock the file in *state*. It is created if it is missing, unless a *session_id* is given."""
        self._state: Handle | None = state
        self._session_id = session_id
        self._wait_seconds = wait_seconds
        # Reentrant: an interrupt (Ctrl-C) can strike after the lock is taken and before that is noted, and
        # closing the workspace in the same thread must not deadlock then.
        self._threads = RLock()
        """Excludes the other threads of this process."""
        self._file: Handle | None = None
        """The file, which is locked against other processes."""
        self._process = 0

    @property
    def fd(self) -> int:
        """The descriptor of the open file, or -1."""
        return -1 if self._file is None else self._file.fd

    def acquire(self) -> None:
        """Acquire the lock, waiting for its holder.

        Raises:
            BusyError: It was held for too long.
            SessionMissingError: The session was deleted.
            UnavailableError: The file cannot be opened or locked.
            WouldBlock: It is held, and this thread must not wait.
        """
        if not self._threads.acquire(timeout=0):
            require_may_block()
            with blocking():
                if not self._threads.acquire(timeout=self._wait_seconds):
                    raise _busy()
        try:
            if self._file is None or self._process != os.getpid():
                self._open()
            if not self._try_lock():
                self._wait()
        except OSError as error:
            self._threads.release()
            if isinstance(error, CarrelError):
                raise
            reason = os.strerror(error.errno or errno.EIO)
        except BaseException:
            self._threads.release()
            raise
        else:
            return
        raise UnavailableError(f"the state of the session cannot be used: {reason}")

    def release(self) -> None:
        """Release the lock."""
        try:
            fcntl.flock(self.fd, fcntl.LOCK_UN)
        finally:
            self._threads.release()

    def close(self) -> None:
        """Close the file once the lock is free in this process."""
        self._threads.acquire()
        try:
            self._state = self._file = None
        finally:
            self._threads.release()

    def join_unmediated(self) -> Handle:
        """Mark that programs change files without the gate, until the returned handle is dropped."""
        handle = self._open_unmediated(_FLAGS)
        fcntl.flock(handle.fd, fcntl.LOCK_SH)
        return handle

    def has_unmediated(self) -> bool:
        """Whether a live process lets programs change files without the gate. Requires the lock."""
        try:
            handle = self._open_unmediated(_FLAGS & ~os.O_CREAT)
            fcntl.flock(handle.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except FileNotFoundError:
            return False
        return False

    def _open_unmediated(self, flags: int) -> Handle:
        if self._state is None:
            raise ClosedError("workspace is closed")
        return Handle(os.open(_UNMEDIATED, flags, 0o600, dir_fd=self._state.fd))

    def _open(self) -> None:
        """Open the file: on first use, and in a forked child, which would share its parent's lock."""
        if self._state is None:
            raise ClosedError("workspace is closed")
        try:
            self._file = Handle(os.open(FILE, self._flags(), 0o600, dir_fd=self._state.fd))
        except FileNotFoundError:
            raise SessionMissingError(f"no such session: {self._session_id!r}: it was deleted") from None
        self._process = os.getpid()

    def _flags(self) -> int:
        return _FLAGS if self._session_id is None else _FLAGS & ~os.O_CREAT

    def _wait(self) -> None:
        require_may_block()
        with blocking():
            self._poll()

    def _poll(self) -> None:
        """Try to take the lock until it is free or the time is over."""
        deadline = time.monotonic() + self._wait_seconds
        pause = _PAUSE_SECONDS
        while not self._try_lock():
            if time.monotonic() >= deadline:
                raise _busy()
            time.sleep(pause)
            pause = min(2 * pause, _MAX_PAUSE_SECONDS)

    def _try_lock(self) -> bool:
        """Try to take the lock without waiting; return whether it is held now."""
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def before_fork(self) -> bool:
        """Wait for the running change to end; return whether it did."""
        return self._threads.acquire(timeout=_FORK_SECONDS)

    def after_fork_in_parent(self) -> None:
        """Let changes continue."""
        self._threads.release()

    def after_fork_in_child(self) -> None:
        """Replace the lock of this process and drop the parent's file."""
        self._threads = RLock()
        self._file = None


def _busy() -> BusyError:
    return BusyError("the session is busy: another caller has held it for too long; try again")
