"""Parse a `sed` script into a list of commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from carrel.shell.commands.sed.replacement import Replacement, unescape
from carrel.shell.commands.sed.scanner import Scanner, ScriptFragment
from carrel.shell.commands.sed.script import (
    AddressKind,
    LineAddress,
    ScriptError,
    ScriptPattern,
    SedCommand,
    Substitution,
)
from carrel.shell.text.quoting import encode
from carrel.shell.text.regex import MAX_REGEX_BYTES, RegexError, Syntax, compile_regex, translate

ONE_ADDRESS = frozenset("qQ")
REFUSED = frozenset("ewWR")
"""They run programs or write other files."""
_BLANK = re.compile(r"[ \t]*\n")
_LINES = re.compile(r"(?:[^\\\n]|\\.)*", re.DOTALL)
SANDBOXED = "e/r/w commands disabled in sandbox mode"


def parse(
    pieces: Sequence[ScriptFragment],
    *,
    extended: bool,
    sandbox: bool,
    charge_memory: Callable[[int], object] = lambda count: None,
) -> list[SedCommand]:
    """The commands of a script; *hold* charges for the memory that its expressions may take.

    Raises:
        ScriptError: It cannot be read.
    """
    parser = _Parser(Syntax.EXTENDED if extended else Syntax.BASIC, sandbox, charge_memory)
    for number, piece in _numbered(pieces):
        parser.read(piece, number)
    return parser.finish()


def _numbered(pieces: Iterable[ScriptFragment]) -> Iterable[tuple[int, ScriptFragment]]:
    """The pieces and their numbers; text that is continued in the next `-e` is one with it."""
    number, held = 0, ""
    for piece in pieces:
        number += piece.file is None
        text = held + piece.text
        backslashes = len(text) - len(text.rstrip("\\"))
        held = ""
        if backslashes % 2 and piece.file is None:
            held = text + "\n"
            continue
        yield number, ScriptFragment(text, piece.file)
    if held:
        yield number, ScriptFragment(held[:-1])


class _Parser(Scanner):
    """Reads a script, piece by piece."""

    def __init__(self, syntax: Syntax, sandbox: bool, charge_memory: Callable[[int], object]) -> None:
        super().__init__()
        self._hold = charge_memory
        self._syntax = syntax
        self._sandbox = sandbox
        self._commands: list[SedCommand] = []
        self._blocks: list[int] = []
        self._labels: dict[str, int] = {}

    def read(self, piece: ScriptFragment, number: int) -> None:
        """Read the commands of one piece."""
        self._begin(piece, number)
        while self._skip(" \t\n;\r"):
            self._command()

    def finish(self) -> list[SedCommand]:
        """All commands, once the script is complete."""
        if self._blocks:
            self._at = 0
            raise self._error("unmatched `{'")
        for command in self._commands:
            if command.name in "btT":
                if command.label and command.label not in self._labels:
                    raise ScriptError(f"can't find label for jump to `{command.label}'", 4)
                command.target = self._labels.get(command.label, len(self._commands))
        return self._commands

    # Commands

    def _command(self) -> None:
        command = SedCommand("")
        self._addresses(command)
        self._skip()
        while self._text.startswith("!", self._at):
            self._at += 1
            if command.negated:
                raise self._error("multiple `!'s")
            command.negated = True
            self._skip()
        command.name = self._next()
        if not command.name or command.name in "\n;":
            raise self._error("missing command")
        self._check(command)
        self._arguments(command)

    def _check(self, command: SedCommand) -> None:
        first, last, name = command.first, command.last, command.name
        if first is not None and first.at is AddressKind.LINE and not first.number:
            if last is None or last.at is not AddressKind.MATCH:
                raise self._error("invalid usage of line address 0")
            command.begins_active = True
        if first is None:
            return
        if name == "#":
            raise self._error("comments don't accept any addresses")
        if name == ":":
            raise self._error(": doesn't want any addresses")
        if name in ONE_ADDRESS and last is not None:
            raise self._error("command only uses one address")

    def _arguments(self, command: SedCommand) -> None:
        name = command.name
        if name == "#":
            end = self._text.find("\n", self._at)
            self._at = len(self._text) if end < 0 else end
            return
        if name in REFUSED or (name == "r" and self._sandbox):
            raise self._error(SANDBOXED)
        read = _ARGUMENTS.get(name)
        if read is None:
            raise self._error(f"unknown command: `{name}'")
        read(self, command)
        self._commands.append(command)

    def no_argument(self, command: SedCommand) -> None:
        """Nothing may follow."""
        self._end()

    def jump(self, command: SedCommand) -> None:
        """A label may follow."""
        command.label = self._word(" \t\n\r;}")
        self._end()

    def number(self, command: SedCommand) -> None:
        """A number may follow."""
        self._skip()
        command.number = int(digits[:9]) if (digits := self._digits()) else None
        self._end()

    def version(self, command: SedCommand) -> None:
        """A version may follow, about which nobody cares."""
        self._word(" \t\n\r;}")

    def open(self, command: SedCommand) -> None:
        """A block begins."""
        self._blocks.append(len(self._commands))

    def close(self, command: SedCommand) -> None:
        """A block ends."""
        if not self._blocks or command.first is not None:
            raise self._error("unexpected `}'")
        self._commands[self._blocks.pop()].target = len(self._commands) + 1
        self._end()

    def label(self, command: SedCommand) -> None:
        """A label must follow."""
        label = self._word(" \t\n\r;")
        if not label:
            raise self._error('":" lacks a label')
        self._labels.setdefault(label, len(self._commands))

    def file(self, command: SedCommand) -> None:
        """The name of a file follows, up to the end of the line."""
        self._skip()
        end = self._text.find("\n", self._at)
        start, self._at = self._at, len(self._text) if end < 0 else end
        if start == self._at:
            raise self._error("missing filename in r/R/w/W commands")
        command.text = encode(self._text[start : self._at])

    def lines(self, command: SedCommand) -> None:
        """Text follows, up to a newline without a backslash."""
        if not self._skip():
            raise self._error("expected \\ after `a', `c' or `i'")
        if self._text.startswith("\\", self._at):
            self._at += 1
            if self._at == len(self._text):
                return
            if blank := _BLANK.match(self._text, self._at):
                self._at = blank.end()
        found = _LINES.match(self._text, self._at)
        text = found[0] if found else ""
        self._at += len(text)
        if self._text.startswith("\\", self._at):
            self._at += 1
        command.text = encode(unescape(text)) + b"\n"

    def substitution(self, command: SedCommand) -> None:
        """An expression, what replaces it, and flags follow."""
        delimiter = self._next()
        regex = self._delimited(delimiter, "s", is_regex=True)
        replacement = self._delimited(delimiter, "s", is_regex=False)
        flags = self._flags()
        pattern = self._compile(regex, "I" in flags or "i" in flags, "M" in flags or "m" in flags)
        parsed = Replacement.parse(replacement)
        if parsed.groups > pattern.groups and pattern.regex is not None:
            raise self._error(f"invalid reference \\{parsed.groups} on `s' command's RHS")
        number = int(flags.get("0", "1"))
        constant = parsed.constant(pattern.literal) if pattern.literal is not None and number == 1 else None
        command.substitution = Substitution(pattern, parsed, "g" in flags, number, "p" in flags, constant)

    def _flags(self) -> dict[str, str]:
        """The flags of an `s`; its number goes by the name of `0`."""
        flags: dict[str, str] = {}
        while flag := self._next():
            if flag in "\n;":
                break
            if flag in "}#":
                self._at -= 1
                break
            if flag in "gp" and flag in flags:
                raise self._error(f"multiple `{flag}' options to `s' command")
            if flag in "gpiImM":
                flags[flag] = flag
            elif flag in "ew":
                raise self._error(SANDBOXED)
            elif flag in "0123456789":
                self._flag_number(flag, flags)
            elif flag not in " \t\r":
                raise self._error("unknown option to `s'")
        return flags

    def _flag_number(self, first: str, flags: dict[str, str]) -> None:
        if "0" in flags:
            raise self._error("multiple number options to `s' command")
        digits = first + self._digits()
        if not digits.strip("0"):
            raise self._error("number option to `s' command may not be zero")
        flags["0"] = digits[:9]

    def table(self, command: SedCommand) -> None:
        """Characters and those for them follow."""
        delimiter = self._next()
        source = self._delimited(delimiter, "y", is_regex=False)
        target = self._delimited(delimiter, "y", is_regex=False)
        old, new = unescape(source, keep=True), unescape(target, keep=True)
        if len(old) != len(new):
            raise self._error("strings for `y' command are different lengths")
        # Of several characters that are the same, the first counts.
        command.table = {ord(a): b for a, b in reversed([*zip(old, new, strict=True)])}
        self._end()

    # Addresses

    def _addresses(self, command: SedCommand) -> None:
        command.first = self._address(is_first=True)
        if command.first is None:
            return
        self._skip()
        if not self._text.startswith(",", self._at):
            return
        self._at += 1
        self._skip()
        command.last = self._address(is_first=False)
        if command.last is None:
            self._next()
            raise self._error("unexpected `,'")

    def _address(self, *, is_first: bool) -> LineAddress | None:
        character = self._text[self._at : self._at + 1]
        if character in ("/", "\\"):
            self._at += 1 + (character == "\\")
            return self._match_address(self._text[self._at - 1 : self._at])
        if character == "$":
            self._at += 1
            return LineAddress(AddressKind.LAST)
        if character in ("+", "~"):
            self._at += 1
            number = int(self._digits()[:18] or 0)
            if is_first:
                raise self._error("invalid usage of +N or ~N as first address")
            return LineAddress(AddressKind.PLUS if character == "+" else AddressKind.MULTIPLE, number)
        digits = self._digits()
        if not digits:
            return None
        return self._numbered_address(int(digits[:18]), is_first)

    def _numbered_address(self, number: int, is_first: bool) -> LineAddress:
        before = self._at
        self._skip()
        if not is_first or not self._text.startswith("~", self._at):
            self._at = before
            return LineAddress(AddressKind.LINE, number)
        self._at += 1
        self._skip()
        step = int(self._digits()[:18] or 0)
        return LineAddress(AddressKind.STEP, number, step) if step else LineAddress(AddressKind.LINE, number)

    def _match_address(self, delimiter: str) -> LineAddress:
        text = self._delimited(delimiter, "", is_regex=True)
        flags = ""
        while self._text[self._at : self._at + 1] in ("I", "M"):
            flags += self._next()
        return LineAddress(AddressKind.MATCH, pattern=self._compile(text, "I" in flags, "M" in flags))

    def _compile(self, text: str, ignore_case: bool, multiline: bool) -> ScriptPattern:
        if not text:
            return ScriptPattern(None)
        try:
            translation = translate(unescape(text, regex=True), self._syntax, strict=True)
            if translation.literal is None:
                self._hold(MAX_REGEX_BYTES)
            regex = compile_regex(
                translation.text, ignore_case=ignore_case, multiline=multiline, memory_bytes=MAX_REGEX_BYTES
            )
        except RegexError as error:
            if str(error).startswith("character class syntax"):
                raise ScriptError(str(error), 4) from None
            raise self._error(str(error)) from None
        literal = None if ignore_case or translation.literal is None else encode(translation.literal)
        return ScriptPattern(regex, translation.groups, literal)


_ARGUMENTS: dict[str, Callable[[_Parser, SedCommand], None]] = {
    **dict.fromkeys("=dDgGhHnNpPxzF", _Parser.no_argument),
    **dict.fromkeys("btT", _Parser.jump),
    **dict.fromkeys("aic", _Parser.lines),
    **dict.fromkeys("qQlL", _Parser.number),
    "{": _Parser.open,
    "}": _Parser.close,
    ":": _Parser.label,
    "s": _Parser.substitution,
    "y": _Parser.table,
    "r": _Parser.file,
    "v": _Parser.version,
}
"""What reads the argument of each command."""
