"""What commands print: colours, terminal width, safe names, JSON documents, one-line errors and hints."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, TextIO

import click


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


def colour_preference(environ: Mapping[str, str]) -> bool | None:
    """Whether somebody asks for colours or for none; `None` leaves it to the terminal."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return False if environ.get("TERM", "unknown") in ("", "dumb") else None


def wants_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether *stream* is written in colour: it is a terminal that can, unless somebody says otherwise."""
    asked = colour_preference(environ)
    return stream.isatty() if asked is None else asked


def stdout_colours() -> Colours:
    """The colours of standard output."""
    return Colours(sys.stdout, os.environ)


def stderr_colours() -> Colours:
    """The colours of standard error."""
    return Colours(sys.stderr, os.environ)


DEFAULT_COLUMNS = 80
"""Where nothing is known."""


def terminal_columns(stream: TextIO) -> int:
    """How many characters fit in a line of the terminal that *stream* is."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or DEFAULT_COLUMNS
    except OSError:
        return DEFAULT_COLUMNS


USAGE = "cli.usage"
"""The code of a command line that makes no sense."""
LOCAL = "cli.local"
"""The code of a file or stream on this side, outside any workspace, that cannot be used."""
MISSING = "cli.missing"
"""The code of a package that is not installed and that a command needs."""
BUG = "cli.bug"
"""The code of what nobody foresaw."""


def display(name: str) -> str:
    """*name* as it is, or as a quoted literal where a terminal would not show it as it is."""
    return name if name.isprintable() and not name.startswith(("'", '"')) else repr(name)


def render_time(time_ns: int) -> str:
    """The time in UTC, or its bare number of seconds if it is beyond the calendar."""
    from datetime import UTC, datetime

    seconds = time_ns // 10**9
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return f"@{seconds}"


def print_json(document: dict[str, Any] | list[Any], *, err: bool = False) -> None:  # Any: whatever JSON says
    """Print one JSON document on one line, in ASCII whatever the names hold."""
    import json

    click.echo(json.dumps(document, ensure_ascii=True), err=err)


def print_error(code: str, message: str, path: str | None = None, *, as_json: bool) -> None:
    """Say on standard error what went wrong."""
    if as_json:
        print_json({"error": {"code": code, "message": message, "path": path}}, err=True)
        return
    from carrel.audit.logger import printable

    click.echo(f"{stderr_colours().paint('carrel:', Tone.BAD)} {printable(message)}", err=True)


def print_left_out(rows: Iterable[dict[str, str]]) -> None:
    """Say on standard error what was not copied, and why."""
    for row in rows:
        click.echo(f"carrel: left out {display(row['path'])}: {row['reason']}", err=True)


def wants_json(argv: Sequence[str]) -> bool:
    """Whether errors are to be JSON; asked of the words themselves, as they may make no sense together."""
    end = argv.index("--") if "--" in argv else len(argv)
    return "--json" in argv[:end]


def hint(text: str) -> None:
    """Say on standard error what may come next, if somebody sits there to read it."""
    if sys.stderr.isatty() and sys.stdout.isatty():
        click.echo(stderr_colours().paint(f"carrel: {text}", Tone.FAINT), err=True)
