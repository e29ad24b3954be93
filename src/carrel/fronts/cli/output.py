"""Output of commands: colours, terminal width, safe names, JSON documents, one-line errors and hints."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, TextIO

import click


class Tone(Enum):
    """The kind of a text; the value is its SGR parameter, the terminal's code for the colour."""

    HEADING = "1"
    SUCCESS = "32"
    WARNING = "33"
    ERROR = "31"
    DIM = "2"


class Colours:
    """Colours text for one stream, or leaves it plain."""

    def __init__(self, stream: TextIO, environ: Mapping[str, str]) -> None:
        """Colour text for *stream* if `wants_colour` says so."""
        self.enabled = wants_colour(stream, environ)

    def paint(self, text: str, tone: Tone | None) -> str:
        """Return *text* in the colour of *tone*."""
        if tone is None or not text or not self.enabled:
            return text
        return f"\x1b[{tone.value}m{text}\x1b[0m"


def colour_preference(environ: Mapping[str, str]) -> bool | None:
    """Whether the environment forces or forbids colours; `None` leaves it to the terminal."""
    if environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return False if environ.get("TERM", "unknown") in ("", "dumb") else None


def wants_colour(stream: TextIO, environ: Mapping[str, str]) -> bool:
    """Whether to write colours to *stream*: on a terminal, unless the environment says otherwise."""
    preference = colour_preference(environ)
    return stream.isatty() if preference is None else preference


def stdout_colours() -> Colours:
    """The colours of standard output."""
    return Colours(sys.stdout, os.environ)


def stderr_colours() -> Colours:
    """The colours of standard error."""
    return Colours(sys.stderr, os.environ)


DEFAULT_COLUMNS = 80
"""Terminal width when it is unknown."""


def terminal_columns(stream: TextIO) -> int:
    """The width in characters of the terminal behind *stream*."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or DEFAULT_COLUMNS
    except OSError:
        return DEFAULT_COLUMNS


USAGE = "cli.usage"
"""Error code: the command line is invalid."""
LOCAL = "cli.local"
"""Error code: a local file or stream, outside any workspace, cannot be used."""
MISSING = "cli.missing"
"""Error code: a package required by the command is not installed."""
BUG = "cli.bug"
"""Error code: an unexpected exception."""


def display(name: str) -> str:
    """Return *name* unchanged, or as a quoted literal if a terminal would not show it unchanged."""
    return name if name.isprintable() and not name.startswith(("'", '"')) else repr(name)


def render_time(time_ns: int) -> str:
    """Render a time in UTC, or as `@SECONDS` if the calendar cannot hold it."""
    from datetime import UTC, datetime

    seconds = time_ns // 10**9
    try:
        return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%SZ}"
    except (ValueError, OverflowError, OSError):
        return f"@{seconds}"


_AGES = (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))


def render_local_time(time_ns: int, now_ns: int) -> str:
    """Render a time for people: in the local time zone, and how long ago that is or how soon it will be."""
    from datetime import datetime

    try:
        text = f"{datetime.fromtimestamp(time_ns // 10**9):%Y-%m-%d %H:%M:%S}"
    except (ValueError, OverflowError, OSError):
        return render_time(time_ns)
    return f"{text} ({_age((now_ns - time_ns) // 10**9)})"


def _age(seconds: int) -> str:
    for name, unit in _AGES:
        if (count := abs(seconds) // unit) > 0:
            amount = f"{count:,} {name}{'' if count == 1 else 's'}"
            return f"{amount} ago" if seconds > 0 else f"in {amount}"
    return "now"


def render_size(count: int) -> str:
    """Render a size for people: `117 bytes`, `33.5 KiB`, `100 MiB`."""
    for name, unit in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= unit:
            return f"{f'{count / unit:,.1f}'.removesuffix('.0')} {name}"
    return f"{count} byte{'' if count == 1 else 's'}"


def arrow(stream: TextIO) -> str:
    """Return an arrow for *stream*: `->` unless it is a terminal that can show a better one."""
    try:
        "\N{RIGHTWARDS ARROW}".encode(stream.encoding)
    except (UnicodeError, LookupError, TypeError):
        return "->"
    return "\N{RIGHTWARDS ARROW}" if stream.isatty() else "->"


def print_json(document: dict[str, Any] | list[Any], *, err: bool = False) -> None:  # Any: any JSON value
    """Print one JSON document on one line of ASCII."""
    import json

    click.echo(json.dumps(document, ensure_ascii=True), err=err)


def print_output(stream: str, data: bytes) -> None:
    """Write output of a command or of code to our stream of the same name, at once."""
    target = sys.stdout.buffer if stream == "stdout" else sys.stderr.buffer
    target.write(data)
    target.flush()


def print_error(code: str, message: str, path: str | None = None, *, as_json: bool) -> None:
    """Print an error on standard error."""
    if as_json:
        print_json({"error": {"code": code, "message": message, "path": path}}, err=True)
        return
    from carrel.audit.logger import printable

    click.echo(f"{stderr_colours().paint('carrel:', Tone.ERROR)} {printable(message)}", err=True)


def print_left_out(rows: Iterable[dict[str, str]]) -> None:
    """Print on standard error which entries were not copied, and why."""
    for row in rows:
        click.echo(f"carrel: left out {display(row['path'])}: {row['reason']}", err=True)


def wants_json(argv: Sequence[str]) -> bool:
    """Whether to print errors as JSON; reads the raw arguments, since parsing them may be what failed."""
    end = argv.index("--") if "--" in argv else len(argv)
    return "--json" in argv[:end]


def hint(text: str) -> None:
    """Print a suggestion on standard error if both output streams are terminals."""
    if sys.stderr.isatty() and sys.stdout.isatty():
        click.echo(stderr_colours().paint(f"carrel: {text}", Tone.DIM), err=True)
