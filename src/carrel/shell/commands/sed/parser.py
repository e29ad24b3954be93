"""Parse a `sed` script into a list of commands."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from carrel.shell.budget import ChargeMemory, charge_nothing
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
"""Commands that run programs or write other files."""
_BLANK_LINE = re.compile(r"[ \t]*\n")
_TEXT = re.compile(r"(?:[^\\\n]|\\.)*", re.DOTALL)
SANDBOX_ERROR = "e/r/w commands disabled in sandbox mode"


def parse(
    fragments: Sequence[ScriptFragment],
    *,
    extended: bool,
    sandbox: bool,
    charge_memory: ChargeMemory = charge_nothing,
) -> list[SedCommand]:
    """Parse a script; *charge_memory* charges the memory that its expressions may take.

    Raises:
        ScriptError: The script is invalid.
    """
    parser = _ScriptParser(Syntax.EXTENDED if extended else Syntax.BASIC, sandbox, charge_memory)
    for number, fragment in _number_fragments(fragments):
        parser.parse_fragment(fragment, number)
    return parser.finish()


def _number_fragments(fragments: Iterable[ScriptFragment]) -> Iterable[tuple[int, ScriptFragment]]:
    """Number the fragments of `-e`; a fragment that ends in a backslash continues in the next one."""
    number, continued = 0, ""
    for fragment in fragments:
        number += fragment.file is None
        text = continued + fragment.text
        backslashes = len(text) - len(text.rstrip("\\"))
        continued = ""
        if backslashes % 2 and fragment.file is None:
            continued = text + "\n"
            continue
        yield number, ScriptFragment(text, fragment.file)
    if continued:
        yield number, ScriptFragment(continued[:-1])


class _ScriptParser(Scanner):
    """Parses a script, fragment by fragment; one method for each kind of argument."""

    def __init__(self, syntax: Syntax, sandbox: bool, charge_memory: ChargeMemory) -> None:
        super().__init__()
        self._charge_memory = charge_memory
        self._syntax = syntax
        self._sandbox = sandbox
        self._commands: list[SedCommand] = []
        self._blocks: list[int] = []
        self._labels: dict[str, int] = {}

    def parse_fragment(self, fragment: ScriptFragment, number: int) -> None:
        """Parse the commands of one fragment."""
        self._start_fragment(fragment, number)
        while self._skip(" \t\n;\r"):
            self._parse_command()

    def finish(self) -> list[SedCommand]:
        """Resolve labels and return all commands, once the script is complete."""
        if self._blocks:
            self._offset = 0
            raise self._error("unmatched `{'")
        for command in self._commands:
            if command.name in "btT":
                if command.label and command.label not in self._labels:
                    raise ScriptError(f"can't find label for jump to `{command.label}'", 4)
                command.target = self._labels.get(command.label, len(self._commands))
        return self._commands

    # Commands

    def _parse_command(self) -> None:
        command = SedCommand("")
        self._parse_addresses(command)
        self._skip()
        while self._text.startswith("!", self._offset):
            self._offset += 1
            if command.negated:
                raise self._error("multiple `!'s")
            command.negated = True
            self._skip()
        command.name = self._read_character()
        if not command.name or command.name in "\n;":
            raise self._error("missing command")
        self._require_valid_addresses(command)
        self._parse_argument(command)

    def _require_valid_addresses(self, command: SedCommand) -> None:
        first, last, name = command.first, command.last, command.name
        if first is not None and first.kind is AddressKind.LINE and not first.number:
            if last is None or last.kind is not AddressKind.MATCH:
                raise self._error("invalid usage of line address 0")
            command.starts_active = True
        if first is None:
            return
        if name == "#":
            raise self._error("comments don't accept any addresses")
        if name == ":":
            raise self._error(": doesn't want any addresses")
        if name in ONE_ADDRESS and last is not None:
            raise self._error("command only uses one address")

    def _parse_argument(self, command: SedCommand) -> None:
        name = command.name
        if name == "#":
            end = self._text.find("\n", self._offset)
            self._offset = len(self._text) if end < 0 else end
            return
        if name in REFUSED or (name == "r" and self._sandbox):
            raise self._error(SANDBOX_ERROR)
        parse_argument = _ARGUMENTS.get(name)
        if parse_argument is None:
            raise self._error(f"unknown command: `{name}'")
        parse_argument(self, command)
        self._commands.append(command)

    def parse_nothing(self, command: SedCommand) -> None:
        """Parse no argument."""
        self._require_end()

    def parse_branch(self, command: SedCommand) -> None:
        """Parse an optional label to branch to."""
        command.label = self._read_word(" \t\n\r;}")
        self._require_end()

    def parse_number(self, command: SedCommand) -> None:
        """Parse an optional number."""
        self._skip()
        command.number = int(digits[:9]) if (digits := self._read_digits()) else None
        self._require_end()

    def parse_version(self, command: SedCommand) -> None:
        """Parse an optional version, which is ignored."""
        self._read_word(" \t\n\r;}")

    def open_block(self, command: SedCommand) -> None:
        """Open a block."""
        self._blocks.append(len(self._commands))

    def close_block(self, command: SedCommand) -> None:
        """Close a block."""
        if not self._blocks or command.first is not None:
            raise self._error("unexpected `}'")
        self._commands[self._blocks.pop()].target = len(self._commands) + 1
        self._require_end()

    def parse_label(self, command: SedCommand) -> None:
        """Parse a label."""
        label = self._read_word(" \t\n\r;")
        if not label:
            raise self._error('":" lacks a label')
        self._labels.setdefault(label, len(self._commands))

    def parse_file(self, command: SedCommand) -> None:
        """Parse a file name up to the end of the line."""
        self._skip()
        end = self._text.find("\n", self._offset)
        start, self._offset = self._offset, len(self._text) if end < 0 else end
        if start == self._offset:
            raise self._error("missing filename in r/R/w/W commands")
        command.text = encode(self._text[start : self._offset])

    def parse_text(self, command: SedCommand) -> None:
        """Parse text up to a newline without a backslash."""
        if not self._skip():
            raise self._error("expected \\ after `a', `c' or `i'")
        if self._text.startswith("\\", self._offset):
            self._offset += 1
            if self._offset == len(self._text):
                return
            if blank := _BLANK_LINE.match(self._text, self._offset):
                self._offset = blank.end()
        match = _TEXT.match(self._text, self._offset)
        text = match[0] if match else ""
        self._offset += len(text)
        if self._text.startswith("\\", self._offset):
            self._offset += 1
        command.text = encode(unescape(text)) + b"\n"

    def parse_substitution(self, command: SedCommand) -> None:
        """Parse a regular expression, its replacement and the flags."""
        delimiter = self._read_character()
        regex = self._read_delimited(delimiter, "s", is_regex=True)
        replacement = self._read_delimited(delimiter, "s", is_regex=False)
        flags = self._parse_flags()
        pattern = self._compile(regex, "I" in flags or "i" in flags, "M" in flags or "m" in flags)
        parsed = Replacement.parse(replacement)
        if parsed.groups > pattern.groups and pattern.regex is not None:
            raise self._error(f"invalid reference \\{parsed.groups} on `s' command's RHS")
        number = int(flags.get("0", "1"))
        constant = parsed.constant(pattern.literal) if pattern.literal is not None and number == 1 else None
        command.substitution = Substitution(pattern, parsed, "g" in flags, number, "p" in flags, constant)

    def _parse_flags(self) -> dict[str, str]:
        """Parse the flags of `s`; its number has the key `0`."""
        flags: dict[str, str] = {}
        while flag := self._read_character():
            if flag in "\n;":
                break
            if flag in "}#":
                self._offset -= 1
                break
            if flag in "gp" and flag in flags:
                raise self._error(f"multiple `{flag}' options to `s' command")
            if flag in "gpiImM":
                flags[flag] = flag
            elif flag in "ew":
                raise self._error(SANDBOX_ERROR)
            elif flag in "0123456789":
                self._parse_flag_number(flag, flags)
            elif flag not in " \t\r":
                raise self._error("unknown option to `s'")
        return flags

    def _parse_flag_number(self, first: str, flags: dict[str, str]) -> None:
        if "0" in flags:
            raise self._error("multiple number options to `s' command")
        digits = first + self._read_digits()
        if not digits.strip("0"):
            raise self._error("number option to `s' command may not be zero")
        flags["0"] = digits[:9]

    def parse_table(self, command: SedCommand) -> None:
        """Parse the characters of `y` and those that replace them."""
        delimiter = self._read_character()
        source = self._read_delimited(delimiter, "y", is_regex=False)
        target = self._read_delimited(delimiter, "y", is_regex=False)
        old, new = unescape(source, keep=True), unescape(target, keep=True)
        if len(old) != len(new):
            raise self._error("strings for `y' command are different lengths")
        # Of repeated characters, the first one counts.
        command.table = {ord(a): b for a, b in reversed([*zip(old, new, strict=True)])}
        self._require_end()

    # Addresses

    def _parse_addresses(self, command: SedCommand) -> None:
        command.first = self._parse_address(is_first=True)
        if command.first is None:
            return
        self._skip()
        if not self._text.startswith(",", self._offset):
            return
        self._offset += 1
        self._skip()
        command.last = self._parse_address(is_first=False)
        if command.last is None:
            self._read_character()
            raise self._error("unexpected `,'")

    def _parse_address(self, *, is_first: bool) -> LineAddress | None:
        character = self._text[self._offset : self._offset + 1]
        if character in ("/", "\\"):
            self._offset += 1 + (character == "\\")
            return self._parse_regex_address(self._text[self._offset - 1 : self._offset])
        if character == "$":
            self._offset += 1
            return LineAddress(AddressKind.LAST)
        if character in ("+", "~"):
            self._offset += 1
            number = int(self._read_digits()[:18] or 0)
            if is_first:
                raise self._error("invalid usage of +N or ~N as first address")
            return LineAddress(AddressKind.PLUS if character == "+" else AddressKind.MULTIPLE, number)
        digits = self._read_digits()
        if not digits:
            return None
        return self._parse_number_address(int(digits[:18]), is_first)

    def _parse_number_address(self, number: int, is_first: bool) -> LineAddress:
        offset = self._offset
        self._skip()
        if not is_first or not self._text.startswith("~", self._offset):
            self._offset = offset
            return LineAddress(AddressKind.LINE, number)
        self._offset += 1
        self._skip()
        step = int(self._read_digits()[:18] or 0)
        return LineAddress(AddressKind.STEP, number, step) if step else LineAddress(AddressKind.LINE, number)

    def _parse_regex_address(self, delimiter: str) -> LineAddress:
        text = self._read_delimited(delimiter, "", is_regex=True)
        flags = ""
        while self._text[self._offset : self._offset + 1] in ("I", "M"):
            flags += self._read_character()
        return LineAddress(AddressKind.MATCH, pattern=self._compile(text, "I" in flags, "M" in flags))

    def _compile(self, text: str, ignore_case: bool, multiline: bool) -> ScriptPattern:
        if not text:
            return ScriptPattern(None)
        try:
            translation = translate(unescape(text, regex=True), self._syntax, strict=True)
            if translation.literal is None:
                self._charge_memory(MAX_REGEX_BYTES)
            regex = compile_regex(
                translation.text, ignore_case=ignore_case, multiline=multiline, memory_bytes=MAX_REGEX_BYTES
            )
        except RegexError as error:
            if str(error).startswith("character class syntax"):
                raise ScriptError(str(error), 4) from None
            raise self._error(str(error)) from None
        literal = None if ignore_case or translation.literal is None else encode(translation.literal)
        return ScriptPattern(regex, translation.groups, literal)


_ARGUMENTS: dict[str, Callable[[_ScriptParser, SedCommand], None]] = {
    **dict.fromkeys("=dDgGhHnNpPxzF", _ScriptParser.parse_nothing),
    **dict.fromkeys("btT", _ScriptParser.parse_branch),
    **dict.fromkeys("aic", _ScriptParser.parse_text),
    **dict.fromkeys("qQlL", _ScriptParser.parse_number),
    "{": _ScriptParser.open_block,
    "}": _ScriptParser.close_block,
    ":": _ScriptParser.parse_label,
    "s": _ScriptParser.parse_substitution,
    "y": _ScriptParser.parse_table,
    "r": _ScriptParser.parse_file,
    "v": _ScriptParser.parse_version,
}
"""Method that parses the argument of each command."""
