"""Expand words into arguments: braces, `~`, variables, field splitting and pathname patterns."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from carrel.shell.budget import RECORD_BYTES
from carrel.shell.language.ast import LiteralText, ParameterExpansion, Word
from carrel.shell.language.braces import expand_braces
from carrel.shell.language.pattern import PatternSegment, is_magic

_BLANKS = re.compile(r"[ \t\n]+")

_SPECIAL = re.compile(r"[*?\[~{]")
"""Without these, a word with nothing quoted stands for itself."""

_WIDEST_BYTES = 4
"""Memory that a character takes in a text with characters beyond the basic plane."""

Lookup = Callable[[str], str]
"""The value of a variable; empty, if it has none."""


class WordExpander:
    """Expands words in one environment."""

    def __init__(
        self,
        lookup: Lookup,
        match: Callable[[list[PatternSegment]], list[str]],
        charge_memory: Callable[[int], object],
    ) -> None:
        """Look up variables by *lookup*, and names by *match*.

        *hold* charges values and arguments.
        """
        self.held = 0
        """Bytes charged so far."""
        self._lookup = lookup
        self._match = match
        self._hold = charge_memory

    def fields(self, word: Word) -> list[str]:
        """The arguments that *word* stands for; none, if it is an empty variable.

        Raises:
            ShellSyntaxError: It has braces that stand for too much.
        """
        text = word.unquoted_text
        if text is not None and not _SPECIAL.search(text):
            return [text]
        found: list[str] = []
        for each in expand_braces(word, charge_memory=self._hold):
            found.extend(self._fields(each))
        return found

    def _fields(self, word: Word) -> Iterator[str]:
        for segments in self._split(word):
            if not is_magic(segments):
                yield self._joined(segments)
                continue
            for path in self._match(segments):
                yield self._joined([PatternSegment(self._charged(path), True)])

    def text(self, word: Word) -> str:
        """The one argument that *word* stands for where nothing is split or matched."""
        return self._joined([segment for segment, _ in self._segments(word)])

    def _segments(self, word: Word) -> Iterator[tuple[PatternSegment, bool]]:
        """The pieces with their values, and whether each is yet to be split."""
        for at, piece in enumerate(word.parts):
            if isinstance(piece, ParameterExpansion):
                yield PatternSegment(self._charged(self._lookup(piece.name)), piece.quoted), not piece.quoted
            elif at == 0 and _is_home(piece, is_whole=len(word.parts) == 1):
                yield PatternSegment(self._charged(self._lookup("HOME")), True), False
                yield PatternSegment(piece.text[1:], False), False
            else:
                yield PatternSegment(self._charged(piece.text), piece.quoted), False

    def _charged(self, text: str) -> str:
        """The text of a piece, charged for before it becomes part of an argument."""
        self._charge(sys.getsizeof(text))
        return text

    def _joined(self, segments: Sequence[PatternSegment]) -> str:
        if not all(text.isascii() for text, _ in segments):
            # One wide character makes all others of an argument as wide.
            self._charge(_WIDEST_BYTES * sum(len(text) for text, _ in segments))
        self._charge(RECORD_BYTES)
        return "".join(text for text, _ in segments)

    def _charge(self, count: int) -> None:
        self._hold(count)
        self.held += count

    def _split(self, word: Word) -> Iterator[list[PatternSegment]]:
        """The fields of a word: a variable that is not quoted ends one at each blank."""
        current: list[PatternSegment] = []
        for segment, splits in self._segments(word):
            text, at = segment.text, 0
            for blank in _BLANKS.finditer(text) if splits else ():
                if blank.start() > at:
                    current.append(PatternSegment(text[at : blank.start()], False))
                if current:
                    yield current
                current = []
                at = blank.end()
            if at < len(text) or segment.quoted:
                current.append(PatternSegment(text[at:], segment.quoted))
        if current:
            yield current


def _is_home(piece: LiteralText, *, is_whole: bool) -> bool:
    return not piece.quoted and (piece.text.startswith("~/") or (piece.text == "~" and is_whole))


def variable_lookup(variables: Mapping[str, str], status: int) -> Lookup:
    """Look up variables in the session's own environment, and `?` for the last status."""

    def lookup(name: str) -> str:
        return str(status) if name == "?" else variables.get(name, "")

    return lookup
