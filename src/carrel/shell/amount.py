"""How many lines or bytes `head` and `tail` print, and the parts of a stream that are so long."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from carrel.shell.budget import Meter
from carrel.shell.flags import parse_size


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of lines or bytes."""

    count: int
    of_bytes: bool = False
    sign: str = ""
    """`+` or `-`, if the number had one."""


TEN_LINES = Amount(10)
"""What is printed if nothing else is asked for."""


def lines_of(text: str) -> Amount:
    """Read a number of lines, or raise `ValueError`."""
    return _amount(text, of_bytes=False, what="invalid number of lines")


def bytes_of(text: str) -> Amount:
    """Read a number of bytes, or raise `ValueError`."""
    return _amount(text, of_bytes=True, what="invalid number of bytes")


def _amount(text: str, *, of_bytes: bool, what: str) -> Amount:
    sign = text[:1] if text[:1] in ("+", "-") else ""
    return Amount(parse_size(text[len(sign) :], what), of_bytes, sign)


def after_end(data: bytes, number: int, end: bytes) -> int:
    """The offset behind the *number*-th *end* in *data*, which has as many."""
    at = 0
    for _ in range(number):
        at = data.find(end, at) + 1
    return at


def first_part(chunks: Iterator[bytes], amount: Amount, end: bytes) -> Iterator[bytes]:
    """So much of the beginning; nothing more is read."""
    left = amount.count
    if not left:
        return
    for chunk in chunks:
        size = len(chunk) if amount.of_bytes else chunk.count(end)
        if size >= left:
            yield chunk[: left if amount.of_bytes else after_end(chunk, left, end)]
            return
        left -= size
        yield chunk


def without_first(chunks: Iterator[bytes], amount: Amount, end: bytes) -> Iterator[bytes]:
    """All but so much of the beginning."""
    left = amount.count
    for chunk in chunks:
        size = len(chunk) if amount.of_bytes else chunk.count(end)
        if not left:
            yield chunk
        elif size >= left:
            yield chunk[left if amount.of_bytes else after_end(chunk, left, end) :]
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


class LastPart:
    """Holds the last lines or bytes of a stream while it passes, and lets the rest go."""

    def __init__(self, meter: Meter, amount: Amount, end: bytes) -> None:
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
        self._meter.hold(count)

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
            at = over if self._amount.of_bytes else after_end(chunk, over, self._end)
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
        self._meter.hold(-self._held_bytes)
        self._held.clear()
