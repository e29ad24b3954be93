"""Split chunks into lines, and charge each line to the meter before it is assembled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import AnyStr, Generic

from carrel.shell.budget import RECORD_BYTES, Meter
from carrel.shell.streams import BUFFER_BYTES

CHUNK_BYTES = 2**18
"""Bytes of a file that a command reads at a time."""
_COPIES = 3
"""How often a long line is charged: for its pieces, for the line, and for a copy that a command makes."""
_SPLIT_BYTES = 2**15
"""Bytes that are cut into lines at once, each of which is an object."""
_MOST_LINES = 4096


def split_chunk(chunk: AnyStr, most: int = CHUNK_BYTES) -> Iterable[AnyStr]:
    """*chunk* in parts of at most *most* bytes."""
    if len(chunk) <= most:
        return (chunk,)
    return (chunk[at : at + most] for at in range(0, len(chunk), most))


class LongLine(Generic[AnyStr]):
    """A line that comes in several pieces; each piece is charged before it is kept."""

    def __init__(self, meter: Meter, nothing: AnyStr) -> None:
        self._meter = meter
        self._nothing: AnyStr = nothing
        self._pieces: list[AnyStr] = []
        self._charged = 0
        self.size = 0

    def add(self, piece: AnyStr) -> None:
        """Go on with *piece*."""
        charge = _COPIES * len(piece) + RECORD_BYTES
        self._meter.charge_memory(charge)
        self._charged += charge
        self._pieces.append(piece)
        self.size += len(piece)

    def take(self) -> AnyStr:
        """The whole line, which stays charged until `release`."""
        line: AnyStr = self._nothing.join(self._pieces)
        self._pieces = []
        self.size = 0
        return line

    def release(self) -> None:
        """Forget the line and give back what was charged for it."""
        self._pieces = []
        self.size = 0
        self._meter.charge_memory(-self._charged)
        self._charged = 0


def line_batches(chunks: Iterable[AnyStr], end: AnyStr, meter: Meter) -> Iterator[list[AnyStr]]:
    """The lines of what comes in pieces, many at once; *end* is left out, and the last one may have none."""
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
                # Whoever took them may still have the list.
                lines.clear()
            if last:
                long.add(last)
        if long.size:
            yield [long.take()]
    finally:
        long.release()


def join_lines(lines: Iterable[AnyStr], end: AnyStr) -> Iterator[AnyStr]:
    """*lines*, each with *end*, in pieces that are worth writing but never much longer than a line."""
    batch: list[AnyStr] = []
    size = 0
    for line in lines:
        batch.append(line)
        size += len(line) + 1
        if size >= BUFFER_BYTES or len(batch) >= _MOST_LINES:
            yield end.join(batch) + end
            batch, size = [], 0
    if batch:
        yield end.join(batch) + end
