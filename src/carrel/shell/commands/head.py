"""Print the first part of files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.errors import IsDirectoryError
from carrel.shell.command.access import PathAccess, reads
from carrel.shell.command.context import Context
from carrel.shell.command.flags import NUMBER, Opt
from carrel.shell.command.head_tail import (
    TEN_LINES,
    Headings,
    LastBuffer,
    LineOrByteCount,
    parse_byte_count,
    parse_line_count,
    take_first,
)
from carrel.shell.text.quoting import quote

USAGE = "[OPTION]... [FILE]..."


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `head`."""

    amount: Annotated[
        LineOrByteCount,
        Opt(
            "-n",
            NUMBER,
            "--lines",
            metavar="NUM",
            help="print NUM lines; with -, all but the last NUM",
            parse=parse_line_count,
        ),
        Opt(
            "-c",
            "--bytes",
            metavar="NUM",
            help="print NUM bytes; with -, all but the last NUM",
            parse=parse_byte_count,
        ),
    ] = TEN_LINES
    headings: Annotated[
        bool | None,
        Opt("-q", "--quiet", "--silent", const=False, help="never print file names"),
        Opt("-v", "--verbose", const=True, help="always print file names"),
    ] = None
    zero: Annotated[bool, Opt("-z", "--zero-terminated", help="lines end with NUL, not newline")] = False


def accesses(flags: Flags, files: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the files that are read."""
    return reads(files)


def run(ctx: Context, flags: Flags, files: Sequence[str]) -> int:
    """Print the first part of each file."""
    headings = Headings(ctx, enabled=len(files) > 1 if flags.headings is None else flags.headings)
    for file in files or ("-",):
        with ctx.reporting(file, f"cannot open {quote(file)} for reading"):
            try:
                chunks = ctx.chunks(file)
            except IsDirectoryError:
                headings.print(file)
                ctx.error(f"error reading {quote(file)}: Is a directory")
                continue
            headings.print(file)
            for chunk in _read_first(ctx, flags, chunks):
                ctx.write(chunk)
    return ctx.status


def _read_first(ctx: Context, flags: Flags, chunks: Iterator[bytes]) -> Iterator[bytes]:
    end = b"\0" if flags.zero else b"\n"
    if flags.amount.sign != "-":
        yield from take_first(chunks, flags.amount, end)
        return
    last = LastBuffer(ctx.meter, flags.amount, end)
    for chunk in chunks:
        yield from last.push(chunk)
    yield from last.finish()
    last.release()
