"""Count lines, words and bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.errors import CarrelError, IsDirectoryError
from carrel.shell.context import STDIN, Context
from carrel.shell.counts import Counter, Counts
from carrel.shell.flags import Opt
from carrel.shell.quoting import encode, shown
from carrel.shell.touch import Touch, reads

USAGE = "[OPTION]... [FILE]..."
_WIDE = 7
"""Digits of a number where the size of the input is not known before."""
_NOTHING = Counts()
"""Those of a directory."""


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `wc`."""

    lines: Annotated[bool, Opt("-l", "--lines", help="print the number of newlines")] = False
    words: Annotated[bool, Opt("-w", "--words", help="print the number of words")] = False
    chars: Annotated[bool, Opt("-m", "--chars", help="print the number of characters of UTF-8")] = False
    bytes: Annotated[bool, Opt("-c", "--bytes", help="print the number of bytes")] = False
    longest: Annotated[bool, Opt("-L", "--max-line-length", help="print the width of the widest line")] = (
        False
    )


def touches(flags: Flags, files: Sequence[str]) -> Iterable[Touch]:
    """It reads the files."""
    return reads(files)


def run(ctx: Context, flags: Flags, files: Sequence[str]) -> int:
    """Print the counts of each file, and their sum."""
    wanted = _wanted(flags)
    # The size of a single file is known when it is counted.
    width = 0 if len(files) == 1 and files[0] != STDIN else _width(ctx, files, len(wanted))
    total = Counts()
    for file in files or (STDIN,):
        counts = _count(ctx, file, wanted)
        if counts is not None:
            _print(ctx, counts, wanted, width or _width_of(counts, len(wanted)), file if files else None)
            total = total.plus(counts)
    if len(files) > 1:
        _print(ctx, total, wanted, width, "total")
    return ctx.status


def _wanted(flags: Flags) -> list[str]:
    """The counts to be printed, in the order in which they are."""
    names = [name for name in ("lines", "words", "chars", "bytes", "longest") if getattr(flags, name)]
    return names or ["lines", "words", "bytes"]


def _width(ctx: Context, files: Sequence[str], columns: int) -> int:
    """How wide the columns are: as wide as the sum of all sizes, if these are known."""
    if columns == 1 and len(files) <= 1:
        return 1
    total, least = 0, 1
    for file in files or (STDIN,):
        size = _size(ctx, file)
        if size is None:
            least = _WIDE
        else:
            total += size
    return max(least, len(str(total)))


def _width_of(counts: Counts, columns: int) -> int:
    """How wide the columns of a single file are; of what is no file as if its size were not known."""
    if columns == 1:
        return 1
    return _WIDE if counts is _NOTHING else len(str(counts.bytes))


def _size(ctx: Context, file: str) -> int | None:
    """The size of a regular file; what is missing counts as nothing."""
    if file == STDIN:
        return ctx.stdin.size_bytes
    try:
        info = ctx.stat(file)
    except CarrelError:
        return 0
    return info.size_bytes if info.is_file else None


def _count(ctx: Context, file: str, wanted: Sequence[str]) -> Counts | None:
    """The counts of a file, those of nothing for a directory, and none for what is missing."""
    counts: Counts | None = None
    with ctx.reporting(file):
        try:
            counts = _counts(ctx, file, wanted)
        except IsDirectoryError:
            ctx.complain(f"{shown(file)}: Is a directory")
            counts = _NOTHING
    return counts


def _counts(ctx: Context, file: str, wanted: Sequence[str]) -> Counts:
    if wanted == ["bytes"] and file != STDIN:
        info = ctx.stat(file)
        if info.is_file:
            return Counts(bytes=info.size_bytes)
    counter = Counter(wanted)
    for chunk in ctx.chunks(file):
        counter.add(chunk)
    return counter.finish()


def _print(ctx: Context, counts: Counts, wanted: Sequence[str], width: int, name: str | None) -> None:
    numbers = " ".join(f"{getattr(counts, each):{width}}" for each in wanted)
    # A name with a newline would look like two lines.
    shown_name = "" if name is None else " " + (shown(name) if "\n" in name else name)
    ctx.out(encode(numbers + shown_name) + b"\n")
