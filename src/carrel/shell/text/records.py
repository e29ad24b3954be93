"""Split chunks into lines, charging each line before it is assembled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import AnyStr, Generic

from carrel.shell.budget import RECORD_BYTES, Meter
from carrel.shell.streams import BUFFER_BYTES

CHUNK_BYTES = 2**18
"""Bytes of a file that a command reads at a time."""
_COPIES = 3
"""Number of times that a long line is charged: for its chunks, the line, and a copy that a command makes."""
_SPLIT_BYTES = 2**15
"""Bytes that are split into lines at once."""
_MAX_BATCH_LINES = 4096


def split_chunk(chunk: AnyStr, max_bytes: int = CHUNK_BYTES) -> Iterable[AnyStr]:
    """Split *chunk* into parts of at most *max_bytes*."""
    if len(chunk) <= max_bytes:
        return (chunk,)
    return (chunk[at : at + max_bytes] for at in range(0, len(chunk), max_bytes))


class LongLine(Generic[AnyStr]):
    """A line assembled from several chunks; each is charged before it is kept."""

    def __init__(self, meter: Meter, empty: AnyStr) -> None:
        self._meter = meter
        self._empty: AnyStr = empty
        self._chunks: list[AnyStr] = []
        self._charged = 0
        self.size = 0

    def add(self, chunk: AnyStr) -> None:
        """Append *chunk*."""
        charge = _COPIES * len(chunk) + RECORD_BYTES
        self._meter.charge_memory(charge)
        self._charged += charge
        self._chunks.append(chunk)
        self.size += len(chunk)

    def take(self) -> AnyStr:
        """Return the whole line, which stays charged until `release`."""
        line: AnyStr = self._empty.join(self._chunks)
        self._chunks = []
        self.size = 0
        return line

    def release(self) -> None:
        """Drop the line and release its memory."""
        self._chunks = []
        self.size = 0
        self._meter.charge_memory(-self._charged)
        self._charged = 0


def line_batches(chunks: Iterable[AnyStr], end: AnyStr, meter: Meter) -> Iterator[list[AnyStr]]:
    """Yield the lines of *chunks* in batches, without their terminator *end*, which the last one may lack."""
    long = LongLine(meter, end[:0])
    try:
        for chunk in chain.from_iterable(split_chunk(each, _SPLIT_BYTES) for each in chunks):
            begin = 0
            if long.size:
                begin = chunk.find(end) + 1
                if not begin:
                    long.add(chunk)
                    continue
                long.add(chunk[: begin - 1])
                yield [long.take()]
                long.release()
            with meter.holding_memory(RECORD_BYTES * chunk.count(end)):
                lines = chunk[begin:].split(end)
                last = lines.pop()
                if lines:
                    yield lines
                # The consumer may still hold the list.
                lines.clear()
            if last:
                long.add(last)
        if long.size:
            yield [long.take()]
    finally:
        long.release()


def join_lines(lines: Iterable[AnyStr], end: AnyStr) -> Iterator[AnyStr]:
    """Yield *lines*, each followed by *end*, joined into chunks never much longer than a line."""
    batch: list[AnyStr] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line) + 1
        if size >= BUFFER_BYTES or len(batch) >= _MAX_BATCH_LINES:
            yield end.join(batch) + end
            batch, size = [], 0
    if batch:
        yield end.join(batch) + end
