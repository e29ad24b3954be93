"""Set variables for commands and guest code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.shell.context import Context
from carrel.shell.flags import Opt
from carrel.shell.quoting import quoted
from carrel.shell.variables import is_name, warning

USAGE = "[OPTION]... [NAME[=VALUE]]..."


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `export`."""

    forget: Annotated[bool, Opt("-n", help="keep the variables to the shell")] = False
    show: Annotated[bool, Opt("-p", help="print all variables that are exported")] = False


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Set each variable, and give it to what is run from now on."""
    if not operands:
        for name in sorted(ctx.state.exported & ctx.state.variables.keys()):
            ctx.say(f"export {name}={quoted(ctx.state.variables[name])}")
    values: dict[str, str] = {}
    for operand in operands:
        _export(ctx, operand, values, forget=flags.forget)
    ctx.state.assign(values)
    return ctx.status


def _export(ctx: Context, operand: str, values: dict[str, str], *, forget: bool) -> None:
    name, sign, value = operand.partition("=")
    if not is_name(name):
        ctx.complain(f"{quoted(operand)}: not a valid identifier")
        return
    if sign:
        if text := warning(name):
            ctx.warn(f"{ctx.name}: {text}")
        values[name] = value
    if forget:
        ctx.state.exported.discard(name)
    else:
        ctx.state.exported.add(name)
