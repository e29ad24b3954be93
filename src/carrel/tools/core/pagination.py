"""Pagination of long results: truncate them, return a cursor, and keep long outputs for the next page."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from carrel.errors import ChangedError, ToolError
from carrel.tools.core.advice import AdvisedError
from carrel.tools.core.schema import Param
from carrel.values import MIB

NextCursor = Annotated[str | None, Param("next_cursor from a truncated result, to continue from there")]
"""The `cursor` argument of tools whose results have pages."""

Value = TypeVar("Value")

_LOOK_BACK = 2**14
"""How far before the limit to look for the end of a line, in bytes."""


class Cursor(NamedTuple):
    """Where the next page begins: a position in one version of a file."""

    position: int
    version: str = ""
    """Version of the file, so that all pages come from the same content."""

    def render(self) -> str:
        """Return the text that results contain."""
        return f"{self.position}@{self.version}" if self.version else str(self.position)

    @classmethod
    def parse(cls, text: str | None) -> Cursor:
        """Parse *text*; `None` is the beginning.

        Raises:
            ToolError: It is not a cursor.
        """
        if text is None:
            return cls(0)
        position, _, version = text.partition("@")
        if not position.isdecimal() or not position.isascii() or len(position) > 18:
            raise _invalid_cursor("does not come from a result")
        return cls(int(position), version)

    def require(self, version: str, path: str) -> None:
        """Check that the file still has the version of the cursor.

        Raises:
            ChangedError: The file was changed.
        """
        if self.version and self.version != version:
            raise ChangedError(f"{path!r} was changed in the meantime", path=path)


def cut_text(data: bytes, max_bytes: int) -> int:
    """Return where to cut UTF-8 *data* of at most *max_bytes*: after a line, or else after a character."""
    if len(data) <= max_bytes:
        return len(data)
    line_end = data.rfind(b"\n", max(0, max_bytes - _LOOK_BACK), max_bytes)
    if line_end >= 0:
        return line_end + 1
    end = max_bytes
    while end > 0 and data[end] & 0xC0 == 0x80:
        end -= 1
    return end or _first_character_size(data, max_bytes)


def _first_character_size(data: bytes, max_bytes: int) -> int:
    """Return the size of the first character; it exceeds the limit, but the next page has to get further."""
    if data[0] < 0xC0:
        # Not UTF-8, so it does not matter where it is cut.
        return max_bytes
    end = 1
    while end < min(len(data), 4) and data[end] & 0xC0 == 0x80:
        end += 1
    return end


_CHARACTER_BYTES = 4
"""Longest UTF-8 character."""


class TextPage(NamedTuple):
    """Part of a text."""

    text: str
    end: int
    """Where the next part begins, in bytes."""


def text_page(data: bytes, start: int, max_bytes: int) -> TextPage:
    """Return the part of UTF-8 *data* from *start* on that fits into *max_bytes*, without copying more."""
    window = data[start : start + max_bytes + _CHARACTER_BYTES]
    size = cut_text(window, max_bytes)
    return TextPage(window[:size].decode("utf-8", "replace"), start + size)


def fit_values(values: Iterable[Value], max_bytes: int) -> list[Value]:
    """Return the first of *values* that fit into *max_bytes* of JSON together, but at least one."""
    return fit_data(values, max_bytes, max_bytes).values


class FittingData(NamedTuple, Generic[Value]):
    """The values that fit into one result."""

    values: list[Value]
    shown: int
    """How many of them a model reads."""


def fit_data(values: Iterable[Value], data_bytes: int, answer_bytes: int) -> FittingData[Value]:
    """Return the first of *values* that fit into *data_bytes* of JSON together, but at least one.

    A model reads those that fit into *answer_bytes*, but at least one.
    """
    fitting: list[Value] = []
    size = shown = 0
    for value in values:
        size += len(json.dumps(value)) + 2
        if size > data_bytes and fitting:
            break
        fitting.append(value)
        if size <= answer_bytes or not shown:
            shown = len(fitting)
    return FittingData(fitting, shown)


MAX_KEPT_OUTPUTS = 8
"""Outputs kept for their next pages; the least recently used is dropped first."""
MAX_KEPT_BYTES = 32 * MIB
"""Size of all kept outputs together; a larger one is kept alone, until the next."""
_DIGITS = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOutput:
    """The output of a run, with what its result says."""

    source: str
    """The command line or the code."""
    streams: Mapping[str, bytes]
    success: bool
    error: str | None
    metadata: Mapping[str, Any]

    @property
    def size_bytes(self) -> int:
        """Size of all streams together."""
        return sum(map(len, self.streams.values()))


class OutputPage(NamedTuple):
    """The part of an output that one result holds."""

    output: KeptOutput
    texts: Mapping[str, str]
    """By stream, for programs."""
    next_cursor: str | None
    """Where the next page begins, if there is one."""
    left_bytes: int
    """Size of what follows this page."""

    @property
    def note(self) -> str | None:
        """The line that says how to continue, if there is more."""
        if self.next_cursor is None:
            return None
        return f"[{self.left_bytes} bytes follow: repeat the call with cursor {self.next_cursor!r}]"


class ShownPage(NamedTuple):
    """A page of an output for programs, and what a model reads of it."""

    page: OutputPage
    shown: Mapping[str, str]
    """By stream."""
    note: str | None
    """The line that says how to continue, if there is more."""


class OutputStore:
    """The latest outputs that did not fit into one result.

    A cursor identifies its output by the content, so all pages come from the same run.
    """

    def __init__(self, *, max_outputs: int = MAX_KEPT_OUTPUTS, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self._max_outputs = max_outputs
        self._max_bytes = max_bytes
        self._kept: OrderedDict[str, KeptOutput] = OrderedDict()
        self._lock = Lock()

    def first_page(self, output: KeptOutput, data_bytes: int, answer_bytes: int) -> ShownPage:
        """Return the first *data_bytes* of *output*; keep it if it is longer.

        A model reads its beginning and its end, *answer_bytes* together.
        """
        key = "" if output.size_bytes <= min(data_bytes, answer_bytes) else self._keep(output)
        page = _page(output, _OutputCursor(key, (0,) * len(output.streams)), data_bytes)
        if output.size_bytes <= answer_bytes:
            return ShownPage(page, page.texts, None)
        return ShownPage(page, _excerpts(output, key, answer_bytes), None)

    def next_page(self, cursor: str, source: str, data_bytes: int, answer_bytes: int) -> ShownPage:
        """Return the page at *cursor* of the output of *source*, of which a model reads the beginning.

        Raises:
            ToolError: The cursor is not valid, or belongs to the output of another source.
            AdvisedError: The output is no longer kept.
        """
        start = _OutputCursor.parse(cursor)
        with self._lock:
            output = self._kept.get(start.key)
            if output is not None:
                self._kept.move_to_end(start.key)
        if output is None:
            raise AdvisedError(
                "tool.cursor",
                "The rest of this output is no longer kept",
                next="Run it again, and let it print less at once.",
            )
        if output.source != source:
            raise _invalid_cursor("belongs to another call: repeat the arguments of that call")
        if len(start.positions) != len(output.streams):
            raise _invalid_cursor("does not come from a result")
        page = _page(output, start, data_bytes)
        shown = page if data_bytes == answer_bytes else _page(output, start, answer_bytes)
        return ShownPage(page, shown.texts, shown.note)

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
        return len(self._kept) > self._max_outputs or size > self._max_bytes


class _OutputCursor(NamedTuple):
    """Where a page begins: the output and the position in each of its streams."""

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
            raise _invalid_cursor("does not come from a result")
        return cls(key, tuple(map(int, positions)))


def _invalid_cursor(problem: str) -> ToolError:
    return ToolError("arguments", f"Wrong arguments: 'cursor' {problem}")


def _digest(output: KeptOutput) -> str:
    digest = hashlib.sha256(output.source.encode("utf-8", "surrogatepass"))
    for name, content in output.streams.items():
        digest.update(f"\0{name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _page(output: KeptOutput, cursor: _OutputCursor, page_bytes: int) -> OutputPage:
    streams = list(output.streams.values())
    starts = [min(start, len(stream)) for start, stream in zip(cursor.positions, streams, strict=True)]
    shares = _shares([len(stream) - start for start, stream in zip(starts, streams, strict=True)], page_bytes)
    texts, ends = {}, []
    for name, start, share in zip(output.streams, starts, shares, strict=True):
        # One byte more than the share, so that `cut_text` sees whether the stream continues.
        window = output.streams[name][start : start + share + 1]
        size = cut_text(window, share) if share else 0
        texts[name] = window[:size].decode("utf-8", "replace")
        ends.append(start + size)
    left = output.size_bytes - sum(ends)
    next_cursor = _OutputCursor(cursor.key, tuple(ends)).render() if left else None
    return OutputPage(output, texts, next_cursor, left)


def _excerpts(output: KeptOutput, key: str, page_bytes: int) -> dict[str, str]:
    """Return each stream with a line in the place of its middle, so that all fit into *page_bytes*."""
    shares = _shares([len(stream) for stream in output.streams.values()], page_bytes)
    cuts = [_middle(stream, share) for stream, share in zip(output.streams.values(), shares, strict=True)]
    cursor = _OutputCursor(key, tuple(start for start, _ in cuts)).render()
    return {
        name: _without_middle(stream, start, end, cursor)
        for (name, stream), (start, end) in zip(output.streams.items(), cuts, strict=True)
    }


def _middle(stream: bytes, max_bytes: int) -> tuple[int, int]:
    """Return where the middle of *stream* begins and ends, without which it has at most *max_bytes*."""
    if len(stream) <= max_bytes:
        return len(stream), len(stream)
    head = max_bytes // 2
    start = cut_text(stream[: head + 1], head) if head else 0
    end = max(start, len(stream) - (max_bytes - start))
    # The end begins with a whole line if one begins nearby, else with a whole character.
    line = stream.find(b"\n", end - 1, (end + len(stream)) // 2)
    if line >= 0:
        return start, line + 1
    while end < len(stream) and stream[end] & 0xC0 == 0x80:
        end += 1
    return start, end


def _without_middle(stream: bytes, start: int, end: int, cursor: str) -> str:
    if start == end:
        return stream.decode("utf-8", "replace")
    beginning, ending = (part.decode("utf-8", "replace") for part in (stream[:start], stream[end:]))
    lines = stream.count(b"\n", start, end)
    size = f"{end - start} bytes" + (f" in {lines} lines" if lines > 1 else "")
    note = f"[Cut: {size} are left out here. To read them, repeat the call with cursor {cursor!r}]"
    separator = "\n" if beginning and not beginning.endswith("\n") else ""
    return f"{beginning}{separator}{note}\n{ending}"


def _shares(sizes: list[int], total: int) -> list[int]:
    """Divide *total* equally among *sizes*; what a short one does not need goes to the others."""
    shares = [0] * len(sizes)
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    for count, index in enumerate(order):
        shares[index] = min(sizes[index], -(-total // (len(sizes) - count)))
        total -= shares[index]
    return shares
