"""Read a `sed` script character by character, and keep the position for error messages."""

from __future__ import annotations

from typing import NamedTuple

from carrel.shell.commands.sed.script import ScriptError


class ScriptFragment(NamedTuple):
    """Part of a script: the value of an `-e` option, or a file."""

    text: str
    file: str | None = None


class Scanner:
    """Reads the fragments of a script, and keeps track of the position."""

    def __init__(self) -> None:
        self._fragment = ScriptFragment("")
        self._number = 0
        self._text = ""
        self._offset = 0

    def _start_fragment(self, fragment: ScriptFragment, number: int) -> None:
        """Start reading another fragment."""
        self._fragment, self._number, self._text, self._offset = fragment, number, fragment.text, 0

    def _error(self, problem: str) -> ScriptError:
        if self._fragment.file is None:
            location = f"-e expression #{self._number}, char {self._offset}"
        else:
            line = self._text.count("\n", 0, max(self._offset - 1, 0)) + 1
            location = f"file {self._fragment.file} line {line}"
        return ScriptError(f"{location}: {problem}")

    def _read_character(self) -> str:
        """Consume the next character and return it; empty at the end."""
        character = self._text[self._offset : self._offset + 1]
        self._offset += len(character)
        return character

    def _skip(self, characters: str = " \t") -> bool:
        """Skip *characters*, and return whether anything is left."""
        while self._offset < len(self._text) and self._text[self._offset] in characters:
            self._offset += 1
        return self._offset < len(self._text)

    def _read_digits(self) -> str:
        start = self._offset
        while self._text[self._offset : self._offset + 1] in tuple("0123456789"):
            self._offset += 1
        return self._text[start : self._offset]

    def _require_end(self) -> None:
        """Require the end of the command."""
        self._skip()
        following = self._text[self._offset : self._offset + 1]
        if following not in ("", "\n", ";", "}", "#", "\r"):
            self._offset += 1
            raise self._error("extra characters after command")

    def _read_word(self, delimiters: str) -> str:
        self._skip()
        start = self._offset
        while self._offset < len(self._text) and self._text[self._offset] not in delimiters:
            self._offset += 1
        return self._text[start : self._offset]

    def _read_delimited(self, delimiter: str, name: str, *, is_regex: bool) -> str:
        """Read up to the next *delimiter*, ignoring those in bracket expressions of a regular expression."""
        parts: list[str] = []
        while (character := self._read_character()) != delimiter or not character:
            if not character or (character == "\n" and name == "s"):
                self._offset -= bool(character)
                raise self._error(f"unterminated `{name}' command" if name else "unterminated address regex")
            if character == "\\":
                following = self._read_character()
                if following == delimiter and not (following == "n" or (not is_regex and following == "&")):
                    character = ""
                character += following
            elif character == "[" and is_regex:
                end = _bracket_end(self._text, self._offset)
                character, self._offset = self._text[self._offset - 1 : end], end
            parts.append(character)
        return "".join(parts)


def _bracket_end(text: str, at: int) -> int:
    """Return the end of the bracket expression whose `[` ends at *at*; of *text* if it is not closed."""
    at += text.startswith("^", at)
    at += text.startswith("]", at)
    while at < len(text) and text[at] not in "]\n":
        sign = text[at + 1 : at + 2]
        if text[at] == "[" and sign in (".", ":", "="):
            at = text.find(f"{sign}]", at + 2) + 1
            if not at:
                return len(text)
        at += 1
    return at + 1 if text.startswith("]", at) else len(text)
