"""Colours on a terminal: this file alone decides whether there are any."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from enum import Enum
from typing import TextIO


class Tone(Enum):
    """What a text is to its reader; its value is what a terminal calls the colour."""

    HEAD = "1"
    GOOD = "32"
    CARE = "33"
    BAD = "31"
    FAINT = "2"


class Colours:
    """Paints texts for one stream, or leaves them as they are."""

    def __init__(self, stream: TextIO, environ: Mapping[str, str]) -> None:
        """Paint for *stream* if it is a terminal that can, and nobody has asked for plain text."""
        self.are_on = wants_colour(stream, environ)

    def paint(self, text: str, tone: Tone | None) -> str:
        """*text* in its colour."""
        if tone is None or not text or not self.are_on:
            return text
        return f"\x1b[{tone.value}m{text}\x1b[0m"


def wish(environ: Mapping[str, str]) -> bool | None:
    """Whether somebody asks for colours or for none; `None` leaves it to the terminal."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return False if environ.get("TERM", "unknown") in ("", "dumb") else None


def wants_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether *stream* is written in colour: it is a terminal that can, unless somebody says otherwise."""
    asked = wish(environ)
    return stream.isatty() if asked is None else asked


def of_output() -> Colours:
    """The colours of standard output."""
    return Colours(sys.stdout, os.environ)


def of_errors() -> Colours:
    """The colours of standard error."""
    return Colours(sys.stderr, os.environ)
