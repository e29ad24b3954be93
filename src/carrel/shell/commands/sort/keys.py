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
_MAX_COUNT = 10**9


@dataclass(frozen=True, slots=True)
class KeyPosition:
    """A position in a line, counted from 1."""

    field: int
    character: int = 0
    """0 for the start or the end of the field."""
    skips_blanks: bool = False


@dataclass(frozen=True, slots=True)
class KeyDefinition:
    """Start and end of a key, and the letters of its ordering."""

    start: KeyPosition
    end: KeyPosition | None = None
    letters: str = ""

    def with_letters(self, letters: str) -> KeyDefinition:
        """Return the definition with the ordering of the command, unless it has its own."""
        if self.letters:
            return self
        skips = "b" in letters
        end = self.end and KeyPosition(self.end.field, self.end.character, skips)
        return KeyDefinition(KeyPosition(self.start.field, self.start.character, skips), end, letters)


def parse_key_definition(text: str) -> KeyDefinition:
    """Parse `F[.C][LETTERS][,F[.C][LETTERS]]`.

    Raises:
        UsageError: The text has another form.
    """
    start, start_letters, at = _parse_position(text, 0, "invalid number at field start")
    if start.character == 0 and "." in text[:at]:
        raise _invalid_field_error("character offset is zero", text)
    end, end_letters = None, ""
    if text[at : at + 1] == ",":
        end, end_letters, at = _parse_position(text, at + 1, "invalid number after ','")
    if at < len(text):
        raise _invalid_field_error("stray character in field spec", text)
    return KeyDefinition(start, end, start_letters + end_letters)


def _parse_position(text: str, at: int, problem: str) -> tuple[KeyPosition, str, int]:
    """Parse a position; return it, its letters and the offset after them."""
    field, at = _parse_count(text, at, problem)
    if field == 0:
        raise _invalid_field_error("field number is zero", text)
    character = 0
    if text[at : at + 1] == ".":
        character, at = _parse_count(text, at + 1, "invalid number after '.'")
    first = at
    while at < len(text) and text[at] in LETTERS:
        at += 1
    letters = text[first:at]
    return KeyPosition(field, character, "b" in letters), letters, at


def _parse_count(text: str, at: int, problem: str) -> tuple[int, int]:
    match = _DIGITS.match(text, at)
    if match is None or not match[0]:
        raise UsageError(f"{problem}: invalid count at start of {quote_argument(text[at:])}", hint=False)
    return min(int(match[0][:20]), _MAX_COUNT), match.end()


def _invalid_field_error(problem: str, text: str) -> UsageError:
    return UsageError(f"{problem}: invalid field specification {quote_argument(text)}", hint=False)


_FIELDS_AT_ONCE = 4096
"""Fields skipped between two checks of the meter."""


def key_reader(
    definition: KeyDefinition, separator: bytes | None, check: Callable[[], None]
) -> KeyFunction | None:
    """Return a function that extracts the key; `None` if the key is the line. *check* may stop it."""
    start, end = definition.start, definition.end
    if start == KeyPosition(1) and end is None:
        return None
    if separator and end == start == KeyPosition(start.field) and start.field < _FIELDS_AT_ONCE:
        return _single_field_reader(start.field, separator)

    def read(line: bytes) -> bytes:
        start_offset = _start_offset(line, start, separator, check)
        return (
            line[start_offset:]
            if end is None
            else line[start_offset : max(start_offset, _end_offset(line, end, separator, check))]
        )

    return read


def _single_field_reader(field: int, separator: bytes) -> KeyFunction:
    def read(line: bytes) -> bytes:
        fields = line.split(separator, field)
        return fields[field - 1] if len(fields) >= field else b""

    return read


def _start_offset(
    line: bytes, position: KeyPosition, separator: bytes | None, check: Callable[[], None]
) -> int:
    at = _skip_fields(line, position.field - 1, separator, check)
    if position.skips_blanks:
        at = _skip_blanks(line, at)
    return min(len(line), at + max(0, position.character - 1))


def _end_offset(
    line: bytes, position: KeyPosition, separator: bytes | None, check: Callable[[], None]
) -> int:
    if position.character:
        at = _skip_fields(line, position.field - 1, separator, check)
        if position.skips_blanks:
            at = _skip_blanks(line, at)
        return min(len(line), at + position.character)
    if separator is None:
        return _skip_fields(line, position.field, separator, check)
    at = _skip_fields(line, position.field - 1, separator, check)
    end = line.find(separator, at)
    return len(line) if end < 0 else end


def _skip_fields(line: bytes, count: int, separator: bytes | None, check: Callable[[], None]) -> int:
    """Return the offset of the field after *count* fields."""
    at, size = 0, len(line)
    while count and at < size:
        count -= 1
        if not count % _FIELDS_AT_ONCE:
            check()
        at = line.find(separator, at) + 1 if separator else _match_end(_FIELD, line, at)
        if at == 0:
            return size
    return at


def _skip_blanks(line: bytes, at: int) -> int:
    return _match_end(_BLANKS, line, at)


def _match_end(pattern: re.Pattern[bytes], line: bytes, at: int) -> int:
    match = pattern.match(line, at)
    return match.end() if match else at
