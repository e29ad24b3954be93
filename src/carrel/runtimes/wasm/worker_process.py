"""`WasmWorker`: a worker process as the host sees it, and the directory it may write to.

The engine lives in processes of its own: if it crashes, the host goes on, and what runs in it has none of the
host's files, memory or environment. A worker can do nothing but answer on the sockets that it was given.

A worker ends when the host hangs up, also if the host was killed: its first thread only waits for orders, and
exits at the end of that socket whatever the guests in other threads do. `PR_SET_PDEATHSIG` would be wrong
here: it is sent at the end of the *thread* that started the process, and any thread of the host may start a
worker.

Not covered: a worker that is stopped (SIGSTOP) ends when it goes on.

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
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING

from carrel.errors import SandboxExecutionError
from carrel.runtimes.frames import FrameSocket
from carrel.runtimes.wasm.interpreter import InterpreterHandle
from carrel.runtimes.wasm.protocol import CANCEL, MESSAGE, OPEN, OPEN_WARM

if TYPE_CHECKING:
    from carrel.runtimes.wasm.pool import Owner


_BOOT = (
    "import sys; sys.path[:] = sys.argv[3:];"
    " from carrel.runtimes.wasm.worker.main import main; main(int(sys.argv[1]), sys.argv[2])"
)
_TOLD_BYTES = 2_000
_EXIT_SECONDS = 1.0


class WasmWorker:
    """A process that runs interpreters."""

    def __init__(self, cache_directory: str) -> None:
        """Start one, with the guest that was compiled into *cache_directory*.

        Raises:
            SandboxExecutionError: The host does not let us.
        """
        self.load = 0
        """How many scripts run in it."""
        self.opening = 0
        """How many interpreters are about to be opened in it."""
        self.owner: Owner | None = None
        """Whose scripts it runs; nobody's yet."""
        self._lock = Lock()
        self._ending: str | None = None
        self._numbers = count(1)
        with ExitStack() as undo:
            try:
                self._directory = WorkerDirectory(cache_directory)
                undo.callback(self._directory.remove)
                self._control, theirs = socket.socketpair()
                undo.callback(self._control.close)
                with theirs:
                    self._told = undo.enter_context(tempfile.TemporaryFile())
                    self._process = self._start(theirs.fileno(), cache_directory)
            except OSError as error:
                raise SandboxExecutionError(f"no worker process could be started: {error.strerror}") from None
            undo.pop_all()

    def _start(self, fd: int, cache_directory: str) -> subprocess.Popen[bytes]:
        if not sys.executable:
            raise SandboxExecutionError("no worker process could be started: this Python has no program")
        paths = [os.path.abspath(path) for path in sys.path]
        return subprocess.Popen(  # noqa: S603  # our own module, in this very Python
            [sys.executable, "-I", "-S", "-c", _BOOT, str(fd), cache_directory, *paths],
            env={"TMPDIR": self._directory.path, "PATH": os.defpath, "LC_ALL": "C.UTF-8"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._told,
            pass_fds=(fd,),
            start_new_session=True,
        )

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self._process.poll() is None

    def open(self, *, metered: bool, warm: bool) -> InterpreterHandle:
        """Ask for an interpreter, which is ready later; its line is broken if the process is gone."""
        ours, theirs = socket.socketpair()
        number = next(self._numbers)
        message = MESSAGE.pack(OPEN_WARM if warm else OPEN, metered, number, 0)
        with theirs, suppress(OSError), self._lock:
            socket.send_fds(self._control, [message], [theirs.fileno()])
        return InterpreterHandle(self, number, FrameSocket(ours, body_bytes=0), metered=metered)

    def cancel(self, number: int, serial: int) -> None:
        """Stop a script of one of its interpreters."""
        try:
            with self._lock:
                self._control.sendall(MESSAGE.pack(CANCEL, 0, number, serial))
        except OSError:
            return

    def end(self) -> str:
        """End the process, and wait until it is gone; how it ended, if it ended by itself."""
        with self._lock:
            if self._ending is None:
                code = self._process.poll()
                if code is None:
                    with suppress(ProcessLookupError):
                        # It is the leader of a session of its own; whatever it managed to start is in there.
                        os.killpg(self._process.pid, signal.SIGKILL)
                    self._process.wait()
                self._ending = self._told_ending(code)
                self._forget()
            return self._ending

    def cause(self) -> str:
        """How the process ended, which hung up; one that only hung up is ended."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_SECONDS)
        return self.end()

    def _told_ending(self, code: int | None) -> str:
        if code is None:
            return "it was stopped"
        if code < 0:
            return f"it was killed by {_signal_name(-code)}"
        self._told.seek(0, os.SEEK_END)
        self._told.seek(max(self._told.tell() - _TOLD_BYTES, 0))
        told = self._told.read().decode("utf-8", "replace").strip().splitlines()
        return told[-1] if told else f"it exited with {code}"

    def abandon(self) -> None:
        """Let go of the process in a child that was forked; it is the parent's."""
        self._lock, self._ending = Lock(), "it is the parent's"
        self._control.close()
        self._told.close()
        self._directory.abandon()
        self._process.returncode = 0

    def _forget(self) -> None:
        self._control.close()
        self._told.close()
        self._directory.remove()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


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
