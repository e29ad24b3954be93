"""Forget variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.shell.context import Context
from carrel.shell.flags import Opt
from carrel.shell.quoting import quoted
from carrel.shell.variables import is_name

USAGE = "[-v] [NAME]..."


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `unset`."""

    variables: Annotated[bool, Opt("-v", help="they are variables; there is nothing else")] = True


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Forget each variable; one that is not there is forgotten already."""
    for name in operands:
        if not is_name(name):
            ctx.complain(f"{quoted(name)}: not a valid identifier")
            continue
        ctx.state.variables.pop(name, None)
        ctx.state.exported.discard(name)
    return ctx.status
