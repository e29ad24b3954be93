"""Arrange entries: names in columns or separated by commas, and long lines with attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from carrel.shell.commands.ls.entry import Indicator, ListEntry, NameStyle, indicator_suffix, render_name
from carrel.shell.text.attributes import OWNER, ceil_divide, human, mode_letters
from carrel.shell.text.timestamps import SECOND_NS, render_full_timestamp, render_timestamp
from carrel.values import FileKind

_GAP = 2
_MIN_WIDTH = 3
"""Minimum column width, gap included."""
_TAB = 8


def arrange_columns(cells: Sequence[bytes], width: int, *, across: bool) -> bytes:
    """Arrange *cells* in columns, filled downwards or *across*; in one line if *width* is 0."""
    if not cells or width == 0:
        return b"  ".join(cells) + b"\n" if cells else b""
    lengths = [len(cell) for cell in cells]
    widths = _column_widths(lengths, width, across=across)
    count = len(widths)
    rows = ceil_divide(len(cells), count)
    lines: list[bytes] = []
    for row in range(rows):
        indexes = range(row * count, min(len(cells), (row + 1) * count)) if across else range(
            row, len(cells), rows
        )  # fmt: skip
        lines.append(_render_row([cells[at] for at in indexes], widths))
    return b"".join(lines)


def _column_widths(lengths: Sequence[int], width: int, *, across: bool) -> list[int]:
    """Return the widths of the columns, as many as fit into *width*."""
    max_count = min(len(lengths), ceil_divide(width, _MIN_WIDTH))
    for count in range(max_count, 1, -1):
        widths = _widths_of(lengths, count, across=across)
        if sum(widths) < width:
            return widths
    return [max(lengths)]


def _widths_of(lengths: Sequence[int], count: int, *, across: bool) -> list[int]:
    """Return the widths of *count* columns."""
    rows = ceil_divide(len(lengths), count)
    widths = []
    for column in range(count):
        column_lengths = lengths[column::count] if across else lengths[column * rows : (column + 1) * rows]
        gap = 0 if column == count - 1 else _GAP
        widths.append(max(_MIN_WIDTH, max(column_lengths, default=0) + gap if column_lengths else 0))
    return widths


def _render_row(cells: Sequence[bytes], widths: Sequence[int]) -> bytes:
    parts: list[bytes] = []
    at = 0
    for number, cell in enumerate(cells):
        parts.append(cell)
        if number + 1 < len(cells):
            parts.append(_indent(at + len(cell), at + widths[number]))
            at += widths[number]
    return b"".join(parts) + b"\n"


def _indent(begin: int, end: int) -> bytes:
    """Return tabs and spaces from one column to another."""
    parts = bytearray()
    while begin < end:
        if end // _TAB > (begin + 1) // _TAB:
            parts += b"\t"
            begin += _TAB - begin % _TAB
        else:
            parts += b" "
            begin += 1
    return bytes(parts)


def arrange_with_commas(cells: Sequence[bytes], width: int) -> bytes:
    """Arrange *cells* in lines, separated by commas."""
    parts: list[bytes] = []
    at = 0
    for number, cell in enumerate(cells):
        if number:
            fits = width == 0 or at + len(cell) + 2 < width
            parts.append(b", " if fits else b",\n")
            at = at + 2 if fits else 0
        parts.append(cell)
        at += len(cell)
    return b"".join(parts) + b"\n" if cells else b""


_MINUTE_NS = 60 * SECOND_NS
_HALF_YEAR_NS = 31_556_952 // 2 * SECOND_NS


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Which columns are shown, and how they are rendered."""

    inode: bool
    blocks: bool
    owner: bool
    group: bool
    numeric: bool
    base: int | None
    """Base of human-readable sizes, 1000 or 1024; `None` for plain numbers."""
    time_style: str
    indicator: Indicator
    style: NameStyle
    now_ns: int

    def render_cells(self, entries: Sequence[ListEntry], *, aligned: bool) -> list[bytes]:
        """Render the names, after inodes and blocks if enabled."""
        prefixes = self._prefixes(entries, entries if aligned else ())
        return [
            prefix + render_name(entry.name, self.style) + indicator_suffix(entry.info, self.indicator)
            for prefix, entry in zip(prefixes, entries, strict=True)
        ]

    def render_lines(self, entries: Sequence[ListEntry], measured: Sequence[ListEntry]) -> bytes:
        """Render a long line for each entry, with columns as wide as *measured* requires."""
        sizes = [self._render_size(entry.info.host_bytes) for entry in entries]
        size_width = _width(self._render_size(entry.info.host_bytes) for entry in measured)
        link_width = _width(str(entry.info.links) for entry in measured)
        owner = ("0" if self.numeric else OWNER) + " "
        owners = owner * (self.owner + self.group)
        return b"".join(
            prefix
            + f"{mode_letters(entry.info)} {entry.info.links:>{link_width}} ".encode()
            + f"{owners}{size:>{size_width}} ".encode()
            + self._render_time(entry.info.modified_ns).encode("utf-8", "surrogateescape")
            + b" "
            + self._render_name(entry)
            for prefix, entry, size in zip(self._prefixes(entries, measured), entries, sizes, strict=True)
        )

    def render_total(self, entries: Sequence[ListEntry]) -> bytes:
        """Render the total disk space of *entries*."""
        return f"total {self._render_blocks(sum(entry.info.blocks for entry in entries))}\n".encode()

    def _prefixes(self, entries: Sequence[ListEntry], measured: Sequence[ListEntry]) -> list[bytes]:
        """Render the columns before the names or the long lines."""
        numbers: list[Callable[[ListEntry], str]] = []
        if self.inode:
            numbers.append(lambda entry: str(entry.info.inode))
        if self.blocks:
            numbers.append(lambda entry: self._render_blocks(entry.info.blocks))
        if not numbers:
            return [b""] * len(entries)
        widths = [_width(map(number, measured)) for number in numbers]
        columns = list(zip(numbers, widths, strict=True))
        return ["".join(f"{n(entry):>{width}} " for n, width in columns).encode() for entry in entries]

    def _render_blocks(self, blocks: int) -> str:
        return human(blocks * 512, self.base) if self.base else str(ceil_divide(blocks, 2))

    def _render_size(self, size: int) -> str:
        return human(size, self.base) if self.base else str(size)

    def _render_time(self, when_ns: int) -> str:
        style = self.time_style
        if style == "full-iso":
            return render_full_timestamp(when_ns)
        if style.startswith("+"):
            return _render_by_age(style[1:].split("\n", 1), self._is_recent(when_ns), when_ns)
        if style == "long-iso":
            return render_timestamp("%Y-%m-%d %H:%M", when_ns)
        formats = ["%Y-%m-%d ", "%m-%d %H:%M"] if style == "iso" else ["%b %e  %Y", "%b %e %H:%M"]
        # Rounded to the minute: files modified together then share a cached result.
        return _render_by_age(formats, self._is_recent(when_ns), when_ns - when_ns % _MINUTE_NS)

    def _is_recent(self, when_ns: int) -> bool:
        return self.now_ns - _HALF_YEAR_NS < when_ns < self.now_ns

    def _render_name(self, entry: ListEntry) -> bytes:
        name = render_name(entry.name, self.style)
        if entry.info.kind is not FileKind.LINK:
            return name + indicator_suffix(entry.info, self.indicator) + b"\n"
        end = indicator_suffix(entry.target, self.indicator) if entry.target else b""
        return name + b" -> " + render_name(entry.info.target or "", self.style) + end + b"\n"


def _render_by_age(formats: Sequence[str], is_recent: bool, when_ns: int) -> str:
    """Render a time in the first of *formats* if it is old, otherwise in the last."""
    return render_timestamp(formats[-1 if is_recent else 0], when_ns)


def _width(texts: Iterable[str]) -> int:
    return max(map(len, texts), default=0)
