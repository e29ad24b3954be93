"""Expand words into arguments: braces, `~`, variables, field splitting and pathname patterns."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence

from carrel.shell.budget import RECORD_BYTES, ChargeMemory
from carrel.shell.language.ast import LiteralText, ParameterExpansion, Word
from carrel.shell.language.braces import expand_braces
from carrel.shell.language.pattern import PatternSegment, is_magic

_BLANKS = re.compile(r"[ \t\n]+")

_SPECIAL = re.compile(r"[*?\[~{]")
"""Characters that may start an expansion in unquoted text."""

_WIDEST_BYTES = 4
"""Memory of a character in a string with characters beyond the basic plane."""

Lookup = Callable[[str], str]
"""Returns the value of a parameter; empty if it is unset."""


class WordExpander:
    """Expands words in one environment, in the order of POSIX, after braces."""

    def __init__(
        self,
        lookup: Lookup,
        match_names: Callable[[list[PatternSegment]], list[str]],
        charge_memory: ChargeMemory,
    ) -> None:
        """Look up parameters with *lookup* and pathnames with *match_names*.

        *charge_memory* charges values and arguments; the caller releases them.
        """
        self.charged_bytes = 0
        """Bytes charged so far."""
        self._lookup = lookup
        self._match_names = match_names
        self._charge_memory = charge_memory

    def fields(self, word: Word) -> list[str]:
        """Return the arguments that *word* expands to; none for an unquoted empty variable.

        Raises:
            ShellSyntaxError: Its braces expand to too many words.
        """
        text = word.unquoted_text
        if text is not None and not _SPECIAL.search(text):
            return [text]
        fields: list[str] = []
        for expanded in expand_braces(word, charge_memory=self._charge_memory):
            fields.extend(self._fields(expanded))
        return fields

    def _fields(self, word: Word) -> Iterator[str]:
        for segments in self._split_fields(word):
            if not is_magic(segments):
                yield self._join(segments)
                continue
            for path in self._match_names(segments):
                yield self._join([PatternSegment(self._charge_text(path), True)])

    def text(self, word: Word) -> str:
        """Return the one argument that *word* expands to where there is no splitting or matching."""
        return self._join([segment for segment, _ in self._evaluate(word)])

    def _evaluate(self, word: Word) -> Iterator[tuple[PatternSegment, bool]]:
        """Yield the value of each part, and whether field splitting applies to it."""
        for index, part in enumerate(word.parts):
            if isinstance(part, ParameterExpansion):
                yield PatternSegment(self._charge_text(self._lookup(part.name)), part.quoted), not part.quoted
            elif index == 0 and _is_tilde_prefix(part, is_whole=len(word.parts) == 1):
                yield PatternSegment(self._charge_text(self._lookup("HOME")), True), False
                yield PatternSegment(part.text[1:], False), False
            else:
                yield PatternSegment(self._charge_text(part.text), part.quoted), False

    def _charge_text(self, text: str) -> str:
        """Charge *text* before it becomes part of an argument, and return it."""
        self._charge(sys.getsizeof(text))
        return text

    def _join(self, segments: Sequence[PatternSegment]) -> str:
        if not all(text.isascii() for text, _ in segments):
            # One wide character widens all others of the string.
            self._charge(_WIDEST_BYTES * sum(len(text) for text, _ in segments))
        self._charge(RECORD_BYTES)
        return "".join(text for text, _ in segments)

    def _charge(self, count: int) -> None:
        self._charge_memory(count)
        self.charged_bytes += count

    def _split_fields(self, word: Word) -> Iterator[list[PatternSegment]]:
        """Yield the fields of a word; blanks separate them in the value of an unquoted variable."""
        current: list[PatternSegment] = []
        for segment, splits in self._evaluate(word):
            text, offset = segment.text, 0
            for blank in _BLANKS.finditer(text) if splits else ():
                if blank.start() > offset:
                    current.append(PatternSegment(text[offset : blank.start()], False))
                if current:
                    yield current
                current = []
                offset = blank.end()
            if offset < len(text) or segment.quoted:
                current.append(PatternSegment(text[offset:], segment.quoted))
        if current:
            yield current


def _is_tilde_prefix(part: LiteralText, *, is_whole: bool) -> bool:
    return not part.quoted and (part.text.startswith("~/") or (part.text == "~" and is_whole))


def variable_lookup(variables: Mapping[str, str], status: int) -> Lookup:
    """Return a lookup in *variables*, and of `?` as the last exit *status*."""

    def lookup(name: str) -> str:
        return str(status) if name == "?" else variables.get(name, "")

    return lookup
