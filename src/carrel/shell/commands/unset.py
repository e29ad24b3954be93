"""Remove variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.shell.command.context import Context
from carrel.shell.command.flags import Opt
from carrel.shell.state import is_variable_name
from carrel.shell.text.quoting import quote

USAGE = "[-v] [NAME]..."


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `unset`."""

    variables: Annotated[bool, Opt("-v", help="unset variables; this is always the case")] = True


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Remove each variable; one that is not set is ignored."""
    for name in operands:
        if not is_variable_name(name):
            ctx.error(f"{quote(name)}: not a valid identifier")
            continue
        ctx.state.variables.pop(name, None)
        ctx.state.exported.discard(name)
    return ctx.status
