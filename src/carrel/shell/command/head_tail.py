"""The first and last lines or bytes of files, for `head`, `tail` and `tac`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from carrel.shell.budget import Meter
from carrel.shell.command.context import NULL, STDIN, Context
from carrel.shell.command.flags import parse_size
from carrel.shell.text.quoting import encode


@dataclass(frozen=True, slots=True)
class LineOrByteCount:
    """A number of lines or bytes."""

    count: int
    of_bytes: bool = False
    sign: str = ""
    """Sign of the number as written: `+`, `-` or empty."""


TEN_LINES = LineOrByteCount(10)
"""Default amount of `head` and `tail`."""


def parse_line_count(text: str) -> LineOrByteCount:
    """Parse a number of lines.

    Raises:
        ValueError: The text is not a number with an optional suffix.
    """
    return _parse_amount(text, of_bytes=False, what="invalid number of lines")


def parse_byte_count(text: str) -> LineOrByteCount:
    """Parse a number of bytes.

    Raises:
        ValueError: The text is not a number with an optional suffix.
    """
    return _parse_amount(text, of_bytes=True, what="invalid number of bytes")


def _parse_amount(text: str, *, of_bytes: bool, what: str) -> LineOrByteCount:
    sign = text[:1] if text[:1] in ("+", "-") else ""
    return LineOrByteCount(parse_size(text[len(sign) :], what), of_bytes, sign)


def offset_after(data: bytes, number: int, end: bytes) -> int:
    """Return the offset after the *number*-th *end* in *data*, which has at least as many."""
    at = 0
    for _ in range(number):
        at = data.find(end, at) + 1
    return at


def take_first(chunks: Iterator[bytes], amount: LineOrByteCount, end: bytes) -> Iterator[bytes]:
    """Yield *amount* from the beginning, and read nothing more."""
    left = amount.count
    if not left:
        return
    for chunk in chunks:
        size = len(chunk) if amount.of_bytes else chunk.count(end)
        if size >= left:
            yield chunk[: left if amount.of_bytes else offset_after(chunk, left, end)]
            return
        left -= size
        yield chunk


def drop_first(chunks: Iterator[bytes], amount: LineOrByteCount, end: bytes) -> Iterator[bytes]:
    """Yield everything but *amount* from the beginning."""
    left = amount.count
    for chunk in chunks:
        size = len(chunk) if amount.of_bytes else chunk.count(end)
        if not left:
            yield chunk
        elif size >= left:
            yield chunk[left if amount.of_bytes else offset_after(chunk, left, end) :]
            left = 0
        else:
            left -= size


_CHUNK_OVERHEAD_BYTES = 192
"""Memory charged for a held chunk besides its bytes."""


@dataclass(slots=True)
class _HeldChunk:
    chunk: bytes
    size: int
    """In lines or bytes, whichever is counted."""


class LastBuffer:
    """Buffers the last lines or bytes of a stream, and passes on everything before them."""

    def __init__(self, meter: Meter, amount: LineOrByteCount, end: bytes) -> None:
        self._meter = meter
        self._amount = amount
        self._end = end
        self._held: deque[_HeldChunk] = deque()
        self._held_bytes = 0
        self._total = 0
        # The last line of a chunk may continue in the next one.
        self._needed = amount.count if amount.of_bytes else amount.count + 1

    def push(self, chunk: bytes) -> Iterator[bytes]:
        """Add *chunk*, and yield the chunks that can no longer be part of the end."""
        held = self._held
        self._charge(len(chunk) + _CHUNK_OVERHEAD_BYTES)
        held.append(_HeldChunk(chunk, len(chunk) if self._amount.of_bytes else chunk.count(self._end)))
        self._total += held[-1].size
        while held and self._total - held[0].size >= self._needed:
            dropped = held.popleft()
            self._total -= dropped.size
            self._charge(-len(dropped.chunk) - _CHUNK_OVERHEAD_BYTES)
            yield dropped.chunk

    def _charge(self, count: int) -> None:
        self._held_bytes += count
        self._meter.charge_memory(count)

    def finish(self) -> Iterator[bytes]:
        """End the stream, and yield the rest of what is not part of the end."""
        held = self._held
        excess = self._total_with_last_line() - self._amount.count
        while held and excess > 0:
            if held[0].size < excess:
                dropped = held.popleft()
                excess -= dropped.size
                yield dropped.chunk
                continue
            chunk = held[0].chunk
            at = excess if self._amount.of_bytes else offset_after(chunk, excess, self._end)
            held[0].chunk = chunk[at:]
            yield chunk[:at]
            return

    def _total_with_last_line(self) -> int:
        is_complete = self._amount.of_bytes or not self._held or self._held[-1].chunk.endswith(self._end)
        return self._total + (not is_complete)

    def rest(self) -> Iterator[bytes]:
        """Return the end of the stream, after `finish`."""
        return (held.chunk for held in self._held)

    def release(self) -> None:
        """Drop the buffer and release its memory."""
        self._meter.charge_memory(-self._held_bytes)
        self._held.clear()


class Headings:
    """Prints the heading before each file, unless disabled."""

    def __init__(self, ctx: Context, *, enabled: bool) -> None:
        self._ctx = ctx
        self._enabled = enabled
        self._is_first = True

    def print(self, file: str) -> None:
        """Print the heading of *file*."""
        if not self._enabled:
            return
        name = "standard input" if file == STDIN else file
        start = b"" if self._is_first else b"\n"
        self._is_first = False
        self._ctx.write(start + b"==> " + encode(name) + b" <==\n")


BLOCK_BYTES = 2**16
"""Bytes read at a time when reading backward."""


def blocks_backward(ctx: Context, operand: str) -> Iterator[bytes]:
    """Return the blocks of a file, the last one first; standard input is buffered as a whole."""
    if operand in (STDIN, NULL):
        return _buffer_stream(ctx, operand)
    return _read_blocks(ctx, operand, ctx.stat(operand).size_bytes)


def read_window(ctx: Context, operand: str, offset: int, length: int = BLOCK_BYTES) -> bytes:
    """Read *length* bytes of a file from *offset*."""
    ctx.meter.check()
    return ctx.workspace.read(ctx.path(operand), offset=offset, length=length)


def _read_blocks(ctx: Context, operand: str, size: int) -> Iterator[bytes]:
    # Even an empty file is read once, which fails for a directory or without permission.
    first = size - (size % BLOCK_BYTES or min(size, BLOCK_BYTES))
    for offset in range(first, -1, -BLOCK_BYTES):
        yield read_window(ctx, operand, offset, min(BLOCK_BYTES, size - offset))


def _buffer_stream(ctx: Context, operand: str) -> Iterator[bytes]:
    held: list[bytes] = []
    for chunk in ctx.chunks(operand):
        ctx.meter.charge_memory(len(chunk))
        held.append(chunk)
    while held:
        yield held[-1]
        ctx.meter.charge_memory(-len(held.pop()))
