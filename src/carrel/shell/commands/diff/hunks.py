"""Render changes as `diff` prints them: normal, unified or context format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from carrel.shell.text.line_diff import LineChange

NO_NEWLINE = b"\n\\ No newline at end of file\n"


class ClassifiedChange(NamedTuple):
    """One change, and whether it matters."""

    change: LineChange
    ignored: bool


class FilePair(NamedTuple):
    """The lines of both files, each with its newline."""

    old: Sequence[bytes]
    new: Sequence[bytes]


HunkRenderer = Callable[[FilePair, Sequence[ClassifiedChange]], Iterator[bytes]]


def normal(files: FilePair, differences: Sequence[ClassifiedChange]) -> Iterator[bytes]:
    """Each change by itself, as `3c3` and the lines."""
    for change, ignored in differences:
        if ignored:
            continue
        sign = "c"
        if change.old == change.old_end:
            sign = "a"
        elif change.new == change.new_end:
            sign = "d"
        yield f"{_lines(change.old, change.old_end)}{sign}{_lines(change.new, change.new_end)}\n".encode()
        yield from (_marked(b"< ", line) for line in files.old[change.old : change.old_end])
        if sign == "c":
            yield b"---\n"
        yield from (_marked(b"> ", line) for line in files.new[change.new : change.new_end])


def unified(files: FilePair, differences: Sequence[ClassifiedChange], context: int) -> Iterator[bytes]:
    """Hunks of lines with `-`, `+` and a space before them."""
    for hunk in _hunks(differences, context):
        whole = _around(files, hunk, context)
        ranges = _count(whole.old, whole.old_end), _count(whole.new, whole.new_end)
        yield f"@@ -{ranges[0]} +{ranges[1]} @@\n".encode()
        at = whole.old
        for change in hunk:
            yield from (_marked(b" ", line) for line in files.old[at : change.old])
            yield from (_marked(b"-", line) for line in files.old[change.old : change.old_end])
            yield from (_marked(b"+", line) for line in files.new[change.new : change.new_end])
            at = change.old_end
        yield from (_marked(b" ", line) for line in files.old[at : whole.old_end])


def with_context(files: FilePair, differences: Sequence[ClassifiedChange], context: int) -> Iterator[bytes]:
    """Hunks with the lines of the old file first, and those of the new one then."""
    for hunk in _hunks(differences, context):
        whole = _around(files, hunk, context)
        yield b"***************\n"
        yield f"*** {_lines(whole.old, whole.old_end)} ****\n".encode()
        olds = [(change.old, change.old_end, change.new < change.new_end) for change in hunk]
        yield from _one_side(files.old, (whole.old, whole.old_end), olds, b"- ")
        yield f"--- {_lines(whole.new, whole.new_end)} ----\n".encode()
        news = [(change.new, change.new_end, change.old < change.old_end) for change in hunk]
        yield from _one_side(files.new, (whole.new, whole.new_end), news, b"+ ")


def _one_side(
    lines: Sequence[bytes], whole: tuple[int, int], changed: Sequence[tuple[int, int, bool]], mark: bytes
) -> Iterator[bytes]:
    """The lines of one file in a hunk; none if none of them is changed."""
    if all(start == end for start, end, _ in changed):
        return
    at = whole[0]
    for start, end, both in changed:
        yield from (_marked(b"  ", line) for line in lines[at:start])
        yield from (_marked(b"! " if both else mark, line) for line in lines[start:end])
        at = end
    yield from (_marked(b"  ", line) for line in lines[at : whole[1]])


def _hunks(differences: Sequence[ClassifiedChange], context: int) -> Iterator[list[LineChange]]:
    """Changes that are printed together, since so many lines around them would touch."""
    hunk: list[ClassifiedChange] = []
    for difference in differences:
        least = context if difference.ignored else 2 * context + 1
        if hunk and difference.change.old - hunk[-1].change.old_end >= least:
            yield from _mattering(hunk)
            hunk = []
        hunk.append(difference)
    yield from _mattering(hunk)


def _mattering(hunk: Sequence[ClassifiedChange]) -> Iterator[list[LineChange]]:
    if not all(difference.ignored for difference in hunk):
        yield [difference.change for difference in hunk]


def _around(files: FilePair, hunk: Sequence[LineChange], context: int) -> LineChange:
    """The lines of a hunk with those around it."""
    first, last = hunk[0], hunk[-1]
    return LineChange(
        max(0, first.old - context),
        min(len(files.old), last.old_end + context),
        max(0, first.new - context),
        min(len(files.new), last.new_end + context),
    )


def _lines(start: int, end: int) -> str:
    """Line numbers, but for the unified format; of no lines, the one before."""
    return f"{end}" if end - start <= 1 else f"{start + 1},{end}"


def _count(start: int, end: int) -> str:
    """First line and number of lines in the unified format."""
    size = end - start
    return f"{end}" if size == 1 else f"{start + 1 if size else start},{size}"


def _marked(mark: bytes, line: bytes) -> bytes:
    return mark + line if line.endswith(b"\n") else mark + line + NO_NEWLINE
