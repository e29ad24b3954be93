"""Streams of a command: metered output, lazy input, pipes between commands, and collected output."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from threading import Condition, Lock
from typing import NamedTuple, Protocol

from carrel.shell.budget import Meter

BUFFER_BYTES = 2**16
"""Bytes that an output stream buffers before it flushes, and the most that it passes on at once."""
PIPE_BYTES = 2**17
"""Bytes that a pipe holds before its writer waits."""


class Sink(Protocol):
    """Destination of an output stream."""

    def write(self, data: bytes, /) -> None:
        """Write *data*, waiting if there is no room."""
        ...

    def close(self) -> None:
        """End the output."""
        ...


class NullSink:
    """Discards what is written, as `/dev/null` does."""

    def write(self, data: bytes) -> None:
        """Discard *data*."""

    def close(self) -> None:
        """Do nothing."""


class OutputStream:
    """Buffered output of a command; takes data of any size from any thread."""

    def __init__(self, sink: Sink, meter: Meter) -> None:
        self._sink = sink
        self._meter = meter
        self._lock = Lock()
        self._buffer = bytearray()

    def write(self, data: bytes) -> None:
        """Buffer *data*, and flush a full buffer; long data is passed on in parts."""
        if len(data) <= BUFFER_BYTES:
            self._buffer += data
            if len(self._buffer) >= BUFFER_BYTES:
                self.flush()
            return
        for offset in range(0, len(data), BUFFER_BYTES):
            self.write(data[offset : offset + BUFFER_BYTES])

    def flush(self) -> None:
        """Check the meter, then pass the buffer on to the sink."""
        self._meter.check()
        self.drain()

    def drain(self) -> None:
        """Pass the buffer on to the sink, even if the line was stopped."""
        with self._lock:
            # Other threads may append in the meantime; that is left for the next flush.
            data = bytes(self._buffer)
            if data:
                del self._buffer[: len(data)]
                self._sink.write(data)


class OutputCollector:
    """Sink that charges output to the budget, and keeps it or passes it to a callback."""

    def __init__(self, meter: Meter, on_data: Callable[[bytes], None] | None = None) -> None:
        """Keep the output; with *on_data*, call that for each chunk instead."""
        self._meter = meter
        self._on_data = on_data
        self._chunks: list[bytes] = []
        self.is_truncated = False

    def write(self, data: bytes) -> None:
        room = self._meter.charge_output(len(data))
        self.add(data if room == len(data) else data[:room])
        if room < len(data):
            self.is_truncated = True
            raise self._meter.stop_output()

    def add(self, data: bytes) -> None:
        """Add *data* without charging it."""
        if self._on_data is None:
            self._chunks.append(data)
        elif data:
            self._on_data(data)

    def close(self) -> None:
        """Do nothing."""

    def content(self) -> bytes:
        """Return all output that was kept."""
        return b"".join(self._chunks)


class PipeClosed(BaseException):
    """The reader of a pipe is gone; ends the writing command quietly, as SIGPIPE does."""


class Pipe:
    """Bounded buffer between two commands of a pipeline, one writing and one reading."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._changed = Condition()
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._has_writer = True
        self._has_reader = True
        self._is_aborted = False
        meter.on_stop(self._wake)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def write(self, data: bytes) -> None:
        """Write *data*, waiting while the pipe is full.

        Raises:
            PipeClosed: The reader closed the pipe.
        """
        while not self._try_put(data):
            self._meter.check()

    def _try_put(self, data: bytes) -> bool:
        """Append *data* if there is room; otherwise wait for a change and return false."""
        with self._changed:
            if not self._has_reader:
                raise PipeClosed
            if self._size >= PIPE_BYTES:
                self._wait()
                return False
            self._chunks.append(data)
            self._size += len(data)
            self._changed.notify_all()
            return True

    def close(self) -> None:
        """Close the writing end: the reader gets what is left, then the end of the input."""
        with self._changed:
            self._has_writer = False
            self._changed.notify_all()

    def abort(self) -> None:
        """Mark the data as incomplete: the reader gets `PipeClosed` instead of the end of the input."""
        with self._changed:
            self._is_aborted = True
            self._changed.notify_all()

    def close_reader(self) -> None:
        """Close the reading end and drop what is left: the writer gets `PipeClosed`."""
        with self._changed:
            self._has_reader = False
            self._chunks.clear()
            self._changed.notify_all()

    def __iter__(self) -> Iterator[bytes]:
        """Read chunk by chunk, up to the end of the input.

        Raises:
            PipeClosed: The pipe was aborted.
        """
        while (chunk := self._try_get()) is not None:
            if chunk:
                yield chunk
            else:
                self._meter.check()

    def _try_get(self) -> bytes | None:
        """Return the next chunk, `None` at the end; an empty chunk after waiting for a change."""
        with self._changed:
            if self._is_aborted:
                raise PipeClosed
            if not self._chunks:
                if not self._has_writer:
                    return None
                self._wait()
                return b""
            chunk = self._chunks.popleft()
            self._size -= len(chunk)
            self._changed.notify_all()
            return chunk

    def _wait(self) -> None:
        # The caller checks the meter after releasing the lock: a stop wakes the waiters of all pipes.
        if self._meter.stopped is None:
            self._changed.wait(self._meter.remaining_seconds())


class InputStream:
    """The standard input of a command; commands that share it each read on where the last one stopped.

    An empty chunk means that no input is available yet, and lets the command check whether it must stop.
    """

    def __init__(self, chunks: Iterable[bytes] = (), *, size_bytes: int | None = None) -> None:
        self._chunks = iter(chunks)
        self.size_bytes = size_bytes
        """Size of the input, if it is a regular file."""

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks


class CommandStreams(NamedTuple):
    """Standard streams of a command."""

    stdin: InputStream
    stdout: OutputStream
    stderr: OutputStream

    def with_output(self, number: int, output: OutputStream) -> CommandStreams:
        """Return the streams with *output* as stream *number*, 1 or 2."""
        return self._replace(stdout=output) if number == 1 else self._replace(stderr=output)
