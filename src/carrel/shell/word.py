"""Words of a command line, as they were written: what is quoted in them, and what is yet to be expanded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Text(NamedTuple):
    """Characters that stand for themselves; those not quoted may be a pattern or `~`."""

    text: str
    quoted: bool


class Variable(NamedTuple):
    """The value of a variable; not quoted, it is split into fields."""

    name: str
    quoted: bool


Piece = Text | Variable


@dataclass(frozen=True, slots=True)
class Word:
    """One word, and where it stands in the command line, counted from 1."""

    pieces: tuple[Piece, ...]
    position: int

    @property
    def plain(self) -> str | None:
        """Its text, if nothing in it is quoted or to be expanded."""
        if len(self.pieces) == 1 and isinstance(self.pieces[0], Text) and not self.pieces[0].quoted:
            return self.pieces[0].text
        return None


@dataclass(frozen=True, slots=True)
class Operator:
    """A sign between words."""

    text: str
    position: int


Token = Word | Operator
