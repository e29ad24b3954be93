"""Streams of a program in a container: a connection hijacked from HTTP, and `ExecStream` on top of it.

The Docker client reads the response head through a buffer and returns the socket beneath it, which loses any
output that arrived together with the head.
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
        """Take over a connection from which *received* was already read."""
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
        """Post *body* to *path* and upgrade the connection.

        Raises:
            ContainerError: The engine responds with an error.
            EngineError: The response is not HTTP.
            OSError: The engine does not respond.
        """
        connection = connect_socket(address, timeout_seconds, context)
        try:
            request = (
                f"POST {path} HTTP/1.1\r\nHost: engine\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            connection.sendall(request.encode() + body)
            head, rest = _read_head(connection)
            _require_upgrade(head, rest)
            return cls(connection, rest)
        except BaseException:
            connection.close()
            raise

    def send(self, data: bytes, deadline: float) -> None:
        """Send all of *data*.

        Raises:
            EngineError: It was not accepted before *deadline* (monotonic clock).
            OSError: The connection is closed.
        """
        view = memoryview(data)
        while view:
            taken = self.send_some(view, deadline)
            if not taken:
                raise EngineError("slow", "the container did not accept the input in time")
            view = view[taken:]

    def send_some(self, data: bytes | memoryview, deadline: float) -> int:
        """Send as much of *data* as the socket accepts; returns the number of bytes, 0 at *deadline*.

        Raises:
            OSError: The connection is closed.
        """
        while True:
            try:
                return self._socket.send(data)
            except (BlockingIOError, ssl.SSLWantWriteError):
                if not self._wait(select.POLLOUT, deadline):
                    return 0

    def receive(self, deadline: float) -> bytes | None:
        """Return the next bytes, `b""` at the end; `None` if nothing arrives before *deadline*."""
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
        """Shut down the sending side."""
        self._socket.shutdown(socket.SHUT_WR)

    def end(self) -> None:
        """Shut down both sides; a thread that is sending or receiving sees the end."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _wait(self, event: int, deadline: float) -> bool:
        poll = select.poll()
        poll.register(self._socket, event)
        return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))


def connect_socket(
    address: str, timeout_seconds: float, context: ssl.SSLContext | None = None
) -> socket.socket:
    """Connect to an address in the format of `DOCKER_HOST`.

    Raises:
        OSError: Nothing listens there, or permissions forbid it.
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
    """Read the response head; returns it and any bytes after it."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(4096)
        if not piece or len(received) > _MAX_RESPONSE_HEAD_BYTES:
            raise EngineError("failed", "the connection to the Docker engine failed: opening a stream")
        received += piece
    head, _, rest = received.partition(b"\r\n\r\n")
    return head, rest


def _require_upgrade(head: bytes, rest: bytes) -> None:
    status = head.split(b" ", 2)[1:2]
    if status in ([b"101"], [b"200"]):
        return
    message = rest.decode("utf-8", "replace")[:1000]
    problem = {b"404": "missing", b"409": "stopped"}.get(status[0] if status else b"", "failed")
    if problem != "stopped" and start_failure_reason(message):
        problem = "program"
    raise ContainerError(problem, "the container cannot run the program now", detail=message)


STDOUT = 1
STDERR = 2
_STREAM_HEADER_BYTES = 8
_SLICE_SECONDS = 0.002


class ExecStream:
    """Standard streams of one program; the engine frames its output as chunks of stdout and stderr."""

    def __init__(self, engine: Engine, exec_id: str, connection: HijackedConnection) -> None:
        self._engine = engine
        self._id = exec_id
        self._connection = connection
        self._buffer = b""
        self._stream = STDOUT
        self._left = 0
        """Bytes of the current frame still to be received."""

    def send(self, data: bytes, *, deadline: float) -> None:
        """Write to the program's standard input.

        Raises:
            EngineError: It was not accepted before *deadline* (monotonic clock), or the connection is closed.
        """
        with translate_docker_errors("sending to a program"):
            self._connection.send(data, deadline)

    def send_some(self, data: bytes | memoryview, *, deadline: float) -> int:
        """Write as much of *data* as standard input accepts before *deadline*; returns the number of bytes.

        Raises:
            EngineError: The program has ended or the connection is closed.
        """
        with translate_docker_errors("sending to a program"):
            return self._connection.send_some(data, deadline)

    def close_input(self) -> None:
        """Close the program's standard input."""
        with translate_docker_errors("sending to a program"):
            self._connection.end_input()

    def receive(self, deadline: float) -> tuple[int, bytes] | None:
        """Return the next output with `STDOUT` or `STDERR`; `None` if nothing arrives before *deadline*.

        Raises:
            EOFError: The output has ended.
            EngineError: The connection broke.
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
                received = self._connection.receive(deadline)
            if received is None:
                return None
            if not received:
                raise EOFError
            self._buffer = self._buffer + received if self._buffer else received

    def exit_code(self) -> int | None:
        """Return the exit status; `None` while it is running."""
        with translate_docker_errors("reading the exit status of a program"):
            found = self._engine.api.exec_inspect(self._id)
        return None if found.get("Running") else found.get("ExitCode")

    def has_started(self) -> bool:
        """Whether the program was started, even if it has ended since."""
        with translate_docker_errors("reading the state of a program"):
            return bool(self._engine.api.exec_inspect(self._id).get("Pid"))

    def wait(self, deadline: float) -> int | None:
        """Wait for the exit status; `None` if it is still running at *deadline*."""
        while (code := self.exit_code()) is None and time.monotonic() < deadline:
            time.sleep(_SLICE_SECONDS)
        return code

    def end(self) -> None:
        """Stop receiving and shut down the connection; the program keeps running."""
        self._connection.end()

    def close(self) -> None:
        """Close the connection; the program keeps running."""
        self._connection.close()
