"""Make files, or set when they were changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.errors import CarrelError, ExistsError, MissingError, NotDirectoryError
from carrel.shell.command.access import PathAccess, inspects, writes
from carrel.shell.command.context import Context
from carrel.shell.command.errors import strerror
from carrel.shell.command.flags import Opt, UsageError
from carrel.shell.command.paths import resolve
from carrel.shell.text.quoting import quote
from carrel.shell.text.timestamps import parse_date, parse_stamp

USAGE = "[OPTION]... FILE..."
NOTES = """
DATE is like 2024-02-29, '2024-02-29 12:34:56.5', 2024-02-29T12:34Z, 12:34, @1709210096, now, yesterday or
'2 days ago', in UTC. Only the time of the last change is kept, so -a alone changes nothing that is there.
"""


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `touch`."""

    no_create: Annotated[bool, Opt("-c", "--no-create", help="make no files")] = False
    date: Annotated[str | None, Opt("-d", "--date", metavar="DATE", help="set this instead of now")] = None
    stamp: Annotated[
        str | None, Opt("-t", metavar="STAMP", help="set [[CC]YY]MMDDhhmm[.ss] instead of now")
    ] = None
    reference: Annotated[
        str | None, Opt("-r", "--reference", metavar="FILE", help="set what FILE has instead of now")
    ] = None
    access: Annotated[bool, Opt("-a", help="only the time of the last access, which is not kept")] = False
    modified: Annotated[bool, Opt("-m", help="only the time of the last change")] = False
    ignored: Annotated[bool, Opt("-f", help="accepted and ignored")] = False


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """It would change each operand, and look at the reference."""
    yield from inspects([flags.reference] if flags.reference else [])
    yield from writes(operands)


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Set the time of each operand."""
    when = _when(ctx, flags)
    if not operands:
        raise UsageError("missing file operand", status=1)
    for operand in operands:
        about = "setting times of" if flags.no_create or operand.endswith("/") else "cannot touch"
        with ctx.reporting(operand, f"{about} {quote(operand)}"):
            _touch(ctx, flags, operand, when)
    return ctx.status


def _touch(ctx: Context, flags: Flags, operand: str, when: int | None) -> None:
    if flags.no_create or operand.endswith("/") or (flags.access and not flags.modified):
        try:
            ctx.stat(operand)
        except (MissingError, NotDirectoryError) as error:
            if flags.no_create and isinstance(error, MissingError):
                return
            if flags.no_create or operand.endswith("/"):
                raise
        else:
            if flags.access and not flags.modified:
                return
    try:
        ctx.workspace.touch(ctx.path(operand), modified_ns=when)
    except ExistsError:
        # A link that leads nowhere yet: the file is made where it leads.
        ctx.workspace.touch(resolve(ctx, operand), modified_ns=when)


def _when(ctx: Context, flags: Flags) -> int | None:
    """The time to set, or `None` for now."""
    given = [value for value in (flags.date, flags.stamp, flags.reference) if value is not None]
    if len(given) > 1 and (flags.stamp is not None or flags.reference is None):
        raise UsageError("cannot specify times from more than one source", status=1)
    now = ctx.workspace.gate.now()
    if flags.reference is not None:
        now = _reference(ctx, flags.reference)
        if flags.date is None:
            return now
    try:
        if flags.date is not None:
            return parse_date(flags.date, now)
        if flags.stamp is not None:
            return parse_stamp(flags.stamp, now)
    except (ValueError, OverflowError):
        raise UsageError(f"invalid date format {quote(given[0])}", status=1, hint=False) from None
    return None


def _reference(ctx: Context, path: str) -> int:
    try:
        return ctx.stat(path).modified_ns
    except CarrelError as error:
        message = f"failed to get attributes of {quote(path)}: {strerror(error)}"
        raise UsageError(message, status=1, hint=False) from None
