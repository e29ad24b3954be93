"""Streams of a program in a container: a connection hijacked from HTTP, and `ExecStream` on top of it.

The client's own way reads the head of the answer through a buffer and hands on the socket beneath it, so
what came with the head would be lost.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from carrel.containers.docker_errors import start_failure_reason, translate_docker_errors
from carrel.errors import ContainerError, EngineError

if TYPE_CHECKING:
    from carrel.containers.engine import Engine


_MAX_RESPONSE_HEAD_BYTES = 2**16
_PIECE_BYTES = 2**16
_PORT = 2375


class HijackedConnection:
    """One connection; used by one thread to send and one to receive."""

    def __init__(self, connection: socket.socket, received: bytes) -> None:
        """Take over a connection on which *received* came already."""
        connection.setblocking(False)
        self._socket = connection
        self._received = received

    @classmethod
    def open(
        cls,
        address: str,
        path: str,
        body: bytes,
        *,
        timeout_seconds: float,
        context: ssl.SSLContext | None = None,
    ) -> HijackedConnection:
        """Post *body* to *path* and ask to go over.

        Raises:
            ContainerError: The engine answers with an error.
            EngineError: It answers with something else.
            OSError: It does not answer.
        """
        connection = connect_socket(address, timeout_seconds, context)
        try:
            head = (
                f"POST {path} HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            connection.sendall(head.encode() + body)
            answer, rest = _read_head(connection)
            _require_upgrade(answer, rest)
            return cls(connection, rest)
        except BaseException:
            connection.close()
            raise

    def send(self, data: bytes, deadline: float) -> None:
        """Send all of *data*.

        Raises:
            EngineError: It was not taken before *deadline*, by the monotonic clock.
            OSError: The other side is gone.
        """
        view = memoryview(data)
        while view:
            taken = self.send_some(view, deadline)
            if not taken:
                raise EngineError("slow", "what was sent to the container is not taken")
            view = view[taken:]

    def send_some(self, data: bytes | memoryview, deadline: float) -> int:
        """Send the beginning of *data*; how much was taken, nothing if none was before *deadline*.

        Raises:
            OSError: The other side is gone.
        """
        while True:
            try:
                return self._socket.send(data)
            except (BlockingIOError, ssl.SSLWantWriteError):
                if not self._wait(select.POLLOUT, deadline):
                    return 0

    def receive(self, deadline: float) -> bytes | None:
        """The next bytes, none at the end; `None` if nothing comes before *deadline*."""
        if self._received:
            received, self._received = self._received, b""
            return received
        while True:
            try:
                return self._socket.recv(_PIECE_BYTES)
            except (BlockingIOError, ssl.SSLWantReadError):
                if not self._wait(select.POLLIN, deadline):
                    return None

    def end_input(self) -> None:
        """Say that nothing more will be sent."""
        self._socket.shutdown(socket.SHUT_WR)

    def end(self) -> None:
        """Say that nothing more will be sent or received; a thread that does either sees the end."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let go of the connection."""
        self._socket.close()

    def _wait(self, event: int, deadline: float) -> bool:
        poll = select.poll()
        poll.register(self._socket, event)
        return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))


def connect_socket(
    address: str, timeout_seconds: float, context: ssl.SSLContext | None = None
) -> socket.socket:
    """A connection to an address as Docker writes them.

    Raises:
        OSError: Nobody is there, or we may not.
    """
    found = urlsplit(address)
    if found.scheme in ("unix", "http+unix"):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(timeout_seconds)
            connection.connect(found.path or found.netloc)
        except BaseException:
            connection.close()
            raise
        return connection
    connection = socket.create_connection(
        (found.hostname or "localhost", found.port or _PORT), timeout_seconds
    )
    if context is None:
        return connection
    return context.wrap_socket(connection, server_hostname=found.hostname)


def _read_head(connection: socket.socket) -> tuple[bytes, bytes]:
    """The head of the answer, and what came after it."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(4096)
        if not piece or len(received) > _MAX_RESPONSE_HEAD_BYTES:
            raise EngineError("failed", "the Docker engine broke off: opening a stream")
        received += piece
    head, _, rest = received.partition(b"\r\n\r\n")
    return head, rest


def _require_upgrade(head: bytes, rest: bytes) -> None:
    status = head.split(b" ", 2)[1:2]
    if status in ([b"101"], [b"200"]):
        return
    told = rest.decode("utf-8", "replace")[:1000]
    problem = {b"404": "missing", b"409": "stopped"}.get(status[0] if status else b"", "failed")
    if problem != "stopped" and start_failure_reason(told):
        problem = "program"
    raise ContainerError(problem, "the container cannot run that now", detail=told)


STDOUT = 1
STDERR = 2
_STREAM_HEADER_BYTES = 8
_SLICE_SECONDS = 0.002


class ExecStream:
    """Both directions of one program; the engine marks which stream every piece of output is from."""

    def __init__(self, engine: Engine, exec_id: str, line: HijackedConnection) -> None:
        self._engine = engine
        self._id = exec_id
        self._line = line
        self._buffer = b""
        self._stream = STDOUT
        self._left = 0
        """How much of the piece that is being received is still to come."""

    def send(self, data: bytes, *, deadline: float) -> None:
        """Write to its standard input.

        Raises:
            EngineError: It was not taken before *deadline*, by the monotonic clock, or the engine is gone.
        """
        with translate_docker_errors("sending to a program"):
            self._line.send(data, deadline)

    def send_some(self, data: bytes | memoryview, *, deadline: float) -> int:
        """Write the beginning of *data* to its standard input; how much was taken before *deadline*.

        Raises:
            EngineError: The program or the engine is gone.
        """
        with translate_docker_errors("sending to a program"):
            return self._line.send_some(data, deadline)

    def close_input(self) -> None:
        """End its standard input."""
        with translate_docker_errors("sending to a program"):
            self._line.end_input()

    def receive(self, deadline: float) -> tuple[int, bytes] | None:
        """What it wrote next, and whether to `STDOUT` or `STDERR`; `None` if nothing came until *deadline*.

        Raises:
            EOFError: Nothing more will come.
            EngineError: The engine is gone.
        """
        while True:
            if self._left and self._buffer:
                piece, self._buffer = self._buffer[: self._left], self._buffer[self._left :]
                self._left -= len(piece)
                return self._stream, piece
            if not self._left and len(self._buffer) >= _STREAM_HEADER_BYTES:
                head, self._buffer = self._buffer[:_STREAM_HEADER_BYTES], self._buffer[_STREAM_HEADER_BYTES:]
                self._stream, self._left = head[0], int.from_bytes(head[4:], "big")
                continue
            with translate_docker_errors("receiving from a program"):
                received = self._line.receive(deadline)
            if received is None:
                return None
            if not received:
                raise EOFError
            self._buffer = self._buffer + received if self._buffer else received

    def exit_code(self) -> int | None:
        """The status it ended with; `None` while it runs."""
        with translate_docker_errors("asking how a program ended"):
            found = self._engine.api.exec_inspect(self._id)
        return None if found.get("Running") else found.get("ExitCode")

    def has_begun(self) -> bool:
        """Whether there ever was a process; of one that has ended, whether it could be started."""
        with translate_docker_errors("asking how a program began"):
            return bool(self._engine.api.exec_inspect(self._id).get("Pid"))

    def wait(self, deadline: float) -> int | None:
        """The status it ends with; `None` if it still runs at *deadline*."""
        while (code := self.exit_code()) is None and time.monotonic() < deadline:
            time.sleep(_SLICE_SECONDS)
        return code

    def end(self) -> None:
        """Take no more of its output, and let the engine know; what runs goes on."""
        self._line.end()

    def close(self) -> None:
        """Let go of the connection; what runs goes on."""
        self._line.close()
