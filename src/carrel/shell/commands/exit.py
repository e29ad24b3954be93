"""Leave the shell."""

from __future__ import annotations

import re
from collections.abc import Sequence

from carrel.shell.context import Context
from carrel.shell.ending import ExitAsked
from carrel.shell.flags import UsageError
from carrel.shell.quoting import shown

USAGE = "[STATUS]"


def run(ctx: Context, argv: Sequence[str]) -> int:
    """End the command line with a status, by default that of the last command."""
    if len(argv) > 1:
        raise UsageError("too many arguments", status=1, hint=False)
    if not argv:
        raise ExitAsked(ctx.state.status)
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", argv[0]):
        ctx.complain(f"{shown(argv[0])}: numeric argument required", status=2)
        raise ExitAsked(2)
    raise ExitAsked(int(argv[0]) & 0xFF)
