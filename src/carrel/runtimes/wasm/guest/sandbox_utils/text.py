"""Text in files, line by line.

Files are read as UTF-8; invalid bytes appear as U+FFFD.
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
    """Return the lines that match *pattern*, as `(file, line number, text without the line end)`.

    Args:
        pattern: A regular expression of `re`, searched anywhere in a line.
        files: One file, or several.
        regex: `False` to search for *pattern* literally.
    """
    matches = re.compile(pattern if regex else re.escape(pattern)).search
    several = [files] if isinstance(files, str | PathLike) else list(files)
    paths = [(fspath(file), inside(file)) for file in several]
    return [
        (name, number, line.rstrip("\r\n"))
        for name, path in paths
        for number, line in enumerate(_lines(path), 1)
        if matches(line.rstrip("\r\n"))
    ]


def sed(pattern: str, replacement: str, text: str) -> str:
    r"""Replace every match of the regular expression in *text*; `\1` is its first group."""
    return re.sub(pattern, replacement, text)


def head(file: Given, lines: int = 10) -> str:
    """Return the first lines of *file*."""
    return "".join(islice(_lines(inside(file)), _count(lines)))


def tail(file: Given, lines: int = 10) -> str:
    """Return the last lines of *file*."""
    return "".join(deque(_lines(inside(file)), _count(lines)))


def wc(file: Given) -> dict[str, int]:
    """Count the `lines`, `words` and `chars` of *file*; a last line without a newline counts too."""
    counts = {"lines": 0, "words": 0, "chars": 0}
    for line in _lines(inside(file)):
        counts["lines"] += 1
        counts["words"] += len(line.split())
        counts["chars"] += len(line)
    return counts


def diff(file1: Given, file2: Given) -> str:
    """Return a unified diff of *file1* and *file2*; empty if they are equal."""
    import difflib

    old, new = list(_lines(inside(file1))), list(_lines(inside(file2)))
    lines = difflib.unified_diff(old, new, fspath(file1), fspath(file2))
    return "".join(line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines)


def read_text(path: str) -> str:
    """Return the text of a file; the path must have been checked."""
    with _open(path) as file:
        return file.read()


def _lines(path: str) -> Iterator[str]:
    with _open(path) as file:
        yield from file


def _open(path: str) -> TextIOWrapper:
    return open(path, encoding="utf-8", errors="replace", newline="\n")


def _count(lines: int) -> int:
    if lines < 0:
        raise ValueError(f"lines must not be negative: {lines}")
    return lines
