"""Names next to each other, as many as a line has room for."""

from __future__ import annotations

from collections.abc import Sequence

_GAP = 2
_LEAST = 3
"""No column is narrower, with its gap."""
_TAB = 8


def in_columns(cells: Sequence[bytes], width: int, *, across: bool) -> bytes:
    """*cells* in columns that are read downwards, or *across*; in one line if the *width* is 0."""
    if not cells or width == 0:
        return b"  ".join(cells) + b"\n" if cells else b""
    lengths = [len(cell) for cell in cells]
    widths = _widths(lengths, width, across=across)
    count = len(widths)
    rows = -(-len(cells) // count)
    lines: list[bytes] = []
    for row in range(rows):
        places = range(row * count, min(len(cells), (row + 1) * count)) if across else range(
            row, len(cells), rows
        )  # fmt: skip
        lines.append(_line([cells[at] for at in places], widths))
    return b"".join(lines)


def _widths(lengths: Sequence[int], width: int, *, across: bool) -> list[int]:
    """The widths of the most columns that fit."""
    most = min(len(lengths), -(-width // _LEAST))
    for count in range(most, 1, -1):
        widths = _for_count(lengths, count, across=across)
        if sum(widths) < width:
            return widths
    return [max(lengths)]


def _for_count(lengths: Sequence[int], count: int, *, across: bool) -> list[int]:
    rows = -(-len(lengths) // count)
    widths = []
    for column in range(count):
        part = lengths[column::count] if across else lengths[column * rows : (column + 1) * rows]
        gap = 0 if column == count - 1 else _GAP
        widths.append(max(_LEAST, max(part, default=0) + gap if part else 0))
    return widths


def _line(cells: Sequence[bytes], widths: Sequence[int]) -> bytes:
    parts: list[bytes] = []
    at = 0
    for number, cell in enumerate(cells):
        parts.append(cell)
        if number + 1 < len(cells):
            parts.append(_indent(at + len(cell), at + widths[number]))
            at += widths[number]
    return b"".join(parts) + b"\n"


def _indent(begin: int, end: int) -> bytes:
    """Tabs and spaces from one column to another."""
    parts = bytearray()
    while begin < end:
        if end // _TAB > (begin + 1) // _TAB:
            parts += b"\t"
            begin += _TAB - begin % _TAB
        else:
            parts += b" "
            begin += 1
    return bytes(parts)


def with_commas(cells: Sequence[bytes], width: int) -> bytes:
    """*cells* one after the other, with commas between them."""
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
