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
        self.are_on = are_wanted(environ) and stream.isatty()

    def paint(self, text: str, tone: Tone | None) -> str:
        """*text* in its colour."""
        if tone is None or not text or not self.are_on:
            return text
        return f"\x1b[{tone.value}m{text}\x1b[0m"


def are_wanted(environ: Mapping[str, str]) -> bool:
    """Whether a terminal may be sent colours: it can show them, and nobody has asked for plain text."""
    return not environ.get("NO_COLOR") and environ.get("TERM", "") not in ("", "dumb")


def of_output() -> Colours:
    """The colours of standard output."""
    return Colours(sys.stdout, os.environ)


def of_errors() -> Colours:
    """The colours of standard error."""
    return Colours(sys.stderr, os.environ)
