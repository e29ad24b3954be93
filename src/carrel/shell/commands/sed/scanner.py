"""Read a `sed` script character by character, and keep the position for error messages."""

from __future__ import annotations

from typing import NamedTuple

from carrel.shell.commands.sed.script import ScriptError


class ScriptFragment(NamedTuple):
    """Part of a script: the value of an `-e`, or a file."""

    text: str
    file: str | None = None


class Scanner:
    """Goes through the pieces of a script, and knows where it is."""

    def __init__(self) -> None:
        self._piece = ScriptFragment("")
        self._number = 0
        self._text = ""
        self._at = 0

    def _begin(self, piece: ScriptFragment, number: int) -> None:
        """Go on with another piece."""
        self._piece, self._number, self._text, self._at = piece, number, piece.text, 0

    def _error(self, problem: str) -> ScriptError:
        if self._piece.file is None:
            where = f"-e expression #{self._number}, char {self._at}"
        else:
            where = f"file {self._piece.file} line {self._text.count(chr(10), 0, max(self._at - 1, 0)) + 1}"
        return ScriptError(f"{where}: {problem}")

    def _next(self) -> str:
        """The next character, which is gone past; empty at the end."""
        character = self._text[self._at : self._at + 1]
        self._at += len(character)
        return character

    def _skip(self, characters: str = " \t") -> bool:
        """Go past *characters*; whether anything is left."""
        while self._at < len(self._text) and self._text[self._at] in characters:
            self._at += 1
        return self._at < len(self._text)

    def _digits(self) -> str:
        start = self._at
        while self._text[self._at : self._at + 1] in tuple("0123456789"):
            self._at += 1
        return self._text[start : self._at]

    def _end(self) -> None:
        """A command must end here."""
        self._skip()
        following = self._text[self._at : self._at + 1]
        if following not in ("", "\n", ";", "}", "#", "\r"):
            self._at += 1
            raise self._error("extra characters after command")

    def _word(self, ends: str) -> str:
        self._skip()
        start = self._at
        while self._at < len(self._text) and self._text[self._at] not in ends:
            self._at += 1
        return self._text[start : self._at]

    def _delimited(self, delimiter: str, name: str, *, is_regex: bool) -> str:
        """What stands before the next *delimiter*; in brackets of an expression it is none."""
        parts: list[str] = []
        while (character := self._next()) != delimiter or not character:
            if not character or (character == "\n" and name == "s"):
                self._at -= bool(character)
                raise self._error(f"unterminated `{name}' command" if name else "unterminated address regex")
            if character == "\\":
                following = self._next()
                if following == delimiter and not (following == "n" or (not is_regex and following == "&")):
                    character = ""
                character += following
            elif character == "[" and is_regex:
                end = _bracket_end(self._text, self._at)
                character, self._at = self._text[self._at - 1 : end], end
            parts.append(character)
        return "".join(parts)


def _bracket_end(text: str, at: int) -> int:
    """Where the bracket expression ends whose `[` ends at *at*; the end of *text* if it has none."""
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
