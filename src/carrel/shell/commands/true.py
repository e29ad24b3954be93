"""Do nothing, and succeed."""

from __future__ import annotations

from collections.abc import Sequence

from carrel.shell.command.context import Context

USAGE = "[ARGUMENT]..."


def run(ctx: Context, argv: Sequence[str]) -> int:
    """Return status 0."""
    return 0
