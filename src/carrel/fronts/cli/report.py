"""What the command line prints: names that cannot disturb a terminal, JSON, and errors on one line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click

from carrel.fronts.cli.colour import Tone, of_errors

USAGE = "cli.usage"
"""The code of a command line that makes no sense."""
LOCAL = "cli.local"
"""The code of a file or stream on this side, outside any workspace, that cannot be used."""
MISSING = "cli.missing"
"""The code of a package that is not installed and that a command needs."""
BUG = "cli.bug"
"""The code of what nobody foresaw."""


def shown(name: str) -> str:
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
    from carrel.audit.printable import printable

    click.echo(f"{of_errors().paint('carrel:', Tone.BAD)} {printable(message)}", err=True)


def print_left_out(rows: Iterable[dict[str, str]]) -> None:
    """Say on standard error what was not copied, and why."""
    for row in rows:
        click.echo(f"carrel: left out {shown(row['path'])}: {row['reason']}", err=True)


def wants_json(argv: Sequence[str]) -> bool:
    """Whether errors are to be JSON; asked of the words themselves, as they may make no sense together."""
    end = argv.index("--") if "--" in argv else len(argv)
    return "--json" in argv[:end]
