"""Long outputs of commands and code, kept for a while so that a caller can go on where an answer was cut."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

from carrel.errors import ToolError
from carrel.tools.advice import ToldError
from carrel.tools.cut import cut_text
from carrel.values import MIB

KEPT = 8
"""So many outputs are kept; the one that was asked for the longest ago goes first."""
KEPT_BYTES = 32 * MIB
"""So much of them together; one that is larger alone is kept until the next comes."""
_DIGITS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What was printed, and all else that there is to tell about it."""

    asked: str
    """The command line or the code."""
    streams: Mapping[str, bytes]
    success: bool
    error: str | None
    metadata: Mapping[str, Any]

    @property
    def size_bytes(self) -> int:
        """Of all streams."""
        return sum(map(len, self.streams.values()))


class Part(NamedTuple):
    """As much of an output as one answer holds."""

    texts: Mapping[str, str]
    """By stream."""
    next_cursor: str | None
    """Where the next part begins, if there is one."""
    left_bytes: int
    """How much comes after this part."""


class Outputs:
    """The last outputs that did not fit into one answer.

    A cursor names its output by the content, so what it goes on with is what was begun.
    """

    def __init__(self, *, most: int = KEPT, most_bytes: int = KEPT_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, Output] = OrderedDict()
        self._lock = Lock()

    def first(self, output: Output, most_bytes: int) -> Part:
        """The beginning of *output*, in at most *most_bytes*; if it is longer, it is kept."""
        key = "" if output.size_bytes <= most_bytes else self._keep(output)
        return _part(output, _Cursor(key, (0,) * len(output.streams)), most_bytes)

    def rest(self, cursor: str, asked: str, most_bytes: int) -> tuple[Output, Part]:
        """The output that *cursor* lies in, and what comes next of it.

        Raises:
            ToolError: No answer gave that cursor, or it was given for something else than *asked*.
            ToldError: The output is not kept any more.
        """
        at = _Cursor.parse(cursor)
        with self._lock:
            output = self._kept.get(at.key)
            if output is not None:
                self._kept.move_to_end(at.key)
        if output is None:
            raise ToldError(
                "tool.cursor",
                "The rest of this output is no longer kept",
                then="Run it again, and let it print less at once.",
            )
        if output.asked != asked:
            raise _wrong("was given for something else: repeat what was asked then")
        if len(at.positions) != len(output.streams):
            raise _wrong("was not given by an answer")
        return output, _part(output, at, most_bytes)

    def _keep(self, output: Output) -> str:
        key = _digest(output)
        with self._lock:
            self._kept[key] = output
            self._kept.move_to_end(key)
            while len(self._kept) > 1 and self._is_full():
                self._kept.popitem(last=False)
        return key

    def _is_full(self) -> bool:
        size = sum(each.size_bytes for each in self._kept.values())
        return len(self._kept) > self._most or size > self._most_bytes


class _Cursor(NamedTuple):
    """Where a part begins: in which output, and how far in each stream."""

    key: str
    positions: tuple[int, ...]

    def render(self) -> str:
        return ".".join([self.key, *map(str, self.positions)])

    @classmethod
    def parse(cls, text: str) -> _Cursor:
        key, *positions = text.split(".")
        if not positions or not all(
            each.isascii() and each.isdecimal() and len(each) <= _DIGITS for each in positions
        ):
            raise _wrong("was not given by an answer")
        return cls(key, tuple(map(int, positions)))


def _wrong(problem: str) -> ToolError:
    return ToolError("arguments", f"Wrong arguments: 'cursor' {problem}")


def _digest(output: Output) -> str:
    digest = hashlib.sha256(output.asked.encode("utf-8", "surrogatepass"))
    for name, content in output.streams.items():
        digest.update(f"\0{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _part(output: Output, at: _Cursor, most_bytes: int) -> Part:
    streams = list(output.streams.values())
    starts = [min(start, len(stream)) for start, stream in zip(at.positions, streams, strict=True)]
    shares = _shares([len(stream) - start for start, stream in zip(starts, streams, strict=True)], most_bytes)
    texts, ends = {}, []
    for name, start, share in zip(output.streams, starts, shares, strict=True):
        # One more byte shows that the stream goes on.
        window = output.streams[name][start : start + share + 1]
        size = cut_text(window, share) if share else 0
        texts[name] = window[:size].decode("utf-8", "replace")
        ends.append(start + size)
    left = output.size_bytes - sum(ends)
    return Part(texts, _Cursor(at.key, tuple(ends)).render() if left else None, left)


def _shares(sizes: list[int], most: int) -> list[int]:
    """How much of *most* each gets: the same, but what a short one does not need goes to the others."""
    shares = [0] * len(sizes)
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    for count, index in enumerate(order):
        shares[index] = min(sizes[index], -(-most // (len(sizes) - count)))
        most -= shares[index]
    return shares
