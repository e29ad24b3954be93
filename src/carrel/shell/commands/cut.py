"""Print selected parts of lines."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, NamedTuple

from carrel.shell.budget import RECORD_BYTES, Meter
from carrel.shell.command.access import PathAccess, reads
from carrel.shell.command.context import STDIN, Context
from carrel.shell.command.flags import Opt, UsageError
from carrel.shell.streams import BUFFER_BYTES
from carrel.shell.text.quoting import encode, quote_argument
from carrel.shell.text.records import line_batches

LAST = 2**63
"""End of an open range."""
_SEPARATOR = re.compile(r"[, \t]")
_RANGE = re.compile(r"([0-9]*)(-?)([0-9]*)")


class Range(NamedTuple):
    """From *low* to *high*, inclusive and counted from 1."""

    low: int
    high: int


def parse_ranges(text: str, *, fields: bool) -> list[Range]:
    """Parse a list of ranges; the result is sorted, without overlaps.

    Raises:
        UsageError: The list is not valid.
    """
    found: list[Range] = []
    at = 0
    for part in _SEPARATOR.split(text):
        found.append(_parse_range(part, text[at:], fields))
        at += len(part) + 1
    return _merge(sorted(found))


def _parse_range(part: str, rest: str, fields: bool) -> Range:
    found = _RANGE.match(part)
    low, dash, high = found.groups() if found else ("", "", "")
    end = len(low + dash + high)
    if end < len(part):
        if part[end] == "-":
            raise _list_error("invalid field range" if fields else "invalid byte or character range")
        noun = "field value" if fields else "byte/character position"
        raise _list_error(f"invalid {noun} {quote_argument(rest[end:])}")
    if part == "-":
        raise _list_error("invalid range with no endpoint: -")
    first = _parse_number(low) if low or not dash else 1
    last = _parse_number(high) if high else LAST if dash else first
    if first == 0 or not part:
        noun = "fields" if fields else "byte/character positions"
        raise _list_error(f"{noun} are numbered from 1")
    if last < first:
        raise _list_error("invalid decreasing range")
    return Range(first, last)


def _parse_number(digits: str) -> int:
    return min(int(digits[:30] or "0"), LAST)


def _list_error(problem: str) -> UsageError:
    return UsageError(problem, status=1)


def _merge(ranges: list[Range]) -> list[Range]:
    merged = ranges[:1]
    for each in ranges[1:]:
        if each.low <= merged[-1].high:
            merged[-1] = Range(merged[-1].low, max(merged[-1].high, each.high))
        else:
            merged.append(each)
    return merged


def complement(ranges: list[Range]) -> list[Range]:
    """Return the ranges that *ranges* leave out."""
    found: list[Range] = []
    begin = 1
    for each in ranges:
        if begin < each.low:
            found.append(Range(begin, each.low - 1))
        begin = each.high + 1
    if begin <= LAST:
        found.append(Range(begin, LAST))
    return found


USAGE = "OPTION... [FILE]..."
NOTES = "LIST is a comma-separated list of N, N-M, N- and -M. Characters are bytes."

Select = Callable[[list[bytes]], Iterable[bytes]]
"""Returns the selected parts of lines, with line endings."""


def _parse_byte_list(text: str) -> tuple[bool, str]:
    return False, text


def _parse_field_list(text: str) -> tuple[bool, str]:
    return True, text


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `cut`."""

    lists: Annotated[
        tuple[tuple[bool, str], ...],
        Opt("-b", "--bytes", metavar="LIST", parse=_parse_byte_list, help="print only these bytes"),
        Opt("-c", "--characters", metavar="LIST", parse=_parse_byte_list, help="print only these characters"),
        Opt("-f", "--fields", metavar="LIST", parse=_parse_field_list, help="print only these fields"),
    ] = ()
    delimiter: Annotated[
        str | None, Opt("-d", "--delimiter", metavar="DELIM", help="separate fields at DELIM, not at tabs")
    ] = None
    complement: Annotated[bool, Opt("--complement", help="print everything except the list")] = False
    only_delimited: Annotated[bool, Opt("-s", "--only-delimited", help="omit lines without delimiters")] = (
        False
    )
    output_delimiter: Annotated[
        str | None, Opt("--output-delimiter", metavar="STRING", help="print STRING between parts")
    ] = None
    zero: Annotated[bool, Opt("-z", "--zero-terminated", help="lines end with NUL, not newline")] = False
    whole: Annotated[bool, Opt("-n", help="ignored")] = False


def accesses(flags: Flags, files: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the files that are read."""
    return reads(files)


def run(ctx: Context, flags: Flags, files: Sequence[str]) -> int:
    """Print the selected parts of each line."""
    end = b"\0" if flags.zero else b"\n"
    select = _selection(flags, ctx.meter, end)
    for file in files or (STDIN,):
        with ctx.reporting(file):
            for lines in line_batches(ctx.chunks(file), end, ctx.meter):
                ctx.write_each(select(lines))
    return ctx.status


def _selection(flags: Flags, meter: Meter, end: bytes) -> Select:
    if not flags.lists:
        raise UsageError("you must specify a list of bytes, characters, or fields", status=1)
    if len(flags.lists) > 1:
        raise UsageError("only one list may be specified", status=1)
    by_field, text = flags.lists[0]
    delimiter = _delimiter(flags, by_field=by_field)
    ranges = parse_ranges(text, fields=by_field)
    if flags.complement:
        ranges = complement(ranges)
    separator = None if flags.output_delimiter is None else encode(flags.output_delimiter) or b"\0"
    if by_field:
        separator = delimiter if separator is None else separator
        return _FieldSelection(ranges, delimiter, _Joiner(separator, end, meter), flags.only_delimited)
    return _byte_selection(ranges, _Joiner(separator or b"", end, meter))


def _delimiter(flags: Flags, *, by_field: bool) -> bytes:
    if flags.delimiter is not None and len(encode(flags.delimiter)) > 1:
        raise UsageError("the delimiter must be a single character", status=1)
    if not by_field and flags.delimiter is not None:
        raise UsageError("an input delimiter may be specified only when operating on fields", status=1)
    if not by_field and flags.only_delimited:
        raise UsageError(
            "suppressing non-delimited lines makes sense\n\tonly when operating on fields", status=1
        )
    return b"\t" if flags.delimiter is None else encode(flags.delimiter) or b"\0"


class _Joiner:
    """Joins the selected parts of a line."""

    def __init__(self, separator: bytes, end: bytes, meter: Meter) -> None:
        self.end = end
        self.meter = meter
        self._separator = separator

    def line(self, parts: Sequence[bytes]) -> Iterable[bytes]:
        """Return the parts with separators and the line ending; a long line comes in pieces."""
        if len(parts) * len(self._separator) <= BUFFER_BYTES:
            return (self._separator.join(parts), self.end)
        rest = chain.from_iterable((self._separator, part) for part in parts[1:])
        return chain(parts[:1], rest, (self.end,))


def _byte_selection(ranges: list[Range], joiner: _Joiner) -> Select:
    slices = [slice(each.low - 1, each.high) for each in ranges]
    starts = [each.low - 1 for each in ranges]

    def select(lines: list[bytes]) -> Iterator[bytes]:
        if len(slices) == 1:
            (only,) = slices
            yield b"".join([line[only] + joiner.end for line in lines])
            return
        for line in lines:
            within = slices[: bisect_left(starts, len(line))]
            with joiner.meter.holding_memory(RECORD_BYTES * len(within)):
                yield from joiner.line([line[each] for each in within])

    return select


class _FieldSelection:
    """Selects fields of lines."""

    def __init__(self, ranges: list[Range], delimiter: bytes, joiner: _Joiner, only_delimited: bool) -> None:
        self._slices = [slice(each.low - 1, each.high) for each in ranges]
        self._starts = [each.low - 1 for each in ranges]
        self._delimiter = delimiter
        self._joiner = joiner
        self._only_delimited = only_delimited
        highest = ranges[-1].high if ranges else 0
        self._splits = -1 if highest >= LAST else highest

    def __call__(self, lines: list[bytes]) -> Iterator[bytes]:
        delimiter = self._delimiter
        for line in lines:
            if delimiter in line:
                with self._joiner.meter.holding_memory(2 * RECORD_BYTES * line.count(delimiter)):
                    yield from self._joiner.line(self._select(line))
            elif not self._only_delimited:
                yield from (line, self._joiner.end)

    def _select(self, line: bytes) -> list[bytes]:
        fields = line.split(self._delimiter, self._splits)
        if len(self._slices) == 1:
            return fields[self._slices[0]]
        within = self._slices[: bisect_left(self._starts, len(fields))]
        return [field for each in within for field in fields[each]]
