"""Glob patterns with `{a,b}` alternatives, as many models write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from carrel.errors import PatternError, ShellSyntaxError
from carrel.paths.glob import PATTERN_CHARACTERS, Pattern
from carrel.shell.language.ast import LiteralText, Word
from carrel.shell.language.braces import expand_braces

MAX_PATTERNS = 100
MAX_PATTERN_CHARACTERS = 16 * PATTERN_CHARACTERS
"""Of all that one stands for, since each takes time to compile and to match."""


class GlobPattern:
    """One or several patterns of `carrel.paths.glob`."""

    def __init__(self, text: str) -> None:
        """Compile *text*.

        Raises:
            PatternError: It is no pattern, or stands for too many.
        """
        self.text = text
        self.parts = _parts(text)
        """The patterns that it stands for."""
        self._patterns = [Pattern(each) for each in self.parts]
        self.anywhere = all(pattern.anywhere for pattern in self._patterns)
        """Whether it matches names, at any depth."""

    def matches(self, path: str) -> bool:
        """Whether the relative *path* matches."""
        return any(pattern.matches(path) for pattern in self._patterns)


def compile_patterns(texts: Iterable[str], check: Callable[[], None]) -> list[GlobPattern]:
    """Compile each of *texts*, unless *check* stops it.

    Raises:
        PatternError: One is no pattern, or stands for too many.
    """
    patterns: list[GlobPattern] = []
    for text in texts:
        check()
        patterns.append(GlobPattern(text))
    return patterns


def _parts(text: str) -> list[str]:
    if "{" not in text or len(text) > PATTERN_CHARACTERS:
        return [text]
    try:
        found = [
            _joined(word)
            for word in expand_braces(Word((LiteralText(text, quoted=False),), 1), max_words=MAX_PATTERNS)
        ]
    except ShellSyntaxError:
        found = []
    if not found or sum(map(len, found)) > MAX_PATTERN_CHARACTERS:
        raise PatternError(f"invalid pattern {text[:80]!r}: its braces stand for too many patterns")
    return found


def _joined(word: Word) -> str:
    return "".join(piece.text for piece in word.parts if isinstance(piece, LiteralText))
