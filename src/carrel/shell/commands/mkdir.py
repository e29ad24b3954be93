"""Create directories."""

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
        bool, Opt("-p", "--parents", help="create parent directories; no error if DIRECTORY exists")
    ] = False
    verbose: Annotated[bool, Opt("-v", "--verbose", help="print each created directory")] = False
    mode: Annotated[
        str | None,
        Opt("-m", "--mode", metavar="MODE", help="not supported: permissions cannot be set"),
    ] = None


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the operands, which are written."""
    return writes(operands)


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Create each directory."""
    if flags.mode is not None:
        raise UsageError("permissions cannot be set; leave out -m", hint=False)
    if not operands:
        raise UsageError("missing operand", status=1)
    for operand in operands:
        if flags.parents:
            _make_with_parents(ctx, flags, operand)
        else:
            _make(ctx, flags, operand)
    return ctx.status


def _make(ctx: Context, flags: Flags, operand: str) -> bool:
    """Create one directory, and return whether that succeeded."""
    with ctx.reporting(operand, f"cannot create directory {quote(operand)}"):
        ctx.workspace.mkdir(ctx.path(operand), parents=False)
        if flags.verbose:
            ctx.write_line(f"{ctx.name}: created directory {quote(operand)}")
        return True
    return False


def _make_with_parents(ctx: Context, flags: Flags, operand: str) -> None:
    """Create a directory and its missing parents."""
    missing: list[str] = []
    # From the last component up, because directories above the root of a path rule cannot be accessed.
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
        # `x/..` exists as soon as `x` does.
        exists = path.endswith("/..") and is_directory(ctx, path)
        if not exists and not _make(ctx, flags, path):
            return


def _prefixes(operand: str) -> Iterator[str]:
    """Yield `a`, `a/b` and so on, up to the whole operand as written."""
    at = len(operand) - len(operand.lstrip("/"))
    while (slash := operand.find("/", at)) > 0:
        if operand[slash:].strip("/"):
            yield operand[:slash]
        at = slash + 1
    yield operand
