"""List the commands, or print the help of one."""

from __future__ import annotations

from collections.abc import Sequence

from carrel.shell.command.context import Context
from carrel.shell.command.invocation import help_text
from carrel.shell.command.table import COMMANDS
from carrel.shell.text.quoting import encode, quote

USAGE = "[COMMAND]..."


def run(ctx: Context, argv: Sequence[str]) -> int:
    """Print one line per available command, or the help of the named ones."""
    if not argv:
        for command in COMMANDS.values():
            if command.name in ctx.resources.allowed:
                ctx.write_line(f"{command.name:<11}{command.summary}")
        ctx.write_line("Run 'COMMAND --help' for details.")
    for name in argv:
        found = COMMANDS.get(name)
        if found is None or name not in ctx.resources.allowed:
            ctx.error(f"no help topics match {quote(name)}")
        else:
            ctx.write(encode(help_text(found, found.load())))
    return ctx.status
