"""Whether a stream is written in colour."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO


def wants_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """On a terminal that knows colours; `NO_COLOR` forbids them, and `FORCE_COLOR` asks for them anywhere."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and environ.get("TERM") != "dumb"
