"""Glob patterns with `{a,b}` alternatives, as many models write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from carrel.errors import PatternError, ShellSyntaxError
from carrel.paths.glob import PATTERN_CHARACTERS, Pattern
from carrel.shell.language.ast import LiteralText, Word
from carrel.shell.language.braces import expand_braces

MAX_PATTERNS = 100
MAX_PATTERN_CHARACTERS = 16 * PATTERN_CHARACTERS
"""Total length of the patterns that braces expand to, because each takes time to compile and match."""


class GlobPattern:
    """A glob pattern, expanded to one or more patterns of `carrel.paths.glob`."""

    def __init__(self, text: str) -> None:
        """Compile *text*.

        Raises:
            PatternError: The pattern is not valid, or expands to too many.
        """
        self.text = text
        self.parts = _expand(text)
        """The patterns that the braces expand to."""
        self._patterns = [Pattern(each) for each in self.parts]
        self.anywhere = all(pattern.anywhere for pattern in self._patterns)
        """Whether it matches names at any depth."""

    def matches(self, path: str) -> bool:
        """Whether the relative *path* matches."""
        return any(pattern.matches(path) for pattern in self._patterns)


def compile_patterns(texts: Iterable[str], check: Callable[[], None]) -> list[GlobPattern]:
    """Compile each of *texts*, calling *check* between them.

    Raises:
        PatternError: A pattern is not valid, or expands to too many.
    """
    patterns: list[GlobPattern] = []
    for text in texts:
        check()
        patterns.append(GlobPattern(text))
    return patterns


def _expand(text: str) -> list[str]:
    if "{" not in text or len(text) > PATTERN_CHARACTERS:
        return [text]
    try:
        found = [
            _join(word)
            for word in expand_braces(Word((LiteralText(text, quoted=False),), 1), max_words=MAX_PATTERNS)
        ]
    except ShellSyntaxError:
        found = []
    if not found or sum(map(len, found)) > MAX_PATTERN_CHARACTERS:
        raise PatternError(f"invalid pattern {text[:80]!r}: its braces expand to too many patterns")
    return found


def _join(word: Word) -> str:
    return "".join(piece.text for piece in word.parts if isinstance(piece, LiteralText))
