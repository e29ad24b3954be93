"""Which lines of a file are worth matching with those of another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

_KEEP, _DISCARD, _DOUBTFUL = 0, 1, 2


def matchable(lines: Sequence[int], others: Sequence[int]) -> list[int]:
    """The indexes of the lines worth matching.

    A line that the other file lacks is none. One that is very common there is doubtful: among lines that
    match nothing it would only match by chance.
    """
    counts = Counter(others)
    many = 5
    size = len(lines) // 64
    while size := size >> 2:
        many *= 2
    marks = bytearray(
        _DISCARD if not (count := counts[line]) else _DOUBTFUL if count > many else _KEEP for line in lines
    )
    _decide(marks)
    return [index for index, mark in enumerate(marks) if not mark]


def _decide(marks: bytearray) -> None:
    """Keep the doubtful lines that do not stand within a run of lines to be discarded."""
    at = 0
    while at < len(marks):
        if marks[at] != _DISCARD:
            marks[at] = _KEEP
            at += 1
            continue
        end = at
        while end < len(marks) and marks[end]:
            end += 1
        following = end
        while marks[end - 1] == _DOUBTFUL:
            end -= 1
            marks[end] = _KEEP
        _decide_run(marks, at, end)
        at = following


def _decide_run(marks: bytearray, start: int, end: int) -> None:
    """Decide about the doubtful lines of a run, whose first and last line are to be discarded."""
    length = end - start
    if marks.count(_DOUBTFUL, start, end) * 4 > length:
        marks[start:end] = marks[start:end].replace(b"\2", b"\0")
        return
    least = 1
    size = length >> 2
    while size := size >> 2:
        least *= 2
    crowd = b"\2" * (least + 1)
    at = marks.find(crowd, start, end)
    while at >= 0:
        while at < end and marks[at] == _DOUBTFUL:
            marks[at] = _KEEP
            at += 1
        at = marks.find(crowd, at, end)
    _keep_near_edge(marks, range(start, end))
    _keep_near_edge(marks, range(end - 1, start - 1, -1))


def _keep_near_edge(marks: bytearray, indexes: range) -> None:
    """Keep doubtful lines up to three lines in a row to be discarded, or to one that is far enough in."""
    in_a_row = 0
    for distance, index in enumerate(indexes):
        if distance >= 8 and marks[index] == _DISCARD:
            return
        if marks[index] == _DISCARD:
            in_a_row += 1
        else:
            in_a_row = 0
            marks[index] = _KEEP
        if in_a_row == 3:
            return
