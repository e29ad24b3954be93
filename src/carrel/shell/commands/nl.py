"""Number lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.shell.command.access import PathAccess, reads
from carrel.shell.command.context import STDIN, Context
from carrel.shell.command.flags import Opt, UsageError
from carrel.shell.text.quoting import encode, quote_argument
from carrel.shell.text.records import line_batches
from carrel.shell.text.regex import RegexError, Syntax, compile_regex, translate

USAGE = "[OPTION]... [FILE]..."
NOTES = """\
STYLE is a (all lines), t (nonempty lines), n (no lines) or pBRE (lines that match a basic regular
expression). A line \\:\\:\\: starts the header of a page, \\:\\: its body and \\: its footer."""
_MAX_WIDTH = 10_000
"""Widest number field, in columns."""

LinePredicate = Callable[[bytes], bool]
"""Whether a line gets a number."""


def _style_parser(name: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text[:1] not in ("a", "t", "n", "p"):
            raise UsageError(f"invalid {name} numbering style: {quote_argument(text)}", status=1)
        return text

    return parse


def _parse_format(text: str) -> str:
    if text not in _FORMATS:
        raise UsageError(f"invalid line numbering format: {quote_argument(text)}", status=1)
    return text


_FORMATS: dict[str, Callable[[int, int], str]] = {
    "ln": lambda number, width: f"{number:<{width}}",
    "rn": lambda number, width: f"{number:>{width}}",
    "rz": lambda number, width: f"{number:0{width}}",
}


def _number_parser(noun: str, minimum: int | None = None, maximum: int = 2**63 - 1) -> Callable[[str], int]:
    def parse(text: str) -> int:
        if not (text.isascii() and text.lstrip("+-").isdecimal() and len(text.lstrip("+-")) >= len(text) - 1):
            raise ValueError(f"invalid {noun}: {quote_argument(text)}")
        value = int(text[:40])
        if minimum is not None and value < minimum:
            raise ValueError(f"invalid {noun}: {quote_argument(text)}: Numerical result out of range")
        if abs(value) > maximum:
            raise ValueError(f"invalid {noun}: {quote_argument(text)}: Value too large for defined data type")
        return value

    return parse


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `nl`."""

    body: Annotated[
        str,
        Opt(
            "-b",
            "--body-numbering",
            metavar="STYLE",
            parse=_style_parser("body"),
            help="number these body lines",
        ),
    ] = "t"
    header: Annotated[
        str,
        Opt(
            "-h",
            "--header-numbering",
            metavar="STYLE",
            parse=_style_parser("header"),
            help="number these header lines",
        ),
    ] = "n"
    footer: Annotated[
        str,
        Opt(
            "-f",
            "--footer-numbering",
            metavar="STYLE",
            parse=_style_parser("footer"),
            help="number these footer lines",
        ),
    ] = "n"
    delimiter: Annotated[
        str, Opt("-d", "--section-delimiter", metavar="CC", help="mark sections with CC, not \\:")
    ] = "\\:"
    increment: Annotated[
        int,
        Opt(
            "-i",
            "--line-increment",
            metavar="N",
            parse=_number_parser("line number increment"),
            help="increment numbers by N",
        ),
    ] = 1
    blanks: Annotated[
        int,
        Opt(
            "-l",
            "--join-blank-lines",
            metavar="N",
            parse=_number_parser("line number of blank lines", 1),
            help="count N empty lines as one",
        ),
    ] = 1
    format: Annotated[
        str,
        Opt(
            "-n",
            "--number-format",
            metavar="FORMAT",
            parse=_parse_format,
            help="ln (left), rn (right) or rz (right, with zeros)",
        ),
    ] = "rn"
    no_renumber: Annotated[
        bool, Opt("-p", "--no-renumber", help="do not restart numbers at each section")
    ] = False
    separator: Annotated[
        str, Opt("-s", "--number-separator", metavar="STRING", help="print STRING after the number")
    ] = "\t"
    start: Annotated[
        int,
        Opt(
            "-v",
            "--starting-line-number",
            metavar="N",
            parse=_number_parser("starting line number"),
            help="start numbering at N",
        ),
    ] = 1
    width: Annotated[
        int,
        Opt(
            "-w",
            "--number-width",
            metavar="N",
            parse=_number_parser("line number field width", 1, _MAX_WIDTH),
            help="use N columns for numbers",
        ),
    ] = 6


def accesses(flags: Flags, files: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the files that are read."""
    return reads(files)


def run(ctx: Context, flags: Flags, files: Sequence[str]) -> int:
    """Print the lines of all files, numbered consecutively."""
    numberer = _Numberer(flags)
    for lines in _read_lines(ctx, files or (STDIN,)):
        ctx.write_each(map(numberer.number, lines))
    return ctx.status


def _read_lines(ctx: Context, files: Sequence[str]) -> Iterator[list[bytes]]:
    for file in files:
        with ctx.reporting(file):
            yield from line_batches(ctx.chunks(file), b"\n", ctx.meter)


class _Numberer:
    """Numbers lines, by the style of the section that they are in."""

    def __init__(self, flags: Flags) -> None:
        self._flags = flags
        self._next_number = flags.start
        self._blank_count = 0
        self._separator = encode(flags.separator)
        self._indent = b" " * (flags.width + len(self._separator))
        self._format = _FORMATS[flags.format]
        self._is_numbered, *others = (
            self._predicate(style) for style in (flags.body, flags.header, flags.body, flags.footer)
        )
        marks = self._section_marks()
        self._sections = dict(zip(marks, others, strict=True)) if marks else {}

    def _section_marks(self) -> list[bytes]:
        """Return the lines that start a header, a body and a footer."""
        delimiter = encode(self._flags.delimiter)
        if len(delimiter) == 1:
            delimiter += b":"
        return [delimiter * 3, delimiter * 2, delimiter] if delimiter else []

    def _predicate(self, style: str) -> LinePredicate:
        if style[0] == "a":
            return self._is_not_joined
        if style[0] == "t":
            return bool
        return _matches(style[1:]) if style[0] == "p" else lambda line: False

    def _is_not_joined(self, line: bytes) -> bool:
        """Whether a line is nonempty, or the last of the empty lines that count as one."""
        if not line:
            self._blank_count += 1
            if self._blank_count < self._flags.blanks:
                return False
        self._blank_count = 0
        return True

    def number(self, line: bytes) -> bytes:
        """Render a line with its number, if it gets one."""
        if line in self._sections:
            self._is_numbered = self._sections[line]
            if not self._flags.no_renumber:
                self._next_number = self._flags.start
            return b"\n"
        if not self._is_numbered(line):
            return self._indent + line + b"\n"
        number = self._format(self._next_number, self._flags.width)
        self._next_number += self._flags.increment
        return b"%b%b%b\n" % (number.encode(), self._separator, line)


def _matches(pattern: str) -> LinePredicate:
    try:
        regex = compile_regex(translate(pattern, Syntax.BASIC).text)
    except RegexError as error:
        raise UsageError(str(error), status=1, hint=False) from None
    return lambda line: regex.search(line, 0, len(line)) is not None
