"""Change the working directory."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.errors import NotDirectoryError
from carrel.shell.command.access import PathAccess, reads
from carrel.shell.command.context import Context
from carrel.shell.command.flags import Opt, UsageError
from carrel.shell.text.quoting import quote_if_needed

USAGE = "[DIRECTORY | -]"
NOTES = "Without DIRECTORY, changes to $HOME; with -, to the previous directory."


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `cd`."""

    logical: Annotated[bool, Opt("-L", help="resolve .. before links; this is always the case")] = True


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the directory that is read."""
    return reads(operands)


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Change the working directory, `PWD` and `OLDPWD`."""
    if len(operands) > 1:
        raise UsageError("too many arguments", status=1, hint=False)
    variables = ctx.state.variables
    target = operands[0] if operands else variables.get("HOME", ctx.workspace.mount)
    if target == "-":
        if "OLDPWD" not in variables:
            raise UsageError("OLDPWD not set", status=1, hint=False)
        target = variables["OLDPWD"]
        ctx.write_line(target)
    if target:
        with ctx.reporting(target):
            _change_directory(ctx, target)
    return ctx.status


def _change_directory(ctx: Context, target: str) -> None:
    path = posixpath.normpath(posixpath.join(ctx.state.cwd, target)).replace("//", "/", 1)
    if not ctx.stat(path).is_directory:
        raise NotDirectoryError(f"not a directory: {quote_if_needed(target)}", path=target)
    ctx.state.variables |= {"OLDPWD": ctx.state.cwd, "PWD": path}
    ctx.state.exported |= {"OLDPWD", "PWD"}
    ctx.state.cwd = path
