"""Find the lines that differ between two files: Myers' algorithm in linear space, with GNU diff's heuristics.

Lines without a match are discarded first, the search accepts more than the fewest changes where finding those
would take too long, and changes are shifted at the end to where people expect them. The hunks are therefore
those of GNU diff.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple

_KEEP, _DISCARD, _DOUBTFUL = 0, 1, 2


def matchable(lines: Sequence[int], others: Sequence[int]) -> list[int]:
    """Return the indexes of the lines worth matching.

    A line that the other file lacks is discarded. One that is very common there is doubtful: among discarded
    lines it would only match by chance.
    """
    counts = Counter(others)
    common_count = 5
    size = len(lines) // 64
    while size := size >> 2:
        common_count *= 2
    marks = bytearray(
        _DISCARD if not (count := counts[line]) else _DOUBTFUL if count > common_count else _KEEP
        for line in lines
    )
    _resolve_doubtful(marks)
    return [index for index, mark in enumerate(marks) if not mark]


def _resolve_doubtful(marks: bytearray) -> None:
    """Keep the doubtful lines outside runs of discarded lines."""
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
        _resolve_run(marks, at, end)
        at = following


def _resolve_run(marks: bytearray, start: int, end: int) -> None:
    """Decide about the doubtful lines of a run that begins and ends with discarded lines."""
    length = end - start
    if marks.count(_DOUBTFUL, start, end) * 4 > length:
        marks[start:end] = marks[start:end].replace(b"\2", b"\0")
        return
    least = 1
    size = length >> 2
    while size := size >> 2:
        least *= 2
    cluster = b"\2" * (least + 1)
    at = marks.find(cluster, start, end)
    while at >= 0:
        while at < end and marks[at] == _DOUBTFUL:
            marks[at] = _KEEP
            at += 1
        at = marks.find(cluster, at, end)
    _keep_near_edge(marks, range(start, end))
    _keep_near_edge(marks, range(end - 1, start - 1, -1))


def _keep_near_edge(marks: bytearray, indexes: range) -> None:
    """Keep doubtful lines up to three discarded lines in a row, or to one at least eight lines in."""
    consecutive = 0
    for distance, index in enumerate(indexes):
        if distance >= 8 and marks[index] == _DISCARD:
            return
        if marks[index] == _DISCARD:
            consecutive += 1
        else:
            consecutive = 0
            marks[index] = _KEEP
        if consecutive == 3:
            return


MAX_COST = 1024
"""Steps from both ends after which a section is divided where the search got furthest."""


class LineChange(NamedTuple):
    """Lines of the old file replaced by lines of the new one; half-open ranges, counted from 0."""

    old: int
    old_end: int
    new: int
    new_end: int


def line_changes(
    old: Sequence[Hashable], new: Sequence[Hashable], check: Callable[[], None], *, minimal: bool = False
) -> list[LineChange]:
    """Return the changes that turn *old* into *new*, comparing lines by `==`; *check* may stop the search."""
    start = _common_start(old, new)
    end = _common_end(old, new, start)
    numbers: dict[Hashable, int] = {}
    left = [numbers.setdefault(line, len(numbers)) for line in old[start : len(old) - end]]
    right = [numbers.setdefault(line, len(numbers)) for line in new[start : len(new) - end]]
    kept_left, kept_right = matchable(left, right), matchable(right, left)
    left_changed, right_changed = _marks(len(left), kept_left), _marks(len(right), kept_right)
    search = _Search([left[i] for i in kept_left], [right[i] for i in kept_right], check, minimal)
    for index in search.deleted:
        left_changed[kept_left[index]] = 1
    for index in search.inserted:
        right_changed[kept_right[index]] = 1
    _shift_changes(left, left_changed, right_changed)
    _shift_changes(right, right_changed, left_changed)
    return _changes_from_marks(left_changed, right_changed, start)


def _marks(size: int, kept: Sequence[int]) -> bytearray:
    """Return a mark for each line not in *kept*, and an unmarked end that terminates every run."""
    marks = bytearray(b"\1" * size + b"\0")
    for index in kept:
        marks[index] = 0
    return marks


def _common_start(old: Sequence[Hashable], new: Sequence[Hashable]) -> int:
    count = 0
    for one, other in zip(old, new, strict=False):
        if one != other:
            break
        count += 1
    return count


def _common_end(old: Sequence[Hashable], new: Sequence[Hashable], start: int) -> int:
    max_count = min(len(old), len(new)) - start
    count = 0
    while count < max_count and old[-1 - count] == new[-1 - count]:
        count += 1
    return count


def _changes_from_marks(old: bytearray, new: bytearray, offset: int) -> list[LineChange]:
    """Return the changes, given the marks of both files."""
    changes: list[LineChange] = []
    at, other = 0, 0
    while at < len(old) and other < len(new):
        first, other_first = at, other
        at, other = _run_end(old, at), _run_end(new, other)
        if at > first or other > other_first:
            changes.append(LineChange(first + offset, at + offset, other_first + offset, other + offset))
        at += 1
        other += 1
    return changes


# The search


class _Section(NamedTuple):
    """A section of both files that is still to be compared."""

    left: int
    left_end: int
    right: int
    right_end: int
    minimal: bool


class _Search:
    """Finds the lines that are in only one of two sequences."""

    def __init__(
        self, left: Sequence[int], right: Sequence[int], check: Callable[[], None], minimal: bool
    ) -> None:
        self._left = left
        self._right = right
        self._check = check
        self.deleted: list[int] = []
        self.inserted: list[int] = []
        size = len(left) + len(right) + 3
        self._forward = [0] * size
        self._backward = [0] * size
        """Furthest point reached on each diagonal; negative diagonals index from the end."""
        sections = [_Section(0, len(left), 0, len(right), minimal)]
        while sections:
            sections += self._divide(self._trim(sections.pop()))

    def _trim(self, section: _Section) -> _Section:
        """Return the section without the equal lines at both ends."""
        x, x_end, y, y_end, minimal = section
        left, right = self._left, self._right
        while x < x_end and y < y_end and left[x] == right[y]:
            x += 1
            y += 1
        while x < x_end and y < y_end and left[x_end - 1] == right[y_end - 1]:
            x_end -= 1
            y_end -= 1
        return _Section(x, x_end, y, y_end, minimal)

    def _divide(self, section: _Section) -> list[_Section]:
        """Return the two sections that remain to be compared; none if one side is empty."""
        x, x_end, y, y_end, _ = section
        if x == x_end:
            self.inserted += range(y, y_end)
            return []
        if y == y_end:
            self.deleted += range(x, x_end)
            return []
        x_middle, y_middle, low, high = self._find_midpoint(section)
        return [_Section(x, x_middle, y, y_middle, low), _Section(x_middle, x_end, y_middle, y_end, high)]

    def _find_midpoint(self, section: _Section) -> tuple[int, int, bool, bool]:  # noqa: PLR0912, the inner loop, which calls would slow down
        """Return a point on a shortest path, and whether to search before and after it exhaustively."""
        x_start, x_end, y_start, y_end, minimal = section
        left, right, forward, backward = self._left, self._right, self._forward, self._backward
        lowest, highest = x_start - y_end, x_end - y_start
        f_min = f_max = x_start - y_start
        b_min = b_max = x_end - y_end
        is_odd = (f_min - b_min) & 1
        forward[f_min], backward[b_min] = x_start, x_end
        far = x_end + 1
        cost = 0
        while True:
            cost += 1
            self._check()
            if f_min > lowest:
                f_min -= 1
                forward[f_min - 1] = -1
            else:
                f_min += 1
            if f_max < highest:
                f_max += 1
                forward[f_max + 1] = -1
            else:
                f_max -= 1
            for diagonal in range(f_max, f_min - 1, -2):
                below, above = forward[diagonal - 1], forward[diagonal + 1]
                x = above if below < above else below + 1
                y = x - diagonal
                while x < x_end and y < y_end and left[x] == right[y]:
                    x += 1
                    y += 1
                forward[diagonal] = x
                if is_odd and b_min <= diagonal <= b_max and backward[diagonal] <= x:
                    return x, y, True, True
            if b_min > lowest:
                b_min -= 1
                backward[b_min - 1] = far
            else:
                b_min += 1
            if b_max < highest:
                b_max += 1
                backward[b_max + 1] = far
            else:
                b_max -= 1
            for diagonal in range(b_max, b_min - 1, -2):
                below, above = backward[diagonal - 1], backward[diagonal + 1]
                x = below if below < above else above - 1
                y = x - diagonal
                while x > x_start and y > y_start and left[x - 1] == right[y - 1]:
                    x -= 1
                    y -= 1
                backward[diagonal] = x
                if not is_odd and f_min <= diagonal <= f_max and x <= forward[diagonal]:
                    return x, y, True, True
            if cost >= MAX_COST and not minimal:
                return self._furthest_point(section, range(f_max, f_min - 1, -2), range(b_max, b_min - 1, -2))

    def _furthest_point(self, section: _Section, ahead: range, back: range) -> tuple[int, int, bool, bool]:
        """Return the point where the search got furthest, from the start or from the end."""
        x_start, x_end, y_start, y_end, _ = section
        best, best_x = -1, 0
        for diagonal in ahead:
            x = min(self._forward[diagonal], x_end)
            if x - diagonal > y_end:
                x = y_end + diagonal
            if 2 * x - diagonal > best:
                best, best_x = 2 * x - diagonal, x
        least, least_x = x_end + y_end + 1, x_end
        for diagonal in back:
            x = max(self._backward[diagonal], x_start)
            if x - diagonal < y_start:
                x = y_start + diagonal
            if 2 * x - diagonal < least:
                least, least_x = 2 * x - diagonal, x
        if x_end + y_end - least < best - (x_start + y_start):
            return best_x, best - best_x, True, False
        return least_x, least - least_x, False, True


# Placement of changes


def _shift_changes(lines: Sequence[int], changed: bytearray, others: bytearray) -> None:
    """Shift each run of changed lines down as far as possible, or next to a change in the other file.

    Runs that meet on the way are merged.
    """
    at = other = 0
    size = len(lines)
    while True:
        while at < size and not changed[at]:
            other = _run_end(others, other) + 1
            at += 1
        if at >= size:
            return
        start = at
        at, other = _run_end(changed, at), _run_end(others, other)
        while True:
            length = at - start
            # Up, while the line before the run equals its last line.
            while start and lines[start - 1] == lines[at - 1]:
                start -= 1
                at -= 1
                changed[start], changed[at] = 1, 0
                while changed[start - 1]:
                    start -= 1
                other = _line_before(others, other)
            beside = at if others[other - 1] else size
            # Down, while the line after the run equals its first line.
            while at < size and lines[start] == lines[at]:
                changed[start], changed[at] = 0, 1
                start += 1
                at = _run_end(changed, at + 1)
                other += 1
                if others[other]:
                    beside = at
                    other = _run_end(others, other)
            if length == at - start:
                break
        while beside < at:
            start -= 1
            at -= 1
            changed[start], changed[at] = 1, 0
            other = _line_before(others, other)


def _run_end(changed: bytearray, at: int) -> int:
    """Return the end of the run of changed lines at *at*, which may be empty."""
    return changed.find(0, at)


def _line_before(changed: bytearray, at: int) -> int:
    """Return the last unchanged line before *at*."""
    return changed.rfind(0, 0, at)
