"""Set options of the shell."""

from __future__ import annotations

from collections.abc import Sequence

from carrel.shell.command.context import Context
from carrel.shell.command.flags import UsageError

USAGE = "[-o pipefail | +o pipefail | -o]"
NOTES = "With pipefail, a pipeline fails if any of its commands does. Without it, only the last one counts."


def run(ctx: Context, argv: Sequence[str]) -> int:
    """Switch `pipefail` on or off, or print its value."""
    if list(argv) in (["-o"], ["+o"]):
        ctx.write_line(f"pipefail       \t{'on' if ctx.state.pipefail else 'off'}")
        return 0
    if len(argv) != 2 or argv[0] not in ("-o", "+o") or argv[1] != "pipefail":
        raise UsageError("only -o pipefail and +o pipefail are supported")
    ctx.state.pipefail = argv[0] == "-o"
    return 0
