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
"""Holds the lock and what the lock guards."""
WAIT_SECONDS = 30.0
"""How long to wait for others; one change takes far less."""

_DIRECT = "direct"
"""Locked by those who let programs change the files without the gate."""
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_PAUSE_SECONDS = 0.000_05
_LONGEST_PAUSE_SECONDS = 0.002
_FORK_SECONDS = 1.0
"""How long a fork waits for a change to end."""


class SessionLock:
    """A lock on a file in the state directory of a session.

    Whoever has it may read and write the file by `fd`.
    """

    def __init__(
        self, state: Handle, *, wait_seconds: float = WAIT_SECONDS, session_id: str | None = None
    ) -> None:
        """Make the file if it is missing; that of the session *session_id* is not made again."""
        self._state: Handle | None = state
        self._session_id = session_id
        self._wait_seconds = wait_seconds
        self.turn = Turn()
        self._process = 0

    @property
    def fd(self) -> int:
        """The open file, or -1."""
        return -1 if self.turn.file is None else self.turn.file.fd

    def acquire(self) -> None:
        """Wait for the lock.

        Raises:
            BusyError: Somebody has kept it for too long.
            SessionMissingError: The session was deleted.
            UnavailableError: The file cannot be opened or locked.
            WouldWait: Somebody has it, and this thread must not wait.
        """
        if not self.turn.acquire(0):
            require_may_block()
            with blocking():
                if not self.turn.acquire(self._wait_seconds):
                    raise _busy()
        try:
            if self.turn.file is None or self._process != os.getpid():
                self._open()
            self._wait()
        except OSError as error:
            self.turn.release()
            if isinstance(error, CarrelError):
                raise
            reason = os.strerror(error.errno or errno.EIO)
        except BaseException:
            self.turn.release()
            raise
        else:
            return
        raise UnavailableError(f"the state of the session cannot be used: {reason}")

    def release(self) -> None:
        """Let others go on."""
        try:
            fcntl.flock(self.fd, fcntl.LOCK_UN)
        finally:
            self.turn.release()

    def close(self) -> None:
        """Let go of the file; waits until nobody uses it."""
        self.turn.acquire()
        try:
            self._state = self.turn.file = None
        finally:
            self.turn.release()

    def join_direct(self) -> Handle:
        """Be one of those who let programs change the files by themselves, until the handle is dropped."""
        handle = self._direct_file(_FLAGS)
        fcntl.flock(handle.fd, fcntl.LOCK_SH)
        return handle

    def has_direct(self) -> bool:
        """Whether anybody alive lets programs change the files; only who has the lock may ask."""
        try:
            handle = self._direct_file(_FLAGS & ~os.O_CREAT)
            fcntl.flock(handle.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except FileNotFoundError:
            return False
        return False

    def _direct_file(self, flags: int) -> Handle:
        if self._state is None:
            raise ClosedError("workspace is closed")
        return Handle(os.open(_DIRECT, flags, 0o600, dir_fd=self._state.fd))

    def _open(self) -> None:
        """Open the file: the first time, and in a forked child, which would share its parent's lock."""
        if self._state is None:
            raise ClosedError("workspace is closed")
        try:
            self.turn.file = Handle(os.open(FILE, self._flags(), 0o600, dir_fd=self._state.fd))
        except FileNotFoundError:
            raise SessionMissingError(f"no such session: {self._session_id!r}: it was deleted") from None
        self._process = os.getpid()

    def _flags(self) -> int:
        return _FLAGS if self._session_id is None else _FLAGS & ~os.O_CREAT

    def _wait(self) -> None:
        if not self._is_locked():
            require_may_block()
            with blocking():
                self._wait_longer()

    def _wait_longer(self) -> None:
        deadline = time.monotonic() + self._wait_seconds
        pause = _PAUSE_SECONDS
        while not self._is_locked():
            if time.monotonic() >= deadline:
                raise _busy()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _is_locked(self) -> bool:
        """Whether the lock is ours now."""
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class Turn:
    """One thread at a time and, where `forks` watches it, none while the process forks.

    So no child inherits the lock of a thread that it does not have, nor keeps the file of its parent locked.
    """

    def __init__(self) -> None:
        # One that its own thread may take again: an interrupt (Ctrl-C) can strike between taking it and
        # knowing that, and then who closes the workspace must not wait for itself.
        self._lock = RLock()
        self.file: Handle | None = None
        """What is locked for other processes."""

    def acquire(self, seconds: float = -1) -> bool:
        """Wait for one's turn, at most so long; whether it came."""
        return self._lock.acquire(timeout=seconds)

    def hold(self) -> bool:
        """Wait for the running change to end; whether it did."""
        return self.acquire(_FORK_SECONDS)

    def release(self) -> None:
        """End one's turn."""
        self._lock.release()

    def disown(self) -> None:
        """Begin anew in a child."""
        self._lock = RLock()
        self.file = None


def _busy() -> BusyError:
    return BusyError("the session is busy: somebody else has kept it for too long; try again")
