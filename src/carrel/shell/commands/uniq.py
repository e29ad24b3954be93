"""Filter repeated lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, pairwise
from typing import Annotated

from carrel.errors import IsDirectoryError
from carrel.shell.command.access import PathAccess, reads, writes
from carrel.shell.command.context import STDIN, Context
from carrel.shell.command.flags import NUMBER, Opt, UsageError, one_of
from carrel.shell.runtime.redirect import replacing
from carrel.shell.streams import BUFFER_BYTES
from carrel.shell.text.quoting import quote, quote_argument
from carrel.shell.text.records import line_batches

USAGE = "[OPTION]... [INPUT [OUTPUT]]"
_FIELD = re.compile(rb"[ \t]*[^ \t]*")
_REPEATED = {"none": "none", "prepend": "prepend", "separate": "separate"}
_GROUPS = {"prepend": "prepend", "append": "append", "separate": "separate", "both": "both"}

_FIELDS_AT_ONCE = 4096
"""Fields to skip between two checks of the time limit."""

LineKey = Callable[[bytes], bytes]


def _count_parser(noun: str) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.isdecimal()):
            raise ValueError(f"{text}: invalid number of {noun}")
        return int(text[:18])

    return parse


def _parse_repeat_method(word: str) -> object:
    return one_of("--all-repeated", _REPEATED)(word) if word else "none"


def _parse_group_method(word: str) -> object:
    return one_of("--group", _GROUPS)(word) if word else "separate"


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `uniq`."""

    count: Annotated[bool, Opt("-c", "--count", help="prefix lines with the number of occurrences")] = False
    repeated: Annotated[bool, Opt("-d", "--repeated", help="print only repeated lines, once each")] = False
    unique: Annotated[bool, Opt("-u", "--unique", help="print only lines that are not repeated")] = False
    all_repeated: Annotated[
        str,
        Opt("-D", const="none", help="print all repeated lines"),
        Opt(
            "--all-repeated",
            metavar="[METHOD]",
            parse=_parse_repeat_method,
            help="the same; prepend or separate groups with empty lines",
        ),
    ] = ""
    group: Annotated[
        str,
        Opt(
            "--group",
            metavar="[METHOD]",
            parse=_parse_group_method,
            help="print all lines, with empty lines between groups: separate, prepend, append or both",
        ),
    ] = ""
    ignore_case: Annotated[bool, Opt("-i", "--ignore-case", help="ignore case")] = False
    skip_fields: Annotated[
        int,
        Opt(
            "-f",
            NUMBER,
            "--skip-fields",
            metavar="N",
            parse=_count_parser("fields to skip"),
            help="do not compare the first N fields",
        ),
    ] = 0
    skip_chars: Annotated[
        int,
        Opt(
            "-s",
            "--skip-chars",
            metavar="N",
            parse=_count_parser("bytes to skip"),
            help="do not compare the first N characters, after the fields",
        ),
    ] = 0
    check_chars: Annotated[
        int | None,
        Opt(
            "-w",
            "--check-chars",
            metavar="N",
            parse=_count_parser("bytes to compare"),
            help="compare no more than N characters",
        ),
    ] = None
    zero: Annotated[bool, Opt("-z", "--zero-terminated", help="lines end with NUL, not newline")] = False


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the first operand, which is read, and the second, which is written."""
    return chain(reads(operands[:1]), writes(each for each in operands[1:2] if each != STDIN))


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Print each line that differs from the preceding one."""
    _require_valid_usage(flags, operands)
    source = operands[0] if operands else STDIN
    target = operands[1] if len(operands) == 2 else STDIN
    with ctx.reporting(source):
        try:
            chunks = ctx.chunks(source)
        except IsDirectoryError:
            ctx.error(f"error reading {quote(source)}")
            return ctx.status
        if target == STDIN:
            _copy(ctx, flags, chunks, ctx.write)
        else:
            with ctx.reporting(target), replacing(ctx.workspace, ctx.path(target), ctx.meter) as output:
                _copy(ctx, flags, chunks, output.write)
    return ctx.status


def _require_valid_usage(flags: Flags, operands: Sequence[str]) -> None:
    if len(operands) > 2:
        raise UsageError(f"extra operand {quote_argument(operands[2])}", status=1)
    if flags.group and (flags.count or flags.repeated or flags.all_repeated or flags.unique):
        raise UsageError("--group is mutually exclusive with -c/-d/-D/-u", status=1)
    if flags.count and flags.all_repeated:
        raise UsageError("printing all duplicated lines and repeat counts is meaningless", status=1)


def _copy(ctx: Context, flags: Flags, chunks: Iterator[bytes], write: Callable[[bytes], None]) -> None:
    end = b"\0" if flags.zero else b"\n"
    lines = chain.from_iterable(line_batches(chunks, end, ctx.meter))
    groups = (group for _, group in groupby(lines, _key(flags, ctx.meter.check)))
    if flags.all_repeated or flags.group:
        selected = _all_lines(flags, groups)
    elif flags.count:
        selected = _counted_lines(flags, groups)
    else:
        selected = _first_lines(flags, groups)
    for line in selected:
        if len(line) <= BUFFER_BYTES:
            write(line + end)
        else:
            write(line)
            write(end)


def _key(flags: Flags, check: Callable[[], None]) -> LineKey | None:
    """Return the comparison key of lines, `None` for the whole line; *check* is called in long lines."""
    if not (flags.skip_fields or flags.skip_chars or flags.ignore_case or flags.check_chars is not None):
        return None

    def key(line: bytes) -> bytes:
        at, left = 0, flags.skip_fields
        while left and at < len(line):
            found = _FIELD.match(line, at)
            at = found.end() if found else len(line)
            left -= 1
            if not left % _FIELDS_AT_ONCE:
                check()
        at += flags.skip_chars
        part = line[at:] if flags.check_chars is None else line[at : at + flags.check_chars]
        return part.lower() if flags.ignore_case else part

    return key


def _first_lines(flags: Flags, groups: Iterable[Iterator[bytes]]) -> Iterator[bytes]:
    """Yield the first line of each selected group."""
    for group in groups:
        first = next(group)
        if not (flags.repeated or flags.unique):
            yield first
            continue
        is_repeated = next(group, None) is not None
        if not (flags.unique if is_repeated else flags.repeated):
            yield first


def _counted_lines(flags: Flags, groups: Iterable[Iterator[bytes]]) -> Iterator[bytes]:
    for group in groups:
        first = next(group)
        count = 1 + sum(1 for _ in group)
        if not (flags.unique if count > 1 else flags.repeated):
            yield b"%7d %b" % (count, first)


def _all_lines(flags: Flags, groups: Iterable[Iterator[bytes]]) -> Iterator[bytes]:
    """Yield all lines of the selected groups, with empty lines between groups."""
    method = flags.group or flags.all_repeated
    is_first = True
    for group in groups:
        first, second = next(group), next(group, None)
        if second is None and not flags.group:
            continue
        if method == "prepend" or (method == "both" and is_first) or (method == "separate" and not is_first):
            yield b""
        is_first = False
        lines = chain([first] if second is None else [first, second], group)
        yield from _without_last(lines) if flags.unique else lines
        if method in ("append", "both"):
            yield b""


def _without_last(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Drop the last line of a group, as `-D` with `-u` does."""
    return (line for line, _ in pairwise(lines))
