"""Lines of text: split, number, and keep as many as an answer may hold."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple


class FittedLines(NamedTuple):
    """Lines that fit into an answer."""

    text: str
    kept: int
    """How many they are."""
    is_cut: bool
    """Whether the only one of them is not whole."""


def split_lines(content: bytes) -> list[bytes]:
    """The lines with their ends; only a newline ends one."""
    *whole, rest = content.split(b"\n")
    lines = [line + b"\n" for line in whole]
    return [*lines, rest] if rest else lines


def numbered_line(number: int, line: str) -> str:
    """The line after its number, as `cat -n` has it."""
    return f"{number:>6}\t{line}"


def one_line(name: str) -> str:
    """A name or path that takes one line; as a text of JSON, if it would pass for several."""
    return json.dumps(name, ensure_ascii=False) if "\n" in name or "\r" in name else name


def fit_lines(lines: Iterable[str], most: int) -> FittedLines:
    """The first of *lines* that take at most *most* bytes of UTF-8; part of the first, if it is longer."""
    if isinstance(lines, list):
        # As a rule all fit, and then it is quicker not to look at each.
        text = "\n".join(lines)
        if text.isascii() and len(text) < most:
            return FittedLines(text, len(lines), False)
    kept: list[str] = []
    room = most
    for line in lines:
        room -= _size(line) + 1
        if room < 0:
            break
        kept.append(line)
    else:
        return FittedLines("\n".join(kept), len(kept), False)
    if kept:
        return FittedLines("\n".join(kept), len(kept), False)
    return FittedLines(_beginning(line, most), 1, True)


def _size(line: str) -> int:
    return len(line) if line.isascii() else len(line.encode("utf-8", "surrogatepass"))


def _beginning(line: str, most: int) -> str:
    return line.encode("utf-8", "surrogatepass")[:most].decode("utf-8", "ignore")
