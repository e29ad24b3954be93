"""End the command line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from carrel.shell.command.context import Context
from carrel.shell.command.flags import UsageError
from carrel.shell.result import ExitRequest
from carrel.shell.text.quoting import quote_if_needed

USAGE = "[STATUS]"


def run(ctx: Context, argv: Sequence[str]) -> int:
    """End the command line with the given status, or that of the last command."""
    if len(argv) > 1:
        raise UsageError("too many arguments", status=1, hint=False)
    if not argv:
        raise ExitRequest(ctx.state.status)
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", argv[0]):
        ctx.error(f"{quote_if_needed(argv[0])}: numeric argument required", status=2)
        raise ExitRequest(2)
    raise ExitRequest(int(argv[0]) & 0xFF)
