"""Print the working directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.shell.command.context import Context
from carrel.shell.command.flags import Opt
from carrel.shell.command.paths import Missing, resolve

USAGE = ""


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `pwd`."""

    physical: Annotated[
        bool,
        Opt("-P", help="resolve links"),
        Opt("-L", const=False, help="do not resolve links; this is the default"),
    ] = False


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Print the working directory, as commands, tools and guest code see it."""
    cwd = ctx.state.cwd
    ctx.write_line(resolve(ctx, cwd, Missing.NONE) if flags.physical else cwd)
    return 0
