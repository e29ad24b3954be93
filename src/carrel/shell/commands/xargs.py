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
    """The input makes no arguments."""


def parse_delimiter(text: str) -> bytes:
    """Read the value of `-d`: a character or an escape."""
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


def delimited(records: Iterable[bytes], end: bytes) -> Iterator[bytes]:
    """Records without their ends; nothing else in them is special."""
    return (record.removesuffix(end) for record in records)


class Words:
    """The words of lines; those before an error are given before it is raised."""

    def __init__(self, lines: Iterable[bytes], meter: Meter) -> None:
        self._lines = lines
        self._meter = meter
        self._held = 0
        self._words: list[bytes] = []
        self._pieces: list[bytes] | None = None

    def by_line(self) -> Iterator[list[bytes]]:
        """The words of each line that has any; a line with a blank at its end goes on in the next."""
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
                    yield self._taken()
            else:
                yield from self._by_tokens(line)
        self._end_word()
        if self._words:
            yield self._taken()

    def _by_tokens(self, line: bytes) -> Iterator[list[bytes]]:
        is_after_word = self._pieces is not None
        for kind, text in _tokens([line]):
            if kind in ("blank", "end", "stray"):
                self._end_word()
                if self._words and (kind == "stray" or (kind == "end" and is_after_word)):
                    yield self._taken()
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
        """Charge for the words of *line*, each of which has at least a byte and a blank."""
        charge = RECORD_BYTES * (len(line) // 2 + 1)
        self._meter.charge_memory(charge)
        self._held += charge

    def _taken(self) -> list[bytes]:
        words, self._words = self._words, []
        return words


def whole_lines(lines: Iterable[bytes], meter: Meter) -> Iterator[bytes]:
    """Each line that is not empty, without blanks at its beginning and without quotes."""
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
Without COMMAND, echo is run. The status is 123 if a command failed, 124 if one ended with 255, 127 if
there is no such command. Commands run one after another and read nothing from standard input."""
_MOST_BYTES = 128 * 1024
"""Longest command line, if nothing else is asked for."""
_PROGRAMS = ("env", "xargs")
"""Commands that are more than a change of the shell, which would not last."""
_FAILED, _GIVEN_UP, _NOT_RUN = 123, 124, (126, 127)


def _most_arguments(text: str) -> tuple[str, int]:
    return "--max-args", _whole(text, "n")


def _most_lines(text: str) -> tuple[str, int]:
    return "--max-lines", _whole(text, "L")


def _replaced(text: str) -> tuple[str, str]:
    return "--replace", text or "{}"


def _whole(text: str, option: str) -> int:
    if not (text.isascii() and text.removeprefix("-").isdecimal()):
        raise UsageError(f'invalid number "{text}" for -{option} option', status=1)
    if int(text[:18]) < 1:
        raise UsageError(f"value {text} for -{option} option should be >= 1", status=1)
    return int(text[:18])


def _most_bytes(text: str) -> int:
    return min(_whole(text, "s"), _MOST_BYTES)


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `xargs`."""

    modes: Annotated[
        tuple[tuple[str, object], ...],
        Opt("-n", "--max-args", metavar="N", parse=_most_arguments, help="at most N arguments a command"),
        Opt("-L", "--max-lines", metavar="N", parse=_most_lines, help="at most N lines a command"),
        Opt("-I", metavar="R", parse=_replaced, help="run a command a line, with R replaced by the line"),
        Opt("--replace", metavar="[R]", parse=_replaced, help="the same; R is {} if it is left out"),
    ] = ()
    delimiter: Annotated[
        bytes | None,
        Opt("-0", "--null", const=b"\0", help="arguments end with NUL, and nothing else is special"),
        Opt("-d", "--delimiter", metavar="C", parse=parse_delimiter, help="they end with the character C"),
    ] = None
    arg_file: Annotated[str, Opt("-a", "--arg-file", metavar="FILE", help="read from FILE")] = STDIN
    not_if_empty: Annotated[
        bool, Opt("-r", "--no-run-if-empty", help="run nothing if there are no arguments")
    ] = False
    verbose: Annotated[bool, Opt("-t", "--verbose", help="print each command before it runs")] = False
    most_bytes: Annotated[
        int, Opt("-s", "--max-chars", metavar="N", parse=_most_bytes, help="at most N characters a command")
    ] = _MOST_BYTES
    strict: Annotated[bool, Opt("-x", "--exit", help="end if a command would be too long")] = False
    ignored: Annotated[str, Opt("-P", "--max-procs", metavar="N", help="ignored")] = ""


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """It reads the file named by `-a`; what the commands touch is not known before they run."""
    return reads([flags.arg_file])


def nested_command(flags: Flags, operands: Sequence[str]) -> list[str]:
    """It runs its operands, and adds to them what it reads."""
    return list(operands)


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Run the command as often as the arguments need it."""
    mode, value = _mode(ctx, flags)
    command = list(operands) or ["echo"]
    with ctx.reporting(flags.arg_file, f"Cannot open input file {quote_argument(flags.arg_file)}"):
        chunks = ctx.chunks(flags.arg_file)
        try:
            for argv in _commands(ctx, flags, chunks, command, mode, value):
                if _ends(ctx, flags, argv):
                    break
        except ItemError as error:
            ctx.error(str(error))
    return ctx.status


def _mode(ctx: Context, flags: Flags) -> tuple[str, object]:
    """How arguments are grouped: as the last option says, with a warning about those before it."""
    mode: tuple[str, object] = ("", 0)
    for later in flags.modes:
        if mode[0] == "--replace" and later == ("--max-args", 1):
            continue
        if mode[0] not in ("", later[0]):
            ctx.write_error_line(
                f"{ctx.name}: warning: options {mode[0]} and {_SPELLED[later[0]]} are mutually exclusive,"
                f" ignoring previous {mode[0]} value"
            )
        mode = later
    return mode


_SPELLED = {"--max-args": "--max-args/-n", "--max-lines": "-L", "--replace": "--replace/-I/-i"}


def _commands(
    ctx: Context, flags: Flags, chunks: Iterator[bytes], command: list[str], mode: str, value: object
) -> Iterator[list[str]]:
    """The commands to be run, word by word."""
    if mode == "--replace":
        return _with_replacements(ctx, flags, chunks, command, encode(str(value)))
    lines = _lines(ctx, flags, chunks)
    most_arguments = value if mode == "--max-args" and isinstance(value, int) else None
    most_lines = value if mode == "--max-lines" and isinstance(value, int) else None
    groups = _Groups(command, flags, most_arguments, most_lines).of(lines)
    return ([*command, *map(decode, group)] for group in groups)


def _lines(ctx: Context, flags: Flags, chunks: Iterator[bytes]) -> Iterator[list[bytes]]:
    if flags.delimiter is None:
        return Words(ctx.split_lines(chunks), ctx.meter).by_line()
    return ([item] for item in delimited(ctx.split_lines(chunks, flags.delimiter), flags.delimiter))


def _with_replacements(
    ctx: Context, flags: Flags, chunks: Iterator[bytes], command: list[str], mark: bytes
) -> Iterator[list[str]]:
    items = (
        whole_lines(ctx.split_lines(chunks), ctx.meter)
        if flags.delimiter is None
        else delimited(ctx.split_lines(chunks, flags.delimiter), flags.delimiter)
    )
    words = list(map(encode, command))
    for item in items:
        size = sum(len(word) + word.count(mark) * len(item) for word in words)
        if size > flags.most_bytes:
            raise ItemError("argument list too long")
        yield [decode(words[0]), *(decode(word.replace(mark, item)) for word in words[1:])]


class _Groups:
    """Puts arguments together until a command has enough."""

    def __init__(
        self, command: Sequence[str], flags: Flags, most_arguments: int | None, most_lines: int | None
    ) -> None:
        self._begin = sum(len(encode(word)) + 1 for word in command)
        self._flags = flags
        self._most_arguments = most_arguments
        self._most_lines = most_lines
        self._group: list[bytes] = []
        self._size = self._begin
        self._is_used = False

    def of(self, lines: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
        """The arguments of each command; those before an error are used before it is told."""
        try:
            yield from self._full(lines)
        except ItemError:
            if self._group:
                yield self._taken()
            raise
        if self._group or not (self._is_used or self._flags.not_if_empty):
            yield self._taken()

    def _full(self, lines: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
        line_count = 0
        for line in lines:
            for item in line:
                room = self._room(item)
                if self._group and (room < 0 or len(self._group) == self._most_arguments):
                    self._require_whole(room)
                    yield self._taken()
                    line_count = 0
                self._group.append(item)
                self._size += len(item) + 1
            line_count += 1
            if line_count == self._most_lines:
                yield self._taken()
                line_count = 0

    def _taken(self) -> list[bytes]:
        group, self._group = self._group, []
        self._size, self._is_used = self._begin, True
        return group

    def _room(self, item: bytes) -> int:
        """How many bytes the command could still take after *item*."""
        if self._begin + len(item) + 1 > self._flags.most_bytes:
            raise ItemError("argument line too long")
        return self._flags.most_bytes - self._size - len(item) - 1

    def _require_whole(self, room: int) -> None:
        is_counted = self._most_arguments is not None or self._most_lines is not None
        if room < 0 and self._flags.strict and is_counted:
            raise ItemError("argument list too long")


def _ends(ctx: Context, flags: Flags, argv: list[str]) -> bool:
    """Run one command, and tell whether no other may follow."""
    if flags.verbose:
        ctx.write_error_line(" ".join(quote_if_needed(word) for word in argv))
    ctx.meter.charge_entries(1)
    if argv[0] in COMMANDS and COMMANDS[argv[0]].effect is CommandEffect.SHELL and argv[0] not in _PROGRAMS:
        ctx.error(f"{quote_if_needed(argv[0])}: No such file or directory", status=127)
        return True
    # What is read from a file leaves standard input to the commands.
    status = ctx.call(argv, ctx.state.copy(), stdin=InputStream() if flags.arg_file == STDIN else None)
    if status == 255:
        ctx.error(f"{quote_if_needed(argv[0])}: exited with status 255; aborting", status=_GIVEN_UP)
        return True
    if status in _NOT_RUN:
        ctx.status = status
        return True
    if status:
        ctx.status = _FAILED
    return False
