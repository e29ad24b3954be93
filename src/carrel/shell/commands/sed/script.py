"""A parsed `sed` script: commands, addresses and substitutions."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from carrel.shell.commands.sed.replacement import Replacement
from carrel.shell.text.regex import Regex


class ScriptError(Exception):
    """The script is invalid; the message includes the position."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


class AddressKind(StrEnum):
    """Kind of an address."""

    LINE = "line"
    STEP = "step"
    LAST = "last"
    MATCH = "match"
    PLUS = "plus"
    MULTIPLE = "multiple"


@dataclass(frozen=True, slots=True)
class ScriptPattern:
    """A regular expression of the script; an empty one repeats the last one used."""

    regex: Regex | None
    groups: int = 0
    literal: bytes | None = None
    """The only text that it matches, if there is just one."""


@dataclass(frozen=True, slots=True)
class LineAddress:
    """One address."""

    kind: AddressKind
    number: int = 0
    step: int = 0
    pattern: ScriptPattern | None = None


@dataclass(frozen=True, slots=True)
class Substitution:
    """The arguments of an `s` command."""

    pattern: ScriptPattern
    replacement: Replacement
    everywhere: bool
    number: int
    prints_result: bool
    constant: bytes | None = None
    """The replacement, if the pattern is literal and the replacement is always the same."""


@dataclass(slots=True)
class SedCommand:
    """One command of a script."""

    name: str
    first: LineAddress | None = None
    last: LineAddress | None = None
    negated: bool = False
    text: bytes = b""
    """The text of `a`, `i` and `c`; the file name of `r`."""
    label: str = ""
    number: int | None = None
    target: int = 0
    """Index of the command after a jump; for `{`, of the command after the closing brace."""
    substitution: Substitution | None = None
    table: dict[int, str] = field(default_factory=dict)
    starts_active: bool = False
    """Whether its range is active before the first line."""
    is_active: bool = False
    """Whether the range of its addresses is active."""
    has_started: bool = False
    """Whether a range that starts at a line number has started, even if it has ended since."""
    end: int = 0
    """Line at which the active range ends, if it is known."""
