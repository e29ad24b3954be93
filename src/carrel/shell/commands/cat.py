"""Print files one after another."""

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
"""Longest part of a line that is printed at once."""
_HIDDEN = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f-\xff]")


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `cat`."""

    number: Annotated[bool, Opt("-n", "--number", help="number all lines")] = False
    nonblank: Annotated[
        bool, Opt("-b", "--number-nonblank", help="number lines that are not empty, whatever -n says")
    ] = False
    squeeze: Annotated[bool, Opt("-s", "--squeeze-blank", help="print one of several empty lines")] = False
    ends: Annotated[bool, Opt("-E", "--show-ends", help="print $ at the end of each line")] = False
    tabs: Annotated[bool, Opt("-T", "--show-tabs", help="print tabs as ^I")] = False
    hidden: Annotated[
        bool, Opt("-v", "--show-nonprinting", help="print other control characters as ^X and M-X")
    ] = False
    all: Annotated[bool, Opt("-A", "--show-all", help="the same as -vET")] = False
    hidden_ends: Annotated[bool, Opt("-e", help="the same as -vE")] = False
    hidden_tabs: Annotated[bool, Opt("-t", help="the same as -vT")] = False
    unbuffered: Annotated[bool, Opt("-u", help="ignored")] = False


def accesses(flags: Flags, files: Sequence[str]) -> Iterable[PathAccess]:
    """It reads the files."""
    return reads(files)


def run(ctx: Context, flags: Flags, files: Sequence[str]) -> int:
    """Print each file, or standard input."""
    if flags == Flags(unbuffered=flags.unbuffered):
        for chunk in _chunks(ctx, files):
            ctx.write(chunk)
        return ctx.status
    ctx.write_each(_Look(flags).lines(ctx.split_lines(_chunks(ctx, files))))
    return ctx.status


def _chunks(ctx: Context, files: Sequence[str]) -> Iterator[bytes]:
    """The content of all files, as if it were that of one."""
    for file in files or (STDIN,):
        with ctx.reporting(file):
            yield from ctx.chunks(file)


class _Look:
    """How lines are printed: a number and a line, or parts of one that is long."""

    def __init__(self, flags: Flags) -> None:
        self._numbers = flags.number or flags.nonblank
        self._nonblank = flags.nonblank
        self._squeeze = flags.squeeze
        self._ends = flags.ends or flags.all or flags.hidden_ends
        self._tabs = flags.tabs or flags.all or flags.hidden_tabs
        self._hidden = flags.hidden or flags.all or flags.hidden_ends or flags.hidden_tabs

    def lines(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The lines as they are to be printed."""
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
                yield prefix + self._shown(line)
                continue
            yield prefix
            # What ends the line stays in one part.
            for at in range(0, len(line) - 2, _PART_BYTES):
                end = at + _PART_BYTES
                yield self._shown(line[at : end if end < len(line) - 2 else len(line)])

    def _shown(self, line: bytes) -> bytes:
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
    """How each byte is shown by `-v`."""
    ascii_ones = [b"^%c" % (byte + 64) for byte in range(32)]
    ascii_ones += [b"%c" % byte for byte in range(32, 127)] + [b"^?"]
    return ascii_ones + [b"M-" + shown for shown in ascii_ones]
