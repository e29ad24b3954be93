"""Lists of ranges such as `1,3-5,7-`, by which `cut` selects fields and bytes."""

from __future__ import annotations

import re
from typing import NamedTuple

from carrel.shell.flags import UsageError
from carrel.shell.quoting import cited

LAST = 2**63
"""The end of a range that has none."""
_SEPARATOR = re.compile(r"[, \t]")
_RANGE = re.compile(r"([0-9]*)(-?)([0-9]*)")


class Range(NamedTuple):
    """From *low* to *high*, both counted from 1 and both meant."""

    low: int
    high: int


def parse_ranges(text: str, *, fields: bool) -> list[Range]:
    """Read a list, in ascending order and without overlaps.

    Raises:
        UsageError: It is no such list.
    """
    found: list[Range] = []
    at = 0
    for part in _SEPARATOR.split(text):
        found.append(_parse(part, text[at:], fields))
        at += len(part) + 1
    return _merged(sorted(found))


def _parse(part: str, rest: str, fields: bool) -> Range:
    found = _RANGE.match(part)
    low, dash, high = found.groups() if found else ("", "", "")
    end = len(low + dash + high)
    if end < len(part):
        if part[end] == "-":
            raise _wrong("invalid field range" if fields else "invalid byte or character range")
        what = "field value" if fields else "byte/character position"
        raise _wrong(f"invalid {what} {cited(rest[end:])}")
    if part == "-":
        raise _wrong("invalid range with no endpoint: -")
    first = _number(low) if low or not dash else 1
    last = _number(high) if high else LAST if dash else first
    if first == 0 or not part:
        what = "fields" if fields else "byte/character positions"
        raise _wrong(f"{what} are numbered from 1")
    if last < first:
        raise _wrong("invalid decreasing range")
    return Range(first, last)


def _number(digits: str) -> int:
    return min(int(digits[:30] or "0"), LAST)


def _wrong(problem: str) -> UsageError:
    return UsageError(problem, status=1)


def _merged(ranges: list[Range]) -> list[Range]:
    merged = ranges[:1]
    for each in ranges[1:]:
        if each.low <= merged[-1].high:
            merged[-1] = Range(merged[-1].low, max(merged[-1].high, each.high))
        else:
            merged.append(each)
    return merged


def complement(ranges: list[Range]) -> list[Range]:
    """All that *ranges* leave out."""
    found: list[Range] = []
    begin = 1
    for each in ranges:
        if begin < each.low:
            found.append(Range(begin, each.low - 1))
        begin = each.high + 1
    if begin <= LAST:
        found.append(Range(begin, LAST))
    return found
