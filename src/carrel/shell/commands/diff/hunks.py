"""Render changes as `diff` prints them: normal, unified or context format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from carrel.shell.text.line_diff import LineChange

NO_NEWLINE = b"\n\\ No newline at end of file\n"


class ClassifiedChange(NamedTuple):
    """One change, and whether it is ignored."""

    change: LineChange
    ignored: bool


class FilePair(NamedTuple):
    """The lines of both files with their newlines."""

    old: Sequence[bytes]
    new: Sequence[bytes]


HunkRenderer = Callable[[FilePair, Sequence[ClassifiedChange]], Iterator[bytes]]


def render_normal(files: FilePair, differences: Sequence[ClassifiedChange]) -> Iterator[bytes]:
    """Render each change separately, as `3c3` and its lines."""
    for change, ignored in differences:
        if ignored:
            continue
        operation = "c"
        if change.old == change.old_end:
            operation = "a"
        elif change.new == change.new_end:
            operation = "d"
        ranges = _line_range(change.old, change.old_end), _line_range(change.new, change.new_end)
        yield f"{ranges[0]}{operation}{ranges[1]}\n".encode()
        yield from (_mark_line(b"< ", line) for line in files.old[change.old : change.old_end])
        if operation == "c":
            yield b"---\n"
        yield from (_mark_line(b"> ", line) for line in files.new[change.new : change.new_end])


def render_unified(files: FilePair, differences: Sequence[ClassifiedChange], context: int) -> Iterator[bytes]:
    """Render hunks of lines prefixed with `-`, `+` and a space."""
    for hunk in _hunks(differences, context):
        covered = _with_context(files, hunk, context)
        ranges = _unified_range(covered.old, covered.old_end), _unified_range(covered.new, covered.new_end)
        yield f"@@ -{ranges[0]} +{ranges[1]} @@\n".encode()
        position = covered.old
        for change in hunk:
            yield from (_mark_line(b" ", line) for line in files.old[position : change.old])
            yield from (_mark_line(b"-", line) for line in files.old[change.old : change.old_end])
            yield from (_mark_line(b"+", line) for line in files.new[change.new : change.new_end])
            position = change.old_end
        yield from (_mark_line(b" ", line) for line in files.old[position : covered.old_end])


def render_context(files: FilePair, differences: Sequence[ClassifiedChange], context: int) -> Iterator[bytes]:
    """Render hunks with the lines of the old file first, then those of the new one."""
    for hunk in _hunks(differences, context):
        covered = _with_context(files, hunk, context)
        yield b"***************\n"
        yield f"*** {_line_range(covered.old, covered.old_end)} ****\n".encode()
        old_ranges = [(change.old, change.old_end, change.new < change.new_end) for change in hunk]
        yield from _render_side(files.old, (covered.old, covered.old_end), old_ranges, b"- ")
        yield f"--- {_line_range(covered.new, covered.new_end)} ----\n".encode()
        new_ranges = [(change.new, change.new_end, change.old < change.old_end) for change in hunk]
        yield from _render_side(files.new, (covered.new, covered.new_end), new_ranges, b"+ ")


def _render_side(
    lines: Sequence[bytes], covered: tuple[int, int], changed: Sequence[tuple[int, int, bool]], mark: bytes
) -> Iterator[bytes]:
    """Render the lines of one file in a hunk; nothing if none of them changed."""
    if all(start == end for start, end, _ in changed):
        return
    position = covered[0]
    for start, end, is_replaced in changed:
        yield from (_mark_line(b"  ", line) for line in lines[position:start])
        yield from (_mark_line(b"! " if is_replaced else mark, line) for line in lines[start:end])
        position = end
    yield from (_mark_line(b"  ", line) for line in lines[position : covered[1]])


def _hunks(differences: Sequence[ClassifiedChange], context: int) -> Iterator[list[LineChange]]:
    """Group changes whose context lines touch or overlap."""
    hunk: list[ClassifiedChange] = []
    for difference in differences:
        min_gap = context if difference.ignored else 2 * context + 1
        if hunk and difference.change.old - hunk[-1].change.old_end >= min_gap:
            yield from _unless_ignored(hunk)
            hunk = []
        hunk.append(difference)
    yield from _unless_ignored(hunk)


def _unless_ignored(hunk: Sequence[ClassifiedChange]) -> Iterator[list[LineChange]]:
    if not all(difference.ignored for difference in hunk):
        yield [difference.change for difference in hunk]


def _with_context(files: FilePair, hunk: Sequence[LineChange], context: int) -> LineChange:
    """Return the lines of a hunk with its context."""
    first, last = hunk[0], hunk[-1]
    return LineChange(
        max(0, first.old - context),
        min(len(files.old), last.old_end + context),
        max(0, first.new - context),
        min(len(files.new), last.new_end + context),
    )


def _line_range(start: int, end: int) -> str:
    """Render a range of line numbers, except for the unified format; an empty range as the line before it."""
    return f"{end}" if end - start <= 1 else f"{start + 1},{end}"


def _unified_range(start: int, end: int) -> str:
    """Render a range as the unified format does: first line and number of lines."""
    size = end - start
    return f"{end}" if size == 1 else f"{start + 1 if size else start},{size}"


def _mark_line(mark: bytes, line: bytes) -> bytes:
    return mark + line if line.endswith(b"\n") else mark + line + NO_NEWLINE
