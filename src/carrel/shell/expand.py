"""Turn words into arguments: `~`, variables and patterns, all from the session's own variables and files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from carrel.shell.braces import braced
from carrel.shell.pattern import Segment, is_magic
from carrel.shell.word import Text, Variable, Word

_BLANKS = re.compile(r"[ \t\n]+")

_SPECIAL = re.compile(r"[*?\[~{]")
"""Without these, a word with nothing quoted stands for itself."""

Lookup = Callable[[str], str]
"""The value of a variable; empty, if it has none."""


class Expansion:
    """Expands words in one environment."""

    def __init__(
        self,
        lookup: Lookup,
        match: Callable[[list[Segment]], list[str]],
        hold: Callable[[int], object],
    ) -> None:
        """Look up variables by *lookup*, and names by *match*.

        *hold* is told how long each value is before it is used.
        """
        self.held = 0
        """How long all values were."""
        self._lookup = lookup
        self._match = match
        self._hold = hold

    def fields(self, word: Word) -> list[str]:
        """The arguments that *word* stands for; none, if it is an empty variable.

        Raises:
            ShellSyntaxError: It has braces that stand for too much.
        """
        plain = word.plain
        if plain is not None and not _SPECIAL.search(plain):
            return [plain]
        return [argument for each in braced(word) for argument in self._fields(each)]

    def _fields(self, word: Word) -> list[str]:
        found: list[str] = []
        for segments in self._split(word):
            if is_magic(segments):
                found.extend(self._match(segments))
            else:
                found.append("".join(text for text, _ in segments))
        return found

    def text(self, word: Word) -> str:
        """The one argument that *word* stands for where nothing is split or matched."""
        return "".join(segment.text for segment, _ in self._segments(word))

    def _segments(self, word: Word) -> Iterator[tuple[Segment, bool]]:
        """The pieces with their values, and whether each is yet to be split."""
        for at, piece in enumerate(word.pieces):
            if isinstance(piece, Variable):
                yield Segment(self._value(piece.name), piece.quoted), not piece.quoted
            elif at == 0 and _is_home(piece, is_whole=len(word.pieces) == 1):
                yield Segment(self._value("HOME"), True), False
                yield Segment(piece.text[1:], False), False
            else:
                yield Segment(piece.text, piece.quoted), False

    def _value(self, name: str) -> str:
        value = self._lookup(name)
        self._hold(len(value))
        self.held += len(value)
        return value

    def _split(self, word: Word) -> Iterator[list[Segment]]:
        """The fields of a word: a variable that is not quoted ends one at each blank."""
        current: list[Segment] = []
        for segment, splits in self._segments(word):
            parts = _BLANKS.split(segment.text) if splits else [segment.text]
            for part in parts[:-1]:
                if part:
                    current.append(Segment(part, False))
                if current:
                    yield current
                current = []
            if parts[-1] or segment.quoted:
                current.append(Segment(parts[-1], segment.quoted))
        if current:
            yield current


def _is_home(piece: Text, *, is_whole: bool) -> bool:
    return not piece.quoted and (piece.text.startswith("~/") or (piece.text == "~" and is_whole))


def environment(variables: Mapping[str, str], status: int) -> Lookup:
    """Look up variables in the session's own environment, and `?` for the last status."""

    def lookup(name: str) -> str:
        return str(status) if name == "?" else variables.get(name, "")

    return lookup
