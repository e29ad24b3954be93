"""Answers that are too long: cut them, return a cursor, and keep long outputs for the next page."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from carrel.errors import ChangedError, ToolError
from carrel.tools.core.advice import AdvisedError
from carrel.values import MIB

Value = TypeVar("Value")

_LOOK_BACK = 2**14
"""So far before the limit a line end is looked for."""


class Cursor(NamedTuple):
    """Where the next answer begins, and in what."""

    position: int
    version: str = ""
    """That of the file, so that what goes on is what was begun."""

    def render(self) -> str:
        """As it is told."""
        return f"{self.position}@{self.version}" if self.version else str(self.position)

    @classmethod
    def parse(cls, text: str | None) -> Cursor:
        """The cursor in *text*; without one, the beginning.

        Raises:
            ToolError: It is none that was told.
        """
        if text is None:
            return cls(0)
        position, _, version = text.partition("@")
        if not position.isdecimal() or not position.isascii() or len(position) > 18:
            raise ToolError("arguments", "Wrong arguments: 'cursor' was not given by an answer")
        return cls(int(position), version)

    def require(self, version: str, path: str) -> None:
        """Refuse to go on in a file that is another by now.

        Raises:
            ChangedError: It was changed.
        """
        if self.version and self.version != version:
            raise ChangedError(f"{path!r} was changed meanwhile", path=path)


def cut_text(data: bytes, most: int) -> int:
    """How many bytes of UTF-8 to give if *most* may be given: whole lines if there are any, or characters."""
    if len(data) <= most:
        return len(data)
    line_end = data.rfind(b"\n", max(0, most - _LOOK_BACK), most)
    if line_end >= 0:
        return line_end + 1
    end = most
    while end > 0 and data[end] & 0xC0 == 0x80:
        end -= 1
    return end or _first_character(data, most)


def _first_character(data: bytes, most: int) -> int:
    """The size of the first character, which does not fit but without which nobody would get on."""
    if data[0] < 0xC0:
        # It is no UTF-8, so it does not matter where it is cut.
        return most
    end = 1
    while end < min(len(data), 4) and data[end] & 0xC0 == 0x80:
        end += 1
    return end


def fit_values(values: Iterable[Value], most: int) -> list[Value]:
    """As many of *values*, which JSON can say, as take at most *most* bytes together; but at least one."""
    given: list[Value] = []
    room = most
    for value in values:
        room -= len(json.dumps(value)) + 2
        if room < 0 and given:
            break
        given.append(value)
    return given


MAX_KEPT_OUTPUTS = 8
"""So many outputs are kept; the one that was asked for the longest ago goes first."""
MAX_KEPT_BYTES = 32 * MIB
"""So much of them together; one that is larger alone is kept until the next comes."""
_DIGITS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOutput:
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


class OutputPage(NamedTuple):
    """As much of an output as one answer holds."""

    texts: Mapping[str, str]
    """By stream."""
    next_cursor: str | None
    """Where the next part begins, if there is one."""
    left_bytes: int
    """How much comes after this part."""


class OutputStore:
    """The last outputs that did not fit into one answer.

    A cursor names its output by the content, so what it goes on with is what was begun.
    """

    def __init__(self, *, most: int = MAX_KEPT_OUTPUTS, most_bytes: int = MAX_KEPT_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, KeptOutput] = OrderedDict()
        self._lock = Lock()

    def first(self, output: KeptOutput, most_bytes: int) -> OutputPage:
        """The beginning of *output*, in at most *most_bytes*; if it is longer, it is kept."""
        key = "" if output.size_bytes <= most_bytes else self._keep(output)
        return _page(output, _OutputCursor(key, (0,) * len(output.streams)), most_bytes)

    def rest(self, cursor: str, asked: str, most_bytes: int) -> tuple[KeptOutput, OutputPage]:
        """The output that *cursor* lies in, and what comes next of it.

        Raises:
            ToolError: No answer gave that cursor, or it was given for something else than *asked*.
            ToldError: The output is not kept any more.
        """
        at = _OutputCursor.parse(cursor)
        with self._lock:
            output = self._kept.get(at.key)
            if output is not None:
                self._kept.move_to_end(at.key)
        if output is None:
            raise AdvisedError(
                "tool.cursor",
                "The rest of this output is no longer kept",
                then="Run it again, and let it print less at once.",
            )
        if output.asked != asked:
            raise _wrong("was given for something else: repeat what was asked then")
        if len(at.positions) != len(output.streams):
            raise _wrong("was not given by an answer")
        return output, _page(output, at, most_bytes)

    def _keep(self, output: KeptOutput) -> str:
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


class _OutputCursor(NamedTuple):
    """Where a part begins: in which output, and how far in each stream."""

    key: str
    positions: tuple[int, ...]

    def render(self) -> str:
        return ".".join([self.key, *map(str, self.positions)])

    @classmethod
    def parse(cls, text: str) -> _OutputCursor:
        key, *positions = text.split(".")
        if not positions or not all(
            each.isascii() and each.isdecimal() and len(each) <= _DIGITS for each in positions
        ):
            raise _wrong("was not given by an answer")
        return cls(key, tuple(map(int, positions)))


def _wrong(problem: str) -> ToolError:
    return ToolError("arguments", f"Wrong arguments: 'cursor' {problem}")


def _digest(output: KeptOutput) -> str:
    digest = hashlib.sha256(output.asked.encode("utf-8", "surrogatepass"))
    for name, content in output.streams.items():
        digest.update(f"\0{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _page(output: KeptOutput, at: _OutputCursor, most_bytes: int) -> OutputPage:
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
    return OutputPage(texts, _OutputCursor(at.key, tuple(ends)).render() if left else None, left)


def _shares(sizes: list[int], most: int) -> list[int]:
    """How much of *most* each gets: the same, but what a short one does not need goes to the others."""
    shares = [0] * len(sizes)
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    for count, index in enumerate(order):
        shares[index] = min(sizes[index], -(-most // (len(sizes) - count)))
        most -= shares[index]
    return shares
