"""The option `-k` of `sort`: parse key definitions, and extract keys from lines."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from carrel.shell.command.flags import UsageError
from carrel.shell.commands.sort.order import LETTERS, KeyFunction
from carrel.shell.text.quoting import quote_argument

_FIELD = re.compile(rb"[ \t\n]*[^ \t\n]*")
_BLANKS = re.compile(rb"[ \t\n]*")
_DIGITS = re.compile(r"[0-9]*")
_MOST = 10**9


@dataclass(frozen=True, slots=True)
class KeyPosition:
    """A place in a line, counted from 1."""

    field: int
    character: int = 0
    """0 for the whole field."""
    skips_blanks: bool = False


@dataclass(frozen=True, slots=True)
class KeyDefinition:
    """From where to where a key goes, and how it is compared."""

    start: KeyPosition
    end: KeyPosition | None = None
    letters: str = ""

    def with_letters(self, letters: str) -> KeyDefinition:
        """The same with the order of the command, for a key that has none of its own."""
        if self.letters:
            return self
        skips = "b" in letters
        end = self.end and KeyPosition(self.end.field, self.end.character, skips)
        return KeyDefinition(KeyPosition(self.start.field, self.start.character, skips), end, letters)


def parse_key_definition(text: str) -> KeyDefinition:
    """Read `F[.C][LETTERS][,F[.C][LETTERS]]`.

    Raises:
        UsageError: It is something else.
    """
    start, own, at = _position(text, 0, "invalid number at field start")
    if start.character == 0 and "." in text[:at]:
        raise _bad("character offset is zero", text)
    end, others = None, ""
    if text[at : at + 1] == ",":
        end, others, at = _position(text, at + 1, "invalid number after ','")
    if at < len(text):
        raise _bad("stray character in field spec", text)
    return KeyDefinition(start, end, own + others)


def _position(text: str, at: int, problem: str) -> tuple[KeyPosition, str, int]:
    """A position, its letters, and where the text goes on."""
    field, at = _count(text, at, problem)
    if field == 0:
        raise _bad("field number is zero", text)
    character = 0
    if text[at : at + 1] == ".":
        character, at = _count(text, at + 1, "invalid number after '.'")
    begin = at
    while at < len(text) and text[at] in LETTERS:
        at += 1
    letters = text[begin:at]
    return KeyPosition(field, character, "b" in letters), letters, at


def _count(text: str, at: int, problem: str) -> tuple[int, int]:
    found = _DIGITS.match(text, at)
    if found is None or not found[0]:
        raise UsageError(f"{problem}: invalid count at start of {quote_argument(text[at:])}", hint=False)
    return min(int(found[0][:20]), _MOST), found.end()


def _bad(problem: str, text: str) -> UsageError:
    return UsageError(f"{problem}: invalid field specification {quote_argument(text)}", hint=False)


_FIELDS_AT_ONCE = 4096
"""Fields of a line that are passed by between two looks at the budget."""


def key_reader(part: KeyDefinition, separator: bytes | None, check: Callable[[], None]) -> KeyFunction | None:
    """What takes the key out of a line; `None` if the key is the line. *check* may stop it in a long line."""
    start, end = part.start, part.end
    if start == KeyPosition(1) and end is None:
        return None
    if separator and end == start == KeyPosition(start.field) and start.field < _FIELDS_AT_ONCE:
        return _one_field(start.field, separator)

    def read(line: bytes) -> bytes:
        begin = _begin(line, start, separator, check)
        return line[begin:] if end is None else line[begin : max(begin, _end(line, end, separator, check))]

    return read


def _one_field(field: int, separator: bytes) -> KeyFunction:
    def read(line: bytes) -> bytes:
        fields = line.split(separator, field)
        return fields[field - 1] if len(fields) >= field else b""

    return read


def _begin(line: bytes, position: KeyPosition, separator: bytes | None, check: Callable[[], None]) -> int:
    at = _after_fields(line, position.field - 1, separator, check)
    if position.skips_blanks:
        at = _after_blanks(line, at)
    return min(len(line), at + max(0, position.character - 1))


def _end(line: bytes, position: KeyPosition, separator: bytes | None, check: Callable[[], None]) -> int:
    if position.character:
        at = _after_fields(line, position.field - 1, separator, check)
        if position.skips_blanks:
            at = _after_blanks(line, at)
        return min(len(line), at + position.character)
    if separator is None:
        return _after_fields(line, position.field, separator, check)
    at = _after_fields(line, position.field - 1, separator, check)
    found = line.find(separator, at)
    return len(line) if found < 0 else found


def _after_fields(line: bytes, count: int, separator: bytes | None, check: Callable[[], None]) -> int:
    """Where the field after *count* fields begins."""
    at, size = 0, len(line)
    while count and at < size:
        count -= 1
        if not count % _FIELDS_AT_ONCE:
            check()
        at = line.find(separator, at) + 1 if separator else _end_of(_FIELD, line, at)
        if at == 0:
            return size
    return at


def _after_blanks(line: bytes, at: int) -> int:
    return _end_of(_BLANKS, line, at)


def _end_of(pattern: re.Pattern[bytes], line: bytes, at: int) -> int:
    found = pattern.match(line, at)
    return found.end() if found else at
