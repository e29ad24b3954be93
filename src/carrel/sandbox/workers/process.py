"""Worker processes and the zygote they are forked from, as the service sees them."""

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
from carrel.sandbox.workers.protocol import CANCEL, FRAME_BYTES, HANDED
from carrel.sandbox.workers.zygote import ENDED, FORK, FORKED, ORDER, WAIT

_BOOT = (
    "import sys; n = int(sys.argv[3]); sys.path[:] = sys.argv[4 + n:];"
    " from carrel.sandbox.workers.zygote import main;"
    " main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[4:4 + n])"
)
_START_SECONDS = 60.0
"""Longest time until a worker is there; the first one waits until all commands are loaded."""
_SERIALS = count(1)


class Zygote:
    """Forks workers; started when the first is needed, and again if it ended."""

    def __init__(self, memory_bytes: int, preload: Sequence[str] = ()) -> None:
        """Let workers grow by *memory_bytes*; they find the modules of *preload* loaded."""
        self._memory_bytes = memory_bytes
        self._preload = preload
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None

    def fork(self, tenant: str) -> WorkerProcess:
        """A new worker for *tenant*.

        Raises:
            SandboxExecutionError: The host does not let us.
        """
        with self._lock:
            try:
                return self._fork(tenant)
            except OSError as error:
                self._end()
                problem = error.strerror or type(error).__name__
        raise SandboxExecutionError(f"no worker process could be started: {problem}")

    def _fork(self, tenant: str) -> WorkerProcess:
        host = self._started()
        line, their_line = socket.socketpair()
        control, their_control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with their_line, their_control:
                theirs = [their_line.fileno(), their_control.fileno()]
                socket.send_fds(host, [ORDER.pack(FORK, 0)], theirs)
            answer, fds, _, _ = socket.recv_fds(host, FORKED.size, 1)
            if not answer:
                raise ConnectionResetError
        except OSError:
            line.close()
            control.close()
            raise
        return WorkerProcess(self, tenant, FORKED.unpack(answer)[0], fds[0], line, control)

    def _started(self) -> socket.socket:
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
            raise SandboxExecutionError("no worker process could be started: this Python has no program")
        paths = [os.path.abspath(path) for path in sys.path]
        numbers = [str(fd), str(self._memory_bytes), str(len(self._preload))]
        return subprocess.Popen(  # noqa: S603  # our own module, in this very Python
            [sys.executable, "-I", "-S", "-c", _BOOT, *numbers, *self._preload, *paths],
            # One pool of memory for all threads, as each reserves much.
            env={"PATH": os.defpath, "LC_ALL": "C.UTF-8", "MALLOC_ARENA_MAX": "1"},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(fd,),
            start_new_session=True,
        )

    def wait(self, pid: int) -> tuple[int, int] | None:
        """The wait status of a worker that was killed or hung up, and how much it grew; `None` if unknown."""
        with self._lock:
            if self._socket is None:
                return None
            try:
                self._socket.send(ORDER.pack(WAIT, pid))
                status, grown_bytes = ENDED.unpack(self._socket.recv(ENDED.size))
            except (OSError, StructError):
                # Its next answer could be to this question.
                self._end()
                return None
            return status, grown_bytes

    def close(self) -> None:
        """End it, and with it all its workers."""
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
    """One worker process."""

    def __init__(
        self, zygote: Zygote, tenant: str, pid: int, pidfd: int, line: socket.socket, control: socket.socket
    ) -> None:
        self.tenant = tenant
        self.pid = pid
        self.line = FrameSocket(line, body_bytes=FRAME_BYTES)
        self.is_usable = True
        """Whether another line may run in it."""
        self.idle_since = 0.0
        self._zygote = zygote
        self._pidfd = pidfd
        self._control = control
        self._lock = Lock()
        self._is_ended = self._is_closed = False
        self._how: tuple[int, int] | None = None

    @staticmethod
    def new_serial() -> int:
        """A number for a line, which no other has."""
        return next(_SERIALS)

    def is_alive(self) -> bool:
        """Whether the process is there."""
        if self._is_ended:
            return False
        poll = select.poll()
        poll.register(self._pidfd, select.POLLIN)
        return not poll.poll(0)

    def cancel(self, serial: int) -> None:
        """Stop a line, if it still runs; from any thread."""
        with suppress(OSError):
            self._control.send(CANCEL.pack(serial), socket.MSG_DONTWAIT)

    def handed(self) -> socket.socket:
        """The socket that comes with a request for guest code.

        Raises:
            OSError: There is none.
        """
        _, fds, _, _ = socket.recv_fds(self._control, len(HANDED), 1, socket.MSG_DONTWAIT)
        if not fds:
            raise ConnectionResetError
        return socket.socket(fileno=fds[0])

    def kill(self) -> tuple[int, int] | None:
        """Kill the process, and wait until it is gone; its wait status and how much it grew, if known.

        Whoever it is lent to hears that it hung up.
        """
        with self._lock:
            if not self._is_ended:
                self._is_ended = True
                self.is_usable = False
                with suppress(OSError):
                    signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)
                self._how = self._zygote.wait(self.pid)
            return self._how

    def end(self) -> tuple[int, int] | None:
        """The same, by the one who has it, who then can use it no more."""
        how = self.kill()
        with self._lock:
            if not self._is_closed:
                self._is_closed = True
                os.close(self._pidfd)
                self._control.close()
                self.line.close()
        return how
