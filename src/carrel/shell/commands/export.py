"""Set variables for commands and guest code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.shell.command.context import Context
from carrel.shell.command.flags import Opt
from carrel.shell.state import assignment_warning, is_variable_name
from carrel.shell.text.quoting import quote

USAGE = "[OPTION]... [NAME[=VALUE]]..."


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `export`."""

    forget: Annotated[bool, Opt("-n", help="stop exporting the variables")] = False
    show: Annotated[bool, Opt("-p", help="print all exported variables")] = False


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Set and export each variable."""
    if not operands:
        for name, value in ctx.state.environment().items():
            ctx.write_line(f"export {name}={quote(value)}")
    values: dict[str, str] = {}
    for operand in operands:
        _export(ctx, operand, values, forget=flags.forget)
    ctx.state.assign(values)
    return ctx.status


def _export(ctx: Context, operand: str, values: dict[str, str], *, forget: bool) -> None:
    name, sign, value = operand.partition("=")
    if not is_variable_name(name):
        ctx.error(f"{quote(operand)}: not a valid identifier")
        return
    if sign:
        if text := assignment_warning(name):
            ctx.write_error_line(f"{ctx.name}: {text}")
        values[name] = value
    if forget:
        ctx.state.exported.discard(name)
    else:
        ctx.state.exported.add(name)
