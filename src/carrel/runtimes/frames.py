"""`FrameSocket`: frames of JSON and bytes on a Unix socket between this process and a worker process.

Neither side trusts the other: a frame is a kind, a small JSON object and bytes, and a frame above the agreed
size ends the connection.
"""

from __future__ import annotations

import json
import select
import socket
import time
from collections.abc import Callable
from enum import IntEnum
from struct import Struct
from typing import NamedTuple

HEAD_BYTES = 2**24
"""Maximum size of the JSON object of a frame, which holds the variables and arguments of a script."""
_HEADER = Struct("<BII")
_CHUNK_BYTES = 2**16
_SLICE_SECONDS = 0.05
_JOINED_BYTES = 2**14
"""Maximum size of a body that is sent together with its head."""


class FrameKind(IntEnum):
    """The kind of a frame."""

    RUN = 1
    """Run a script; the body is its source, then its input."""
    ANSWER = 2
    """Answer a file operation, a read of standard input or a call of a function."""
    READY = 3
    """The interpreter is ready for a script."""
    STDOUT = 4
    STDERR = 5
    CALL = 6
    """A file operation of the guest."""
    INPUT = 7
    """The guest reads standard input."""
    DONE = 8
    """The script has ended."""
    FAILED = 9
    """The interpreter could not be opened."""
    BEGUN = 10
    """The script is about to run."""
    TOOL = 11
    """The guest calls a function of the host; the body is the request, as JSON."""


class Frame(NamedTuple):
    """One message."""

    kind: int
    head: dict[str, object]
    body: bytes | bytearray = b""


class FrameSocketBroken(Exception):
    """The peer is gone or broke the protocol."""


class FrameSocketClosed(FrameSocketBroken):
    """The peer is gone."""


class FrameSocket:
    """Sends and receives frames."""

    def __init__(self, connection: socket.socket, *, body_bytes: int = 2**32 - 1) -> None:
        """Use *connection*; a frame with a body above *body_bytes* is rejected."""
        self.body_bytes = body_bytes
        self._socket = connection
        self._buffer = bytearray()
        self._body: tuple[int, dict[str, object], bytearray, int] | None = None

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def fileno(self) -> int:
        """Return the file descriptor of the socket."""
        return self._socket.fileno()

    def has_more(self) -> bool:
        """Return whether data has arrived, or the peer closed the socket."""
        return bool(self._buffer) or can_read(self._socket.fileno(), 0)

    def can_send(self) -> bool:
        """Return whether the send buffer has room; true for a closed socket."""
        fd = self._socket.fileno()
        if fd < 0:
            return True
        poll = select.poll()
        poll.register(fd, select.POLLOUT)
        return bool(poll.poll(0))

    def send(
        self,
        kind: IntEnum,
        head: dict[str, object] | None = None,
        body: bytes | bytearray | memoryview = b"",
        *,
        is_overdue: Callable[[], bool] | None = None,
    ) -> None:
        """Send one frame; while the peer does not read, *is_overdue* decides whether to give up.

        Without *is_overdue* this blocks without a timeout, and another thread may receive at the same time.

        Raises:
            FrameSocketBroken: The peer is gone, or is overdue.
        """
        text = b"" if head is None else json.dumps(head).encode()
        first = _HEADER.pack(kind, len(text), len(body)) + text
        try:
            if len(body) <= _JOINED_BYTES:
                self._send(first + body, is_overdue)
            else:
                self._send(first, is_overdue)
                self._send(body, is_overdue)
        except OSError as error:
            raise FrameSocketClosed(str(error)) from None

    def _send(self, data: bytes | bytearray | memoryview, is_overdue: Callable[[], bool] | None) -> None:
        rest = memoryview(data)
        while rest:
            self._socket.settimeout(None if is_overdue is None else _SLICE_SECONDS)
            try:
                rest = rest[self._socket.send(rest) :]
            except TimeoutError:
                if is_overdue is not None and is_overdue():
                    raise FrameSocketBroken("the peer does not read") from None

    def receive(self, until: float | None = None) -> Frame | None:
        """Return the next frame; `None` if none arrives *until* then, by the monotonic clock.

        Raises:
            FrameSocketBroken: The peer is gone, or sent an invalid frame.
        """
        try:
            while True:
                frame = self._pop()
                if frame is not None:
                    return frame
                self._socket.settimeout(None if until is None else max(until - time.monotonic(), 1e-6))
                self._read()
        except TimeoutError:
            return None
        except OSError as error:
            raise FrameSocketClosed(str(error)) from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise FrameSocketBroken(str(error)) from None

    def _pop(self) -> Frame | None:
        """Remove and return a complete frame."""
        if self._body is None:
            self._parse_head()
        if self._body is None or self._body[3] < len(self._body[2]):
            return None
        kind, head, body, _ = self._body
        self._body = None
        return Frame(kind, head, body)

    def _parse_head(self) -> None:
        """Move header, head and the start of the body out of the buffer, once they are complete."""
        buffer = self._buffer
        if len(buffer) < _HEADER.size:
            return
        kind, head_bytes, body_bytes = _HEADER.unpack_from(buffer)
        if head_bytes > HEAD_BYTES or body_bytes > self.body_bytes:
            raise ValueError("a frame is too large")
        start = _HEADER.size + head_bytes
        if len(buffer) < start:
            return
        head = json.loads(buffer[_HEADER.size : start]) if head_bytes else {}
        if not isinstance(head, dict):
            raise ValueError("the head of a frame is not an object")
        body = bytearray(body_bytes)
        count = min(body_bytes, len(buffer) - start)
        body[:count] = buffer[start : start + count]
        del buffer[: start + count]
        self._body = kind, head, body, count

    def _read(self) -> None:
        if self._body is not None:
            kind, head, body, count = self._body
            received = self._socket.recv_into(memoryview(body)[count:])
            self._body = kind, head, body, count + received
        else:
            chunk = self._socket.recv(_CHUNK_BYTES)
            received = len(chunk)
            self._buffer += chunk
        if not received:
            raise FrameSocketClosed("the peer closed the socket")


def can_read(fd: int, seconds: float) -> bool:
    """Return whether *fd* becomes readable within *seconds*."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(seconds, 0) * 1000))
