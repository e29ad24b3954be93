"""Concatenate files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated

from carrel.shell.command.access import PathAccess, reads
from carrel.shell.command.context import STDIN, Context
from carrel.shell.command.flags import Opt

USAGE = "[OPTION]... [FILE]..."
_PART_BYTES = 2**13
"""Longer lines are formatted and printed in parts of this size."""
_HIDDEN = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f-\xff]")


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `cat`."""

    number: Annotated[bool, Opt("-n", "--number", help="number all lines")] = False
    nonblank: Annotated[bool, Opt("-b", "--number-nonblank", help="number nonempty lines; overrides -n")] = (
        False
    )
    squeeze: Annotated[bool, Opt("-s", "--squeeze-blank", help="suppress repeated empty lines")] = False
    ends: Annotated[bool, Opt("-E", "--show-ends", help="print $ at the end of each line")] = False
    tabs: Annotated[bool, Opt("-T", "--show-tabs", help="print tabs as ^I")] = False
    hidden: Annotated[
        bool, Opt("-v", "--show-nonprinting", help="print other control characters as ^X and M-X")
    ] = False
    all: Annotated[bool, Opt("-A", "--show-all", help="same as -vET")] = False
    hidden_ends: Annotated[bool, Opt("-e", help="same as -vE")] = False
    hidden_tabs: Annotated[bool, Opt("-t", help="same as -vT")] = False
    unbuffered: Annotated[bool, Opt("-u", help="ignored")] = False


def accesses(flags: Flags, files: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the files that are read."""
    return reads(files)


def run(ctx: Context, flags: Flags, files: Sequence[str]) -> int:
    """Print the files, or standard input."""
    if flags == Flags(unbuffered=flags.unbuffered):
        for chunk in _chunks(ctx, files):
            ctx.write(chunk)
        return ctx.status
    ctx.write_each(_LineFormatter(flags).format(ctx.split_lines(_chunks(ctx, files))))
    return ctx.status


def _chunks(ctx: Context, files: Sequence[str]) -> Iterator[bytes]:
    """Yield the content of all files."""
    for file in files or (STDIN,):
        with ctx.reporting(file):
            yield from ctx.chunks(file)


class _LineFormatter:
    """Formats lines as the options say."""

    def __init__(self, flags: Flags) -> None:
        self._numbers = flags.number or flags.nonblank
        self._nonblank = flags.nonblank
        self._squeeze = flags.squeeze
        self._ends = flags.ends or flags.all or flags.hidden_ends
        self._tabs = flags.tabs or flags.all or flags.hidden_tabs
        self._hidden = flags.hidden or flags.all or flags.hidden_ends or flags.hidden_tabs

    def format(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the formatted lines; a long line comes in parts."""
        number = 0
        was_blank = False
        for line in lines:
            is_blank = line == b"\n"
            if self._squeeze and is_blank and was_blank:
                continue
            was_blank = is_blank
            prefix = b""
            if self._numbers and not (is_blank and self._nonblank):
                number += 1
                prefix = b"%6d\t" % number
            if len(line) <= _PART_BYTES:
                yield prefix + self._render(line)
                continue
            yield prefix
            # The last part keeps the whole line ending, `\r\n` included.
            for at in range(0, len(line) - 2, _PART_BYTES):
                end = at + _PART_BYTES
                yield self._render(line[at : end if end < len(line) - 2 else len(line)])

    def _render(self, line: bytes) -> bytes:
        if self._hidden:
            line = _HIDDEN.sub(_visible, line)
        if self._tabs:
            line = line.replace(b"\t", b"^I")
        if self._ends and line.endswith(b"\n"):
            line = line[:-2] + b"^M$\n" if line.endswith(b"\r\n") else line[:-1] + b"$\n"
        return line


def _visible(found: re.Match[bytes]) -> bytes:
    return _notations()[found[0][0]]


@cache
def _notations() -> list[bytes]:
    """Return the notation of `-v` for each byte."""
    ascii_notations = [b"^%c" % (byte + 64) for byte in range(32)]
    ascii_notations += [b"%c" % byte for byte in range(32, 127)] + [b"^?"]
    return ascii_notations + [b"M-" + notation for notation in ascii_notations]
