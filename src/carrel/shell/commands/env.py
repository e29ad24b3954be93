"""Print the environment, or run a command in a changed one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile, takewhile
from typing import Annotated

from carrel.shell.command.context import Context
from carrel.shell.command.flags import Opt
from carrel.shell.text.quoting import encode

USAGE = "[OPTION]... [NAME=VALUE]... [COMMAND [ARG]...]"
OPTIONS_FIRST = True


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `env`."""

    empty: Annotated[bool, Opt("-i", "--ignore-environment", help="start with an empty environment")] = False
    null: Annotated[bool, Opt("-0", "--null", help="end each line with NUL, not newline")] = False
    unset: Annotated[tuple[str, ...], Opt("-u", "--unset", metavar="NAME", help="remove variable NAME")] = ()


def nested_command(flags: Flags, operands: Sequence[str]) -> list[str]:
    """Return the command that it runs: the words after the variables."""
    return list(dropwhile(lambda word: "=" in word, operands))


def _values(operands: Sequence[str]) -> Iterator[tuple[str, str]]:
    for word in takewhile(lambda word: "=" in word, operands):
        name, _, value = word.partition("=")
        yield name, value


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Print the exported variables, or run the command with them."""
    state = ctx.state.copy()
    if flags.empty:
        state.exported.clear()
    state.exported -= set(flags.unset)
    for name in flags.unset:
        state.variables.pop(name, None)
    values = dict(_values(operands))
    state.assign(values)
    state.exported |= values.keys()
    if rest := nested_command(flags, operands):
        return ctx.call(rest, state)
    end = b"\0" if flags.null else b"\n"
    for name, value in state.environment().items():
        ctx.write(encode(f"{name}={value}") + end)
    return ctx.status
