"""Standard input and output of a command: metered streams, pipes and collected output."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from threading import Condition, Lock
from typing import Protocol

from carrel.shell.budget import Meter

PIECE_BYTES = 2**16
"""Bytes that an output collects before it hands them on, and the most it hands on at once."""
PIPE_BYTES = 2**17
"""Bytes that wait in a pipe; then the writer waits."""


class Sink(Protocol):
    """Takes what a command writes."""

    def write(self, data: bytes, /) -> None:
        """Take *data*, waiting if there is no room."""
        ...

    def close(self) -> None:
        """There will be no more."""
        ...


class OutputStream:
    """A stream that commands write to, in pieces of any size, from any thread."""

    def __init__(self, sink: Sink, meter: Meter) -> None:
        self._sink = sink
        self._meter = meter
        self._lock = Lock()
        self._buffer = bytearray()

    def write(self, data: bytes) -> None:
        """Write *data*, sooner or later; long data is handed on in parts, the meter checked for each."""
        if len(data) <= PIECE_BYTES:
            self._buffer += data
            if len(self._buffer) >= PIECE_BYTES:
                self.flush()
            return
        for at in range(0, len(data), PIECE_BYTES):
            self.write(data[at : at + PIECE_BYTES])

    def flush(self) -> None:
        """Hand on what is there, if the command may go on."""
        self._meter.check()
        self.drain()

    def drain(self) -> None:
        """Hand on what is there."""
        with self._lock:
            # Others may add some meanwhile, which are for the next time.
            data = bytes(self._buffer)
            if data:
                del self._buffer[: len(data)]
                self._sink.write(data)


class OutputCollector:
    """Keeps what is written, within the budget, and tells whoever listens."""

    def __init__(self, meter: Meter, tell: Callable[[bytes], None] | None = None) -> None:
        self._meter = meter
        self._tell = tell
        self._pieces: list[bytes] = []
        self.is_truncated = False

    def write(self, data: bytes) -> None:
        room = self._meter.charge_output(len(data))
        self.add(data if room == len(data) else data[:room])
        if room < len(data):
            self.is_truncated = True
            raise self._meter.end_output()

    def add(self, data: bytes) -> None:
        """Take *data*, whatever the budget says."""
        if self._tell is None:
            self._pieces.append(data)
        elif data:
            self._tell(data)

    def close(self) -> None:
        """Nothing is held open."""

    def content(self) -> bytes:
        """All that was kept."""
        return b"".join(self._pieces)


class PipeClosed(BaseException):
    """Nobody is at the other end any more; ends a command quietly."""


class Pipe:
    """Bytes on their way from one command to the next."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._changed = Condition()
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._has_writer = True
        self._has_reader = True
        self._is_broken = False
        meter.on_stop(self._wake)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def write(self, data: bytes) -> None:
        """Hand *data* on, waiting while the reader has enough."""
        while not self._take(data):
            self._meter.check()

    def _take(self, data: bytes) -> bool:
        """Take *data* if there is room for it; otherwise wait until something changes."""
        with self._changed:
            if not self._has_reader:
                raise PipeClosed
            if self._size >= PIPE_BYTES:
                self._wait()
                return False
            self._pieces.append(data)
            self._size += len(data)
            self._changed.notify_all()
            return True

    def close(self) -> None:
        """There will be no more."""
        with self._changed:
            self._has_writer = False
            self._changed.notify_all()

    def break_off(self) -> None:
        """What was written so far is not all, and there will be no more."""
        with self._changed:
            self._is_broken = True
            self._changed.notify_all()

    def stop_reading(self) -> None:
        """Nobody wants the rest."""
        with self._changed:
            self._has_reader = False
            self._pieces.clear()
            self._changed.notify_all()

    def __iter__(self) -> Iterator[bytes]:
        """What was written, piece by piece, until there is no more.

        Raises:
            PipeClosed: It was broken off.
        """
        while (piece := self._give()) is not None:
            if piece:
                yield piece
            else:
                self._meter.check()

    def _give(self) -> bytes | None:
        """The next piece, `None` at the end; an empty one after waiting until something changed."""
        with self._changed:
            if self._is_broken:
                raise PipeClosed
            if not self._pieces:
                if not self._has_writer:
                    return None
                self._wait()
                return b""
            piece = self._pieces.popleft()
            self._size -= len(piece)
            self._changed.notify_all()
            return piece

    def _wait(self) -> None:
        # The meter is asked later, without the lock: to stop wakes all that wait, in other pipes too.
        if self._meter.stopped is None:
            self._changed.wait(self._meter.remaining_seconds())


class InputStream:
    """The standard input of a command; what one command leaves, the next one finds.

    Pieces may be empty: where input is waited for, they let the command look whether it has to stop.
    """

    def __init__(self, pieces: Iterable[bytes] = (), *, size_bytes: int | None = None) -> None:
        self._pieces = iter(pieces)
        self.size_bytes = size_bytes
        """How much there is, if that is known because it is a file."""

    def __iter__(self) -> Iterator[bytes]:
        return self._pieces
