"""Syntax tree of a command line.

The lexer makes `Word` and `OperatorToken`, both with their position; the parser makes the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class LiteralText(NamedTuple):
    """Literal characters; unquoted ones may still be a pattern, braces or `~`."""

    text: str
    quoted: bool


class ParameterExpansion(NamedTuple):
    """The value of a parameter; unless quoted, it is split into fields."""

    name: str
    quoted: bool


WordPart = LiteralText | ParameterExpansion


@dataclass(frozen=True, slots=True)
class Word:
    """One word."""

    parts: tuple[WordPart, ...]
    position: int
    """Character of the command line where the word begins, counted from 1."""

    @property
    def unquoted_text(self) -> str | None:
        """The text of a word without quotes and parameters; otherwise `None`."""
        if len(self.parts) == 1 and isinstance(self.parts[0], LiteralText) and not self.parts[0].quoted:
            return self.parts[0].text
        return None


@dataclass(frozen=True, slots=True)
class OperatorToken:
    """A control or redirection operator, or a newline."""

    text: str
    """As written; a redirection includes the number of its stream."""
    position: int
    """Character of the command line where the operator begins, counted from 1."""


Token = Word | OperatorToken


class Connector(StrEnum):
    """Operator between two pipelines: decides whether the second one runs."""

    ALWAYS = ";"
    AND = "&&"
    OR = "||"


@dataclass(frozen=True, slots=True)
class Redirect:
    """One redirection of a command."""

    stream: int
    """Number of the redirected stream: 0, 1 or 2."""
    operator: str
    """`<`, `>` or `>>` for a file, `>&` for another stream."""
    target: Word
    """Path of the file, or number of the stream."""


@dataclass(frozen=True, slots=True)
class SimpleCommand:
    """A command without its expansions done: assignments, words and redirections, each in order."""

    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands joined by `|`."""

    commands: tuple[SimpleCommand, ...]
    connector: Connector
    """Operator before the pipeline; `ALWAYS` for the first one."""
    negated: bool
    """Whether `!` inverts the exit status."""
