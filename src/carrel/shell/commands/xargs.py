"""Run a command with arguments from standard input."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.shell.budget import RECORD_BYTES, Meter
from carrel.shell.command.access import PathAccess, reads
from carrel.shell.command.context import STDIN, Context
from carrel.shell.command.flags import Opt, UsageError
from carrel.shell.command.table import COMMANDS, CommandEffect
from carrel.shell.streams import InputStream
from carrel.shell.text.quoting import decode, encode, quote_argument, quote_if_needed

_TOKEN = re.compile(
    rb"(?P<blank>[ \t\v\f\r]+)|(?P<plain>[^ \t\v\f\r\n'\"\\]+)|'(?P<single>[^'\n]*)'|\"(?P<double>[^\"\n]*)\""
    rb"|\\(?P<escaped>.)|(?P<end>\n)|(?P<stray>['\"])",
    re.DOTALL,
)
_SPECIAL = re.compile(rb"['\"\\]")
_ESCAPES = {"a": b"\a", "b": b"\b", "f": b"\f", "n": b"\n", "r": b"\r", "t": b"\t", "v": b"\v", "\\": b"\\"}
_NUMBER = re.compile(r"x([0-9a-fA-F]{1,2})|([0-7]{1,3})")


class ItemError(Exception):
    """The input cannot be split into arguments."""


def parse_delimiter(text: str) -> bytes:
    """Parse the value of `-d`: a character or an escape."""
    data = encode(text)
    if len(data) == 1:
        return data
    if text.startswith("\\") and (number := _NUMBER.fullmatch(text, 1)):
        value = int(number[1], 16) if number[1] else int(number[2], 8)
        if value < 256:
            return bytes([value])
    if text[:1] == "\\" and text[1:] in _ESCAPES:
        return _ESCAPES[text[1:]]
    raise UsageError(
        f"Invalid input delimiter specification {text}: the delimiter must be either a single character or an"
        " escape sequence starting with \\.",
        status=1,
        hint=False,
    )


def strip_delimiters(records: Iterable[bytes], end: bytes) -> Iterator[bytes]:
    """Yield records without their delimiters; no other character is special."""
    return (record.removesuffix(end) for record in records)


class Words:
    """Splits lines into words; words before an error are returned before it is raised."""

    def __init__(self, lines: Iterable[bytes], meter: Meter) -> None:
        self._lines = lines
        self._meter = meter
        self._held = 0
        self._words: list[bytes] = []
        self._pieces: list[bytes] | None = None

    def by_line(self) -> Iterator[list[bytes]]:
        """Yield the words of each nonempty line; a line that ends in a blank continues on the next."""
        for words in self._by_line():
            yield words
            words.clear()
            self._meter.charge_memory(-self._held)
            self._held = 0

    def _by_line(self) -> Iterator[list[bytes]]:
        for line in self._lines:
            self._charge(line)
            if self._pieces is None and not _SPECIAL.search(line):
                self._words += line.split()
                if not line[-2:-1].isspace() and len(line) > 1 and self._words:
                    yield self._take()
            else:
                yield from self._by_tokens(line)
        self._end_word()
        if self._words:
            yield self._take()

    def _by_tokens(self, line: bytes) -> Iterator[list[bytes]]:
        is_after_word = self._pieces is not None
        for kind, text in _tokens([line]):
            if kind in ("blank", "end", "stray"):
                self._end_word()
                if self._words and (kind == "stray" or (kind == "end" and is_after_word)):
                    yield self._take()
                is_after_word = False
                if kind == "stray":
                    raise _unmatched(text)
            else:
                is_after_word = True
                self._pieces = self._pieces or []
                self._pieces.append(text)

    def _end_word(self) -> None:
        if self._pieces is not None:
            self._words.append(b"".join(self._pieces))
            self._pieces = None

    def _charge(self, line: bytes) -> None:
        """Charge for the words of *line*, each of at least one byte and one blank."""
        charge = RECORD_BYTES * (len(line) // 2 + 1)
        self._meter.charge_memory(charge)
        self._held += charge

    def _take(self) -> list[bytes]:
        words, self._words = self._words, []
        return words


def unquoted_lines(lines: Iterable[bytes], meter: Meter) -> Iterator[bytes]:
    """Yield each nonempty line, without leading blanks and with quotes removed."""
    pieces: list[bytes] = []
    held = 0
    for kind, text in _tokens(lines):
        if kind == "stray":
            raise _unmatched(text)
        if kind == "end":
            if pieces:
                yield b"".join(pieces)
            pieces = []
            meter.charge_memory(-held)
            held = 0
        elif kind != "blank" or pieces:
            charge = 2 * len(text) + RECORD_BYTES
            meter.charge_memory(charge)
            held += charge
            pieces.append(text)
    if pieces:
        yield b"".join(pieces)


def _tokens(lines: Iterable[bytes]) -> Iterator[tuple[str, bytes]]:
    for line in lines:
        for found in _TOKEN.finditer(line):
            yield found.lastgroup or "", found[found.lastindex or 0]


def _unmatched(quote: bytes) -> ItemError:
    name = "double" if quote == b'"' else "single"
    return ItemError(
        f"unmatched {name} quote; by default quotes are special to xargs unless you use the -0 option"
    )


USAGE = "[OPTION]... [COMMAND [ARGUMENT]...]"
ADDS_OPERANDS = True
OPTIONS_FIRST = True
NOTES = """\
Without COMMAND, runs echo. The status is 123 if a command failed, 124 if one exited with 255, 127 if
COMMAND was not found. Commands run one after another, with empty standard input."""
_MAX_BYTES = 128 * 1024
"""Longest command line; also the default, in bytes."""
_PROGRAMS = ("env", "xargs")
"""Shell commands that do more than change the shell; any other would have no lasting effect."""
_FAILED, _ABORTED, _NOT_RUN = 123, 124, (126, 127)
"""Exit statuses: a command failed; one exited with 255; the command could not be run."""


def _parse_max_arguments(text: str) -> tuple[str, int]:
    return "--max-args", _parse_positive(text, "n")


def _parse_max_lines(text: str) -> tuple[str, int]:
    return "--max-lines", _parse_positive(text, "L")


def _parse_replacement(text: str) -> tuple[str, str]:
    return "--replace", text or "{}"


def _parse_positive(text: str, option: str) -> int:
    if not (text.isascii() and text.removeprefix("-").isdecimal()):
        raise UsageError(f'invalid number "{text}" for -{option} option', status=1)
    if int(text[:18]) < 1:
        raise UsageError(f"value {text} for -{option} option should be >= 1", status=1)
    return int(text[:18])


def _parse_max_bytes(text: str) -> int:
    return min(_parse_positive(text, "s"), _MAX_BYTES)


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `xargs`."""

    modes: Annotated[
        tuple[tuple[str, object], ...],
        Opt(
            "-n",
            "--max-args",
            metavar="N",
            parse=_parse_max_arguments,
            help="pass at most N arguments per command",
        ),
        Opt("-L", "--max-lines", metavar="N", parse=_parse_max_lines, help="use at most N lines per command"),
        Opt("-I", metavar="R", parse=_parse_replacement, help="run one command per line, replacing R by it"),
        Opt("--replace", metavar="[R]", parse=_parse_replacement, help="the same; R is {} by default"),
    ] = ()
    delimiter: Annotated[
        bytes | None,
        Opt("-0", "--null", const=b"\0", help="arguments end with NUL; nothing else is special"),
        Opt("-d", "--delimiter", metavar="C", parse=parse_delimiter, help="arguments end with character C"),
    ] = None
    arg_file: Annotated[str, Opt("-a", "--arg-file", metavar="FILE", help="read arguments from FILE")] = STDIN
    not_if_empty: Annotated[
        bool, Opt("-r", "--no-run-if-empty", help="run nothing if there are no arguments")
    ] = False
    verbose: Annotated[bool, Opt("-t", "--verbose", help="print each command before it runs")] = False
    max_bytes: Annotated[
        int,
        Opt(
            "-s",
            "--max-chars",
            metavar="N",
            parse=_parse_max_bytes,
            help="use at most N characters per command",
        ),
    ] = _MAX_BYTES
    strict: Annotated[bool, Opt("-x", "--exit", help="exit if a command line is too long")] = False
    ignored: Annotated[str, Opt("-P", "--max-procs", metavar="N", help="ignored")] = ""


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the file of `-a`, which is read; accesses of the commands are checked when they run."""
    return reads([flags.arg_file])


def nested_command(flags: Flags, operands: Sequence[str]) -> list[str]:
    """Return the command that it runs; arguments from the input are added later."""
    return list(operands)


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Run the command until all arguments are used."""
    mode, value = _select_mode(ctx, flags)
    command = list(operands) or ["echo"]
    with ctx.reporting(flags.arg_file, f"Cannot open input file {quote_argument(flags.arg_file)}"):
        chunks = ctx.chunks(flags.arg_file)
        try:
            for argv in _commands(ctx, flags, chunks, command, mode, value):
                if not _run_command(ctx, flags, argv):
                    break
        except ItemError as error:
            ctx.error(str(error))
    return ctx.status


def _select_mode(ctx: Context, flags: Flags) -> tuple[str, object]:
    """Return the last of the options that group arguments, and warn about the others."""
    mode: tuple[str, object] = ("", 0)
    for later in flags.modes:
        if mode[0] == "--replace" and later == ("--max-args", 1):
            continue
        if mode[0] not in ("", later[0]):
            ctx.write_error_line(
                f"{ctx.name}: warning: options {mode[0]} and {_LONG_NAMES[later[0]]} are mutually exclusive,"
                f" ignoring previous {mode[0]} value"
            )
        mode = later
    return mode


_LONG_NAMES = {"--max-args": "--max-args/-n", "--max-lines": "-L", "--replace": "--replace/-I/-i"}


def _commands(
    ctx: Context, flags: Flags, chunks: Iterator[bytes], command: list[str], mode: str, value: object
) -> Iterator[list[str]]:
    """Yield the words of each command to run."""
    if mode == "--replace":
        return _with_replacements(ctx, flags, chunks, command, encode(str(value)))
    lines = _lines(ctx, flags, chunks)
    max_arguments = value if mode == "--max-args" and isinstance(value, int) else None
    max_lines = value if mode == "--max-lines" and isinstance(value, int) else None
    groups = _Grouper(command, flags, max_arguments, max_lines).group(lines)
    return ([*command, *map(decode, group)] for group in groups)


def _lines(ctx: Context, flags: Flags, chunks: Iterator[bytes]) -> Iterator[list[bytes]]:
    if flags.delimiter is None:
        return Words(ctx.split_lines(chunks), ctx.meter).by_line()
    return ([item] for item in strip_delimiters(ctx.split_lines(chunks, flags.delimiter), flags.delimiter))


def _with_replacements(
    ctx: Context, flags: Flags, chunks: Iterator[bytes], command: list[str], mark: bytes
) -> Iterator[list[str]]:
    items = (
        unquoted_lines(ctx.split_lines(chunks), ctx.meter)
        if flags.delimiter is None
        else strip_delimiters(ctx.split_lines(chunks, flags.delimiter), flags.delimiter)
    )
    words = list(map(encode, command))
    for item in items:
        size = sum(len(word) + word.count(mark) * len(item) for word in words)
        if size > flags.max_bytes:
            raise ItemError("argument list too long")
        yield [decode(words[0]), *(decode(word.replace(mark, item)) for word in words[1:])]


class _Grouper:
    """Groups arguments into command lines."""

    def __init__(
        self, command: Sequence[str], flags: Flags, max_arguments: int | None, max_lines: int | None
    ) -> None:
        self._command_size = sum(len(encode(word)) + 1 for word in command)
        self._flags = flags
        self._max_arguments = max_arguments
        self._max_lines = max_lines
        self._group: list[bytes] = []
        self._size = self._command_size
        self._is_used = False

    def group(self, lines: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
        """Yield the arguments of each command; those before an error come before it is raised."""
        try:
            yield from self._full_groups(lines)
        except ItemError:
            if self._group:
                yield self._take()
            raise
        if self._group or not (self._is_used or self._flags.not_if_empty):
            yield self._take()

    def _full_groups(self, lines: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
        line_count = 0
        for line in lines:
            for item in line:
                room = self._room(item)
                if self._group and (room < 0 or len(self._group) == self._max_arguments):
                    self._require_room(room)
                    yield self._take()
                    line_count = 0
                self._group.append(item)
                self._size += len(item) + 1
            line_count += 1
            if line_count == self._max_lines:
                yield self._take()
                line_count = 0

    def _take(self) -> list[bytes]:
        group, self._group = self._group, []
        self._size, self._is_used = self._command_size, True
        return group

    def _room(self, item: bytes) -> int:
        """Return the bytes left in the command line after *item*; negative if it does not fit."""
        if self._command_size + len(item) + 1 > self._flags.max_bytes:
            raise ItemError("argument line too long")
        return self._flags.max_bytes - self._size - len(item) - 1

    def _require_room(self, room: int) -> None:
        is_counted = self._max_arguments is not None or self._max_lines is not None
        if room < 0 and self._flags.strict and is_counted:
            raise ItemError("argument list too long")


def _run_command(ctx: Context, flags: Flags, argv: list[str]) -> bool:
    """Run one command, and return whether others may follow."""
    if flags.verbose:
        ctx.write_error_line(" ".join(quote_if_needed(word) for word in argv))
    ctx.meter.charge_entries(1)
    if argv[0] in COMMANDS and COMMANDS[argv[0]].effect is CommandEffect.SHELL and argv[0] not in _PROGRAMS:
        ctx.error(f"{quote_if_needed(argv[0])}: No such file or directory", status=127)
        return False
    # With `-a`, the commands get the standard input of xargs.
    status = ctx.call(argv, ctx.state.copy(), stdin=InputStream() if flags.arg_file == STDIN else None)
    if status == 255:
        ctx.error(f"{quote_if_needed(argv[0])}: exited with status 255; aborting", status=_ABORTED)
        return False
    if status in _NOT_RUN:
        ctx.status = status
        return False
    if status:
        ctx.status = _FAILED
    return True
