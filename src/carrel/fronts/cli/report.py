"""What the command line prints: names that cannot disturb a terminal, JSON, and errors on one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

USAGE = "cli.usage"
"""The code of a command line that makes no sense."""
LOCAL = "cli.local"
"""The code of a file or stream on this side, outside any workspace, that cannot be used."""


def shown(name: str) -> str:
    """*name* as it is, or as a quoted literal where a terminal would not show it as it is."""
    return name if name.isprintable() and not name.startswith(("'", '"')) else repr(name)


def print_json(document: dict[str, Any], *, err: bool = False) -> None:  # Any: whatever JSON can say
    """Print one JSON document on one line, in ASCII whatever the names hold."""
    import json

    click.echo(json.dumps(document, ensure_ascii=True), err=err)


def print_error(code: str, message: str, path: str | None = None, *, as_json: bool) -> None:
    """Say on standard error what went wrong."""
    if as_json:
        print_json({"error": {"code": code, "message": message, "path": path}}, err=True)
        return
    from carrel.audit.logger import printable

    click.echo(f"carrel: {printable(message)}", err=True)


def wants_json(argv: Sequence[str]) -> bool:
    """Whether errors are to be JSON; asked of the words themselves, as they may make no sense together."""
    end = argv.index("--") if "--" in argv else len(argv)
    return "--json" in argv[:end]
