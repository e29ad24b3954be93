"""`FrameSocket`: frames of JSON and bytes on a Unix socket between this process and a worker process.

Neither side takes the other at its word: a frame is a kind, a small JSON object and bytes, and one that is
larger than agreed ends the line.
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
"""Largest JSON object of a frame: the variables and arguments of a script."""
_HEADER = Struct("<BII")
_PIECE_BYTES = 2**16
_SLICE_SECONDS = 0.05
_JOINED_BYTES = 2**14
"""Up to this size head and body go out together."""


class FrameKind(IntEnum):
    """What a frame is about."""

    RUN = 1
    """Run a script; the body is its source, then its input."""
    ANSWER = 2
    """To a call or to a request for input."""
    READY = 3
    """The interpreter can take a script."""
    STDOUT = 4
    STDERR = 5
    CALL = 6
    """A file operation of the guest."""
    INPUT = 7
    """The guest wants to read its standard input."""
    DONE = 8
    """The script has ended."""
    FAILED = 9
    """The interpreter could not be made."""
    BEGUN = 10
    """The script is going to run."""


class Frame(NamedTuple):
    """One message."""

    kind: int
    head: dict[str, object]
    body: bytes | bytearray = b""


class FrameSocketBroken(Exception):
    """The other side is gone, or does not keep to the rules."""


class FrameSocketClosed(FrameSocketBroken):
    """The other side is gone."""


class FrameSocket:
    """Sends and receives frames."""

    def __init__(self, connection: socket.socket, *, body_bytes: int = 2**32 - 1) -> None:
        """Talk over *connection*; a frame with more than *body_bytes* is refused."""
        self.body_bytes = body_bytes
        self._socket = connection
        self._buffer = bytearray()
        self._body: tuple[int, dict[str, object], bytearray, int] | None = None

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def fileno(self) -> int:
        """The descriptor of the socket."""
        return self._socket.fileno()

    def has_more(self) -> bool:
        """Whether something has come, or the other side hung up."""
        return bool(self._buffer) or can_read(self._socket.fileno(), 0)

    def can_send(self) -> bool:
        """Whether there is room for more; a line that ended takes everything."""
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
        """Send one frame; if the other side does not take it, *is_overdue* says whether to give up.

        Without it this waits as long as it takes, and another thread may receive meanwhile.

        Raises:
            LineBroken: The other side is gone, or it is overdue.
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
        left = memoryview(data)
        while left:
            self._socket.settimeout(None if is_overdue is None else _SLICE_SECONDS)
            try:
                left = left[self._socket.send(left) :]
            except TimeoutError:
                if is_overdue is not None and is_overdue():
                    raise FrameSocketBroken("the other side does not listen") from None

    def receive(self, until: float | None = None) -> Frame | None:
        """The next frame; `None` if it is not there *until* then, by the monotonic clock.

        Raises:
            LineBroken: The other side is gone, or sent something else than a frame.
        """
        try:
            while True:
                frame = self._take()
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

    def _take(self) -> Frame | None:
        """A frame that has come as a whole."""
        if self._body is None:
            self._begin()
        if self._body is None or self._body[3] < len(self._body[2]):
            return None
        kind, head, body, _ = self._body
        self._body = None
        return Frame(kind, head, body)

    def _begin(self) -> None:
        """Take what comes before the body off the buffer, once it is there."""
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
            raise ValueError("a frame has no object for a head")
        body = bytearray(body_bytes)
        there = min(body_bytes, len(buffer) - start)
        body[:there] = buffer[start : start + there]
        del buffer[: start + there]
        self._body = kind, head, body, there

    def _read(self) -> None:
        if self._body is not None:
            kind, head, body, count = self._body
            got = self._socket.recv_into(memoryview(body)[count:])
            self._body = kind, head, body, count + got
        else:
            piece = self._socket.recv(_PIECE_BYTES)
            got = len(piece)
            self._buffer += piece
        if not got:
            raise FrameSocketClosed("the other side hung up")


def can_read(fd: int, seconds: float) -> bool:
    """Whether a read of *fd* would not wait, now or within so long."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(max(seconds, 0) * 1000))
