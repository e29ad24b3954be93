"""Make directories."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.shell.command.access import PathAccess, writes
from carrel.shell.command.context import Context
from carrel.shell.command.destination import is_directory
from carrel.shell.command.flags import Opt, UsageError
from carrel.shell.text.quoting import quote
from carrel.values import FileKind

USAGE = "[OPTION]... DIRECTORY..."


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `mkdir`."""

    parents: Annotated[
        bool, Opt("-p", "--parents", help="make those above it too, and do not mind what is there")
    ] = False
    verbose: Annotated[bool, Opt("-v", "--verbose", help="tell of each directory that is made")] = False
    mode: Annotated[
        str | None,
        Opt("-m", "--mode", metavar="MODE", help="not possible: permissions cannot be chosen here"),
    ] = None


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """It would make each operand."""
    return writes(operands)


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Make each directory."""
    if flags.mode is not None:
        raise UsageError("permissions cannot be chosen here; leave out -m", hint=False)
    if not operands:
        raise UsageError("missing operand", status=1)
    for operand in operands:
        if flags.parents:
            _make_all(ctx, flags, operand)
        else:
            _make(ctx, flags, operand)
    return ctx.status


def _make(ctx: Context, flags: Flags, operand: str) -> bool:
    """Make one directory; whether it was made."""
    with ctx.reporting(operand, f"cannot create directory {quote(operand)}"):
        ctx.workspace.mkdir(ctx.path(operand), parents=False)
        if flags.verbose:
            ctx.write_line(f"{ctx.name}: created directory {quote(operand)}")
        return True
    return False


def _make_all(ctx: Context, flags: Flags, operand: str) -> None:
    """Make a directory and those above it that are missing."""
    missing: list[str] = []
    # From the end, since what lies above the root of a rule cannot be looked at.
    for path in reversed(list(_prefixes(operand))):
        if is_directory(ctx, path):
            break
        if ctx.exists(path):
            is_taken = path == operand or ctx.stat(path, follow=False).kind is FileKind.LINK
            problem = "File exists" if is_taken else "Not a directory"
            ctx.error(f"cannot create directory {quote(path)}: {problem}")
            return
        missing.append(path)
    for path in reversed(missing):
        # `x/..` is there as soon as `x` is.
        is_there = path.endswith("/..") and is_directory(ctx, path)
        if not is_there and not _make(ctx, flags, path):
            return


def _prefixes(operand: str) -> Iterator[str]:
    """`a`, `a/b` and so on, up to the operand as it was written."""
    at = len(operand) - len(operand.lstrip("/"))
    while (slash := operand.find("/", at)) > 0:
        if operand[slash:].strip("/"):
            yield operand[:slash]
        at = slash + 1
    yield operand
