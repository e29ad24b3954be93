"""`WasmWorker`: the host's handle for a worker process, and the directory that the process may write to.

The engine runs in separate processes: the host survives a crash of the engine, and what runs in it has none
of the host's files, memory or environment. A worker can only answer on the sockets that it received.

A worker exits when the host closes its socket, also if the host was killed: its main thread only waits for
control messages, and exits at the end of that socket whatever the guests in other threads do.
`PR_SET_PDEATHSIG` cannot be used: the kernel sends it when the *thread* that started the process exits, and
any thread of the host may start a worker.

Not covered: a worker that is stopped (SIGSTOP) exits only when it is continued.

A worker can write only to its own directory, and removes it when its host is gone. If both were killed, the
directory is removed when the next worker starts. If the guest is on a read-only disk, as in a container
image, the directory is created among the temporary files of the system; a worker whose host was killed then
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
_MAX_STDERR_BYTES = 2_000
_EXIT_SECONDS = 1.0


class WasmWorker:
    """A worker process, which runs interpreters."""

    def __init__(self, cache_directory: str) -> None:
        """Start a worker with the guest that was compiled into *cache_directory*.

        Raises:
            SandboxExecutionError: The host cannot start a process.
        """
        self.load = 0
        """Number of scripts that run in it."""
        self.opening = 0
        """Number of interpreters being opened in it."""
        self.owner: Owner | None = None
        """Owner of the scripts that it runs; `None` until it receives the first one."""
        self._lock = Lock()
        self._end_reason: str | None = None
        self._numbers = count(1)
        with ExitStack() as undo:
            try:
                self._directory = WorkerDirectory(cache_directory)
                undo.callback(self._directory.remove)
                self._control, theirs = socket.socketpair()
                undo.callback(self._control.close)
                with theirs:
                    self._stderr = undo.enter_context(tempfile.TemporaryFile())
                    self._process = self._start(theirs.fileno(), cache_directory)
            except OSError as error:
                raise SandboxExecutionError(f"no worker process could be started: {error.strerror}") from None
            undo.pop_all()

    def _start(self, fd: int, cache_directory: str) -> subprocess.Popen[bytes]:
        if not sys.executable:
            raise SandboxExecutionError("no worker process could be started: sys.executable is not set")
        paths = [os.path.abspath(path) for path in sys.path]
        return subprocess.Popen(  # noqa: S603  # our own module, in the running Python
            [sys.executable, "-I", "-S", "-c", _BOOT, str(fd), cache_directory, *paths],
            env={"TMPDIR": self._directory.path, "PATH": os.defpath, "LC_ALL": "C.UTF-8"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._stderr,
            pass_fds=(fd,),
            start_new_session=True,
        )

    @property
    def is_alive(self) -> bool:
        """Whether the process is running."""
        return self._process.poll() is None

    def open(self, *, metered: bool, warm: bool) -> InterpreterHandle:
        """Request an interpreter, which becomes ready later; its socket is closed if the process is gone.

        Raises:
            SandboxExecutionError: The host cannot create a socket.
        """
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise SandboxExecutionError(f"no interpreter could be opened: {error.strerror}") from None
        number = next(self._numbers)
        message = MESSAGE.pack(OPEN_WARM if warm else OPEN, metered, number, 0)
        with theirs, suppress(OSError), self._lock:
            socket.send_fds(self._control, [message], [theirs.fileno()])
        return InterpreterHandle(self, number, FrameSocket(ours, body_bytes=0), metered=metered)

    def cancel(self, number: int, serial: int) -> None:
        """Stop a script in one of its interpreters."""
        try:
            with self._lock:
                self._control.sendall(MESSAGE.pack(CANCEL, 0, number, serial))
        except OSError:
            return

    def end(self) -> str:
        """Kill and reap the process; return how it ended if it had ended by itself."""
        with self._lock:
            if self._end_reason is None:
                code = self._process.poll()
                if code is None:
                    with suppress(ProcessLookupError):
                        # It leads its own session, which holds any process that it managed to start.
                        os.killpg(self._process.pid, signal.SIGKILL)
                    self._process.wait()
                self._end_reason = self._describe_end(code)
                self._release()
            return self._end_reason

    def cause(self) -> str:
        """Return how a process that closed its socket ended; kill it if it still runs."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_SECONDS)
        return self.end()

    def _describe_end(self, code: int | None) -> str:
        if code is None:
            return "it was stopped"
        if code < 0:
            return f"it was killed by {_signal_name(-code)}"
        self._stderr.seek(0, os.SEEK_END)
        self._stderr.seek(max(self._stderr.tell() - _MAX_STDERR_BYTES, 0))
        lines = self._stderr.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else f"it exited with {code}"

    def abandon(self) -> None:
        """Release the process in a forked child; it belongs to the parent."""
        self._lock, self._end_reason = Lock(), "it belongs to the parent process"
        self._control.close()
        self._stderr.close()
        self._directory.abandon()
        self._process.returncode = 0

    def _release(self) -> None:
        self._control.close()
        self._stderr.close()
        self._directory.remove()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_PREFIX = "worker-"
_TEMPORARY_PREFIX = "carrel-worker-"
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS)
_YOUNG_SECONDS = 60
"""Minimum age of a directory that may be swept: a new one may not be locked yet."""


class WorkerDirectory:
    """A new directory, locked while the host needs it."""

    def __init__(self, parent: str) -> None:
        """Create a directory in *parent*, or among the temporary files if *parent* is not writable.

        Raises:
            SandboxExecutionError: The host cannot create it.
        """
        try:
            self.path = _create(parent)
            self._lock = _open_locked(self.path, fcntl.LOCK_SH)
            return
        except OSError as error:
            problem = error.strerror
        raise SandboxExecutionError(f"no directory for a worker process could be created: {problem}")

    def remove(self) -> None:
        """Remove the directory with its content."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)

    def abandon(self) -> None:
        """Release the directory in a forked child; it belongs to the parent."""
        os.close(self._lock)


def _create(parent: str) -> str:
    try:
        return _create_in(parent, _PREFIX)
    except OSError as error:
        if error.errno not in _NOT_WRITABLE:
            raise
    return _create_in(tempfile.gettempdir(), _TEMPORARY_PREFIX)


def _create_in(parent: str, prefix: str) -> str:
    _sweep(parent, prefix)
    return tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-", dir=parent)


def _sweep(parent: str, prefix: str) -> None:
    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        with suppress(OSError):
            if name.startswith(prefix) and time.time() - os.stat(path).st_mtime > _YOUNG_SECONDS:
                os.close(_open_locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB))
                shutil.rmtree(path, ignore_errors=True)


def _open_locked(path: str, mode: int) -> int:
    """Open and lock a directory; return its descriptor.

    Raises:
        OSError: The directory is gone, or another process holds the lock.
    """
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, mode)
    except OSError:
        os.close(fd)
        raise
    return fd
