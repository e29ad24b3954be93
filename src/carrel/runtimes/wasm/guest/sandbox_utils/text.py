"""Text in files, line by line.

Files are read as UTF-8; bytes that are none appear as U+FFFD.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from io import TextIOWrapper
from itertools import islice
from os import PathLike, fspath

from .paths import Given, inside

_NO_NEWLINE = "\\ No newline at end of file\n"


def grep(pattern: str, files: Given | Iterable[Given], regex: bool = True) -> list[tuple[str, int, str]]:
    """The lines that match *pattern*, each as `(file, line number, text without the line's end)`.

    Args:
        pattern: A regular expression of `re`, found anywhere in a line.
        files: One file, or several.
        regex: `False` if *pattern* is to be found as it is written.
    """
    matches = re.compile(pattern if regex else re.escape(pattern)).search
    several = [files] if isinstance(files, str | PathLike) else list(files)
    places = [(fspath(file), inside(file)) for file in several]
    return [
        (name, number, line.rstrip("\r\n"))
        for name, place in places
        for number, line in enumerate(_lines(place), 1)
        if matches(line.rstrip("\r\n"))
    ]


def sed(pattern: str, replacement: str, text: str) -> str:
    r"""*text* with every match of the regular expression replaced; `\1` is its first group."""
    return re.sub(pattern, replacement, text)


def head(file: Given, lines: int = 10) -> str:
    """The first lines of *file*."""
    return "".join(islice(_lines(inside(file)), _count(lines)))


def tail(file: Given, lines: int = 10) -> str:
    """The last lines of *file*."""
    return "".join(deque(_lines(inside(file)), _count(lines)))


def wc(file: Given) -> dict[str, int]:
    """How many `lines`, `words` and `chars` *file* has; a last line counts also without its newline."""
    counts = {"lines": 0, "words": 0, "chars": 0}
    for line in _lines(inside(file)):
        counts["lines"] += 1
        counts["words"] += len(line.split())
        counts["chars"] += len(line)
    return counts


def diff(file1: Given, file2: Given) -> str:
    """What differs from *file1* to *file2*, as a unified diff; empty if nothing does."""
    import difflib

    old, new = list(_lines(inside(file1))), list(_lines(inside(file2)))
    made = difflib.unified_diff(old, new, fspath(file1), fspath(file2))
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in made)


def read_text(place: str) -> str:
    """The text of a file whose place is known to be inside."""
    with _open(place) as file:
        return file.read()


def _lines(place: str) -> Iterator[str]:
    with _open(place) as file:
        yield from file


def _open(place: str) -> TextIOWrapper:
    return open(place, encoding="utf-8", errors="replace", newline="\n")


def _count(lines: int) -> int:
    if lines < 0:
        raise ValueError(f"lines must not be negative: {lines}")
    return lines
