"""Syntax tree of a command line: words with their quoted parts and expansions, and operator tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class LiteralText(NamedTuple):
    """Characters that stand for themselves; those not quoted may be a pattern or `~`."""

    text: str
    quoted: bool


class ParameterExpansion(NamedTuple):
    """The value of a variable; not quoted, it is split into fields."""

    name: str
    quoted: bool


WordPart = LiteralText | ParameterExpansion


@dataclass(frozen=True, slots=True)
class Word:
    """One word, and where it stands in the command line, counted from 1."""

    parts: tuple[WordPart, ...]
    position: int

    @property
    def unquoted_text(self) -> str | None:
        """Its text, if nothing in it is quoted or to be expanded."""
        if len(self.parts) == 1 and isinstance(self.parts[0], LiteralText) and not self.parts[0].quoted:
            return self.parts[0].text
        return None


@dataclass(frozen=True, slots=True)
class OperatorToken:
    """A sign between words."""

    text: str
    position: int


Token = Word | OperatorToken
