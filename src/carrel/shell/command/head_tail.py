"""The first and last lines or bytes of files, for `head`, `tail` and `tac`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from carrel.shell.budget import Meter
from carrel.shell.command.context import STDIN, Context
from carrel.shell.command.flags import parse_size
from carrel.shell.text.quoting import encode


@dataclass(frozen=True, slots=True)
class LineOrByteCount:
    """A number of lines or bytes."""

    count: int
    of_bytes: bool = False
    sign: str = ""
    """`+` or `-`, if the number had one."""


TEN_LINES = LineOrByteCount(10)
"""What is printed if nothing else is asked for."""


def parse_line_count(text: str) -> LineOrByteCount:
    """Read a number of lines, or raise `ValueError`."""
    return _amount(text, of_bytes=False, what="invalid number of lines")


def parse_byte_count(text: str) -> LineOrByteCount:
    """Read a number of bytes, or raise `ValueError`."""
    return _amount(text, of_bytes=True, what="invalid number of bytes")


def _amount(text: str, *, of_bytes: bool, what: str) -> LineOrByteCount:
    sign = text[:1] if text[:1] in ("+", "-") else ""
    return LineOrByteCount(parse_size(text[len(sign) :], what), of_bytes, sign)


def offset_after(data: bytes, number: int, end: bytes) -> int:
    """The offset behind the *number*-th *end* in *data*, which has as many."""
    at = 0
    for _ in range(number):
        at = data.find(end, at) + 1
    return at


def take_first(chunks: Iterator[bytes], amount: LineOrByteCount, end: bytes) -> Iterator[bytes]:
    """So much of the beginning; nothing more is read."""
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
    """All but so much of the beginning."""
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


_HELD_BYTES = 192
"""Memory that a chunk takes besides its bytes."""


@dataclass(slots=True)
class _Held:
    chunk: bytes
    size: int
    """In lines or bytes, as they are counted."""


class LastBuffer:
    """Holds the last lines or bytes of a stream while it passes, and lets the rest go."""

    def __init__(self, meter: Meter, amount: LineOrByteCount, end: bytes) -> None:
        self._meter = meter
        self._amount = amount
        self._end = end
        self._held: deque[_Held] = deque()
        self._held_bytes = 0
        self._total = 0
        # The line that a chunk ends with may go on in the next one.
        self._needed = amount.count if amount.of_bytes else amount.count + 1

    def push(self, chunk: bytes) -> Iterator[bytes]:
        """Take *chunk*, and give what cannot be in the last part any more."""
        held = self._held
        self._hold(len(chunk) + _HELD_BYTES)
        held.append(_Held(chunk, len(chunk) if self._amount.of_bytes else chunk.count(self._end)))
        self._total += held[-1].size
        while held and self._total - held[0].size >= self._needed:
            gone = held.popleft()
            self._total -= gone.size
            self._hold(-len(gone.chunk) - _HELD_BYTES)
            yield gone.chunk

    def _hold(self, count: int) -> None:
        self._held_bytes += count
        self._meter.charge_memory(count)

    def finish(self) -> Iterator[bytes]:
        """Give the rest of what is not in the last part; there is no more."""
        held = self._held
        over = self._lines_or_bytes() - self._amount.count
        while held and over > 0:
            if held[0].size < over:
                gone = held.popleft()
                over -= gone.size
                yield gone.chunk
                continue
            chunk = held[0].chunk
            at = over if self._amount.of_bytes else offset_after(chunk, over, self._end)
            held[0].chunk = chunk[at:]
            yield chunk[:at]
            return

    def _lines_or_bytes(self) -> int:
        is_open = not self._amount.of_bytes and self._held and not self._held[-1].chunk.endswith(self._end)
        return self._total + bool(is_open)

    def rest(self) -> Iterator[bytes]:
        """The last part, after `finish`."""
        return (held.chunk for held in self._held)

    def release(self) -> None:
        """Forget what is held."""
        self._meter.charge_memory(-self._held_bytes)
        self._held.clear()


class Headings:
    """Prints which file follows, if that is wanted."""

    def __init__(self, ctx: Context, *, wanted: bool) -> None:
        self._ctx = ctx
        self._wanted = wanted
        self._is_first = True

    def print(self, file: str) -> None:
        """Print the heading of *file*."""
        if not self._wanted:
            return
        name = "standard input" if file == STDIN else file
        start = b"" if self._is_first else b"\n"
        self._is_first = False
        self._ctx.write(start + b"==> " + encode(name) + b" <==\n")


BLOCK_BYTES = 2**16
"""So much is read at a time."""


def blocks_backward(ctx: Context, operand: str) -> Iterator[bytes]:
    """The content of a file, the last block first; all of standard input is held for it."""
    if operand == STDIN:
        return _held(ctx)
    return _read(ctx, operand, ctx.stat(operand).size_bytes)


def read_window(ctx: Context, operand: str, offset: int, length: int = BLOCK_BYTES) -> bytes:
    """*length* bytes of a file from *offset* on."""
    ctx.meter.check()
    return ctx.workspace.read(ctx.path(operand), offset=offset, length=length)


def _read(ctx: Context, operand: str, size: int) -> Iterator[bytes]:
    # A first read, of nothing perhaps, tells about a directory or a missing permission.
    first = size - (size % BLOCK_BYTES or min(size, BLOCK_BYTES))
    for offset in range(first, -1, -BLOCK_BYTES):
        yield read_window(ctx, operand, offset, min(BLOCK_BYTES, size - offset))


def _held(ctx: Context) -> Iterator[bytes]:
    held: list[bytes] = []
    for chunk in ctx.chunks(STDIN):
        ctx.meter.charge_memory(len(chunk))
        held.append(chunk)
    while held:
        yield held[-1]
        ctx.meter.charge_memory(-len(held.pop()))
