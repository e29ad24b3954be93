"""The commands of a script of `sed`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from carrel.shell.regex import Regex
from carrel.shell.sed_replacement import Replacement


class ScriptError(Exception):
    """The script is wrong; the message says where."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


class At(StrEnum):
    """What an address is about."""

    LINE = "line"
    STEP = "step"
    LAST = "last"
    MATCH = "match"
    PLUS = "plus"
    MULTIPLE = "multiple"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression of the script; without one, the last that was used."""

    regex: Regex | None
    groups: int = 0
    literal: bytes | None = None
    """What it matches, if that is a single text."""


@dataclass(frozen=True, slots=True)
class Address:
    """One address."""

    at: At
    number: int = 0
    step: int = 0
    pattern: Pattern | None = None


@dataclass(frozen=True, slots=True)
class Substitution:
    """What an `s` command does."""

    pattern: Pattern
    replacement: Replacement
    everywhere: bool
    number: int
    prints: bool
    constant: bytes | None = None
    """What replaces a literal text, if that is always the same."""


@dataclass(slots=True)
class Command:
    """One command."""

    name: str
    first: Address | None = None
    last: Address | None = None
    negated: bool = False
    text: bytes = b""
    """Of `a`, `i` and `c`; the file of `r`."""
    label: str = ""
    number: int | None = None
    target: int = 0
    """The command that is next after a jump; after an opening brace, the one after the closing."""
    substitution: Substitution | None = None
    table: dict[int, str] = field(default_factory=dict)
    begins_active: bool = False
    """Whether its range has begun before the first line."""
    is_active: bool = False
    """Whether the range of its addresses has begun."""
    has_begun: bool = False
    """Whether a range that begins at a certain line has, be it over or not."""
    ends: int = 0
    """The line at which that range ends, where it is known."""
