"""Handles in the service for worker processes and for the zygote that forks them."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from struct import error as StructError
from threading import Lock

from carrel.errors import SandboxExecutionError
from carrel.runtimes.frames import FrameSocket
from carrel.sandbox.workers.protocol import CANCEL, FRAME_BYTES, SOCKET_SENT
from carrel.sandbox.workers.zygote import FORK, FORKED, REAPED, REQUEST, WAIT

_BOOT = (
    "import sys; n = int(sys.argv[3]); sys.path[:] = sys.argv[4 + n:];"
    " from carrel.sandbox.workers.zygote import main;"
    " main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[4:4 + n])"
)
_START_SECONDS = 60.0
"""Timeout for forking a worker; the first one waits until all commands are imported."""
_SERIALS = count(1)


class Zygote:
    """Forks workers. Started on first use, and restarted if it has died."""

    def __init__(self, memory_bytes: int, preload: Sequence[str] = ()) -> None:
        """Let workers grow by *memory_bytes*, with the modules of *preload* already imported."""
        self._memory_bytes = memory_bytes
        self._preload = preload
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def fork(self, tenant: str) -> WorkerProcess:
        """Fork a worker for *tenant*.

        Raises:
            SandboxExecutionError: The host cannot start a process.
        """
        with self._lock:
            try:
                return self._fork(tenant)
            except OSError as error:
                self._end()
                problem = error.strerror or type(error).__name__
        raise SandboxExecutionError(f"no worker process could be started: {problem}")

    def _fork(self, tenant: str) -> WorkerProcess:
        zygote = self._require_started()
        frames, their_frames = socket.socketpair()
        control, their_control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with their_frames, their_control:
                theirs = [their_frames.fileno(), their_control.fileno()]
                socket.send_fds(zygote, [REQUEST.pack(FORK, 0)], theirs)
            answer, fds, _, _ = socket.recv_fds(zygote, FORKED.size, 1)
            if not answer:
                raise ConnectionResetError
        except OSError:
            frames.close()
            control.close()
            raise
        return WorkerProcess(self, tenant, FORKED.unpack(answer)[0], fds[0], frames, control)

    def _require_started(self) -> socket.socket:
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._socket is None:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.settimeout(_START_SECONDS)
            self._socket = ours
            with theirs:
                self._process = self._start(theirs.fileno())
        return self._socket

    def _start(self, fd: int) -> subprocess.Popen[bytes]:
        if not sys.executable:
            raise SandboxExecutionError("no worker process could be started: sys.executable is not set")
        paths = [os.path.abspath(path) for path in sys.path]
        numbers = [str(fd), str(self._memory_bytes), str(len(self._preload))]
        return subprocess.Popen(  # noqa: S603  # our own module, in the running Python
            [sys.executable, "-I", "-S", "-c", _BOOT, *numbers, *self._preload, *paths],
            # One malloc arena for all threads, because each arena reserves much memory.
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", "MALLOC_ARENA_MAX": "1"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(fd,),
            start_new_session=True,
        )

    def wait(self, pid: int) -> tuple[int, int] | None:
        """Reap a worker that was killed or exited; return wait status and growth, `None` if unknown."""
        with self._lock:
            if self._socket is None:
                return None
            try:
                self._socket.send(REQUEST.pack(WAIT, pid))
                status, grown_bytes = REAPED.unpack(self._socket.recv(REAPED.size))
            except (OSError, StructError):
                # Its next answer could belong to this request.
                self._end()
                return None
            return status, grown_bytes

    def close(self) -> None:
        """End the zygote, and with it all its workers."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._socket = self._process = None


class WorkerProcess:
    """One worker process, as its host sees it."""

    def __init__(
        self, zygote: Zygote, tenant: str, pid: int, pidfd: int, frames: socket.socket, control: socket.socket
    ) -> None:
        self.tenant = tenant
        self.pid = pid
        self.frames = FrameSocket(frames, body_bytes=FRAME_BYTES)
        self.is_usable = True
        """Whether another command line may run in it."""
        self.idle_since = 0.0
        self._zygote = zygote
        self._pidfd = pidfd
        self._control = control
        self._lock = Lock()
        self._is_ended = self._is_closed = False
        self._exit: tuple[int, int] | None = None

    @staticmethod
    def new_serial() -> int:
        """Return a serial number for a command line."""
        return next(_SERIALS)

    def is_alive(self) -> bool:
        """Whether the process is running."""
        if self._is_ended:
            return False
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return not poll.poll(0)

    def cancel(self, serial: int) -> None:
        """Stop the command line with this serial number if it still runs; from any thread."""
        with suppress(OSError):
            self._control.send(CANCEL.pack(serial), socket.MSG_DONTWAIT)

    def receive_socket(self) -> socket.socket:
        """Receive the socket that belongs to a request for guest code.

        Raises:
            OSError: The worker sent none.
        """
        _, fds, _, _ = socket.recv_fds(self._control, len(SOCKET_SENT), 1, socket.MSG_DONTWAIT)
        if not fds:
            raise ConnectionResetError
        return socket.socket(fileno=fds[0])

    def kill(self) -> tuple[int, int] | None:
        """Kill the process and reap it; return its wait status and growth in bytes, if known.

        Whoever leases it sees its socket closed.
        """
        with self._lock:
            if not self._is_ended:
                self._is_ended = True
                self.is_usable = False
                with suppress(OSError):
                    signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
                self._exit = self._zygote.wait(self.pid)
            return self._exit

    def end(self) -> tuple[int, int] | None:
        """Kill the process and close its sockets; for the one who leases it."""
        result = self.kill()
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                os.close(self._pidfd)
                self._control.close()
                self.frames.close()
        return result
