"""Print the last part of files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from carrel.errors import IsDirectoryError
from carrel.shell.command.access import PathAccess, reads
from carrel.shell.command.context import NULL, STDIN, Context
from carrel.shell.command.flags import NUMBER, Opt, UsageError
from carrel.shell.command.head_tail import (
    BLOCK_BYTES,
    TEN_LINES,
    Headings,
    LastBuffer,
    LineOrByteCount,
    blocks_backward,
    drop_first,
    parse_byte_count,
    parse_line_count,
    read_window,
)
from carrel.shell.text.quoting import quote

USAGE = "[OPTION]... [FILE]..."
_OLD_STYLE = re.compile(r"\+[0-9]+")
"""The number in `tail +5 FILE`."""


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `tail`."""

    amount: Annotated[
        LineOrByteCount,
        Opt(
            "-n",
            NUMBER,
            "--lines",
            metavar="NUM",
            help="print the last NUM lines; with +NUM, all from line NUM on",
            parse=parse_line_count,
        ),
        Opt(
            "-c",
            "--bytes",
            metavar="NUM",
            help="print the last NUM bytes; with +NUM, all from byte NUM on",
            parse=parse_byte_count,
        ),
    ] = TEN_LINES
    headings: Annotated[
        bool | None,
        Opt("-q", "--quiet", "--silent", const=False, help="never print file names"),
        Opt("-v", "--verbose", const=True, help="always print file names"),
    ] = None
    zero: Annotated[bool, Opt("-z", "--zero-terminated", help="lines end with NUL, not newline")] = False
    follow: Annotated[bool, Opt("-f", "-F", "--follow", help="not supported: commands must end")] = False


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the files that are read."""
    return reads(_parse_old_style(flags, operands)[1])


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Print the last part of each file."""
    if flags.follow:
        raise UsageError("following a file (-f) is not supported here", status=1, hint=False)
    flags, files = _parse_old_style(flags, operands)
    if flags.amount.count == 0 and flags.amount.sign != "+":
        return 0
    headings = Headings(ctx, enabled=len(files) > 1 if flags.headings is None else flags.headings)
    for file in files or (STDIN,):
        with ctx.reporting(file, f"cannot open {quote(file)} for reading"):
            _print(ctx, flags, file, headings)
    return ctx.status


def _parse_old_style(flags: Flags, operands: Sequence[str]) -> tuple[Flags, Sequence[str]]:
    """Accept a first operand like `+5` as the number of lines, as GNU tail does."""
    if flags != Flags() or not 1 <= len(operands) <= 2 or not _OLD_STYLE.fullmatch(operands[0]):
        return flags, operands
    return replace(flags, amount=parse_line_count(operands[0])), operands[1:]


def _print(ctx: Context, flags: Flags, file: str, headings: Headings) -> None:
    try:
        chunks = _read_last(ctx, flags, file)
        first = next(chunks, b"")
    except IsDirectoryError:
        headings.print(file)
        ctx.error(f"error reading {quote(file)}: Is a directory")
        return
    headings.print(file)
    ctx.write(first)
    for chunk in chunks:
        ctx.write(chunk)


def _read_last(ctx: Context, flags: Flags, file: str) -> Iterator[bytes]:
    amount, end = flags.amount, b"\0" if flags.zero else b"\n"
    if amount.sign == "+":
        before = replace(amount, count=max(0, amount.count - 1))
        return drop_first(ctx.chunks(file), before, end)
    if file in (STDIN, NULL):
        return _read_last_of_stream(ctx, file, amount, end)
    return _read_from(ctx, file, _find_offset(ctx, file, amount, end))


def _read_last_of_stream(ctx: Context, file: str, amount: LineOrByteCount, end: bytes) -> Iterator[bytes]:
    last = LastBuffer(ctx.meter, amount, end)
    for chunk in ctx.chunks(file):
        for _ in last.push(chunk):
            pass
    for _ in last.finish():
        pass
    yield from last.rest()
    last.release()


def _find_offset(ctx: Context, file: str, amount: LineOrByteCount, end: bytes) -> int:
    """Return the offset at which the last part of a file begins."""
    size = ctx.stat(file).size_bytes
    if amount.of_bytes:
        return max(0, size - amount.count)
    remaining, at = amount.count, size
    for block in blocks_backward(ctx, file):
        if at == size and not block.endswith(end):
            remaining -= 1
        at -= len(block)
        found = block.count(end)
        if found > remaining:
            return at + _find_last_lines(block, remaining, end)
        remaining -= found
    return at


def _find_last_lines(block: bytes, number: int, end: bytes) -> int:
    """Return the offset of the last *number* lines in *block*, which has more."""
    at = len(block)
    for _ in range(number + 1):
        at = block.rfind(end, 0, at)
    return at + 1


def _read_from(ctx: Context, file: str, offset: int) -> Iterator[bytes]:
    """Yield the content of a file from *offset* on."""
    while chunk := read_window(ctx, file, offset):
        yield chunk
        offset += len(chunk)
        if len(chunk) < BLOCK_BYTES:
            return
