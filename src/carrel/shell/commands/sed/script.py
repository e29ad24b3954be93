"""A parsed `sed` script: commands, addresses and substitutions."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from carrel.shell.commands.sed.replacement import Replacement
from carrel.shell.text.regex import Regex


class ScriptError(Exception):
    """The script is wrong; the message says where."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


class AddressKind(StrEnum):
    """What an address is about."""

    LINE = "line"
    STEP = "step"
    LAST = "last"
    MATCH = "match"
    PLUS = "plus"
    MULTIPLE = "multiple"


@dataclass(frozen=True, slots=True)
class ScriptPattern:
    """A regular expression of the script; without one, the last that was used."""

    regex: Regex | None
    groups: int = 0
    literal: bytes | None = None
    """What it matches, if that is a single text."""


@dataclass(frozen=True, slots=True)
class LineAddress:
    """One address."""

    at: AddressKind
    number: int = 0
    step: int = 0
    pattern: ScriptPattern | None = None


@dataclass(frozen=True, slots=True)
class Substitution:
    """What an `s` command does."""

    pattern: ScriptPattern
    replacement: Replacement
    everywhere: bool
    number: int
    prints: bool
    constant: bytes | None = None
    """What replaces a literal text, if that is always the same."""


@dataclass(slots=True)
class SedCommand:
    """One command."""

    name: str
    first: LineAddress | None = None
    last: LineAddress | None = None
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
