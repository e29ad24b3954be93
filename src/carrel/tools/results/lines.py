"""Lines of text: split, number, and truncate to the length of a result."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple


class FittedLines(NamedTuple):
    """Lines that fit into a result."""

    text: str
    kept: int
    """Number of lines."""
    is_cut: bool
    """Whether only part of a single line fits."""


def split_lines(content: bytes) -> list[bytes]:
    """Split at newlines, and at nothing else; each line keeps its newline."""
    *whole, rest = content.split(b"\n")
    lines = [line + b"\n" for line in whole]
    return [*lines, rest] if rest else lines


def numbered_line(number: int, line: str) -> str:
    """Prefix *line* with its number, as `cat -n` does."""
    return f"{number:>6}\t{line}"


def one_line(name: str) -> str:
    """Return a name or path on one line: as a JSON string if it contains line breaks."""
    return json.dumps(name, ensure_ascii=False) if "\n" in name or "\r" in name else name


def fit_lines(lines: Iterable[str], max_bytes: int) -> FittedLines:
    """Return the first of *lines* that fit into *max_bytes* of UTF-8; part of the first, if it is longer."""
    if isinstance(lines, list):
        # Usually all fit, and then there is no need to measure each.
        text = "\n".join(lines)
        if text.isascii() and len(text) < max_bytes:
            return FittedLines(text, len(lines), False)
    kept: list[str] = []
    room = max_bytes
    for line in lines:
        room -= _encoded_size(line) + 1
        if room < 0:
            break
        kept.append(line)
    else:
        return FittedLines("\n".join(kept), len(kept), False)
    if kept:
        return FittedLines("\n".join(kept), len(kept), False)
    return FittedLines(_truncate(line, max_bytes), 1, True)


def _encoded_size(line: str) -> int:
    return len(line) if line.isascii() else len(line.encode("utf-8", "surrogatepass"))


def _truncate(line: str, max_bytes: int) -> str:
    return line.encode("utf-8", "surrogatepass")[:max_bytes].decode("utf-8", "ignore")
