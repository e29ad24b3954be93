"""Print whether a name is a command of the shell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.shell.command.context import Context
from carrel.shell.command.flags import Opt
from carrel.shell.command.table import COMMANDS
from carrel.shell.text.quoting import quote_if_needed

USAGE = "[-s] NAME..."


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `which`."""

    all: Annotated[bool, Opt("-a", help="print all matches; there is never more than one")] = False
    silent: Annotated[bool, Opt("-s", help="print nothing; only set the status")] = False


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Print the names that are commands; all commands are built in, none is a file."""
    for name in operands:
        if name not in COMMANDS or name not in ctx.resources.allowed:
            ctx.status = 1
        elif not flags.silent:
            ctx.write_line(f"{quote_if_needed(name)}: shell built-in command")
    return ctx.status if operands else 1
