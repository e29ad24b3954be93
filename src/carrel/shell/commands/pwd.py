"""Print where the shell is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.shell.context import Context
from carrel.shell.flags import Opt

USAGE = ""


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `pwd`."""

    logical: Annotated[bool, Opt("-L", help="print the way that was gone; this is always so")] = True


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Print the working directory, as every command, tool and guest understands it."""
    ctx.say(ctx.state.cwd)
    return 0
