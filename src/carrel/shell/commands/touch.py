"""Create files, or set their modification times."""

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
'2 days ago', in UTC. Only modification times are stored, so -a alone does not change existing files.
"""


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `touch`."""

    no_create: Annotated[bool, Opt("-c", "--no-create", help="do not create files")] = False
    date: Annotated[str | None, Opt("-d", "--date", metavar="DATE", help="set DATE instead of now")] = None
    stamp: Annotated[
        str | None, Opt("-t", metavar="STAMP", help="set [[CC]YY]MMDDhhmm[.ss] instead of now")
    ] = None
    reference: Annotated[
        str | None, Opt("-r", "--reference", metavar="FILE", help="set the time of FILE instead of now")
    ] = None
    access: Annotated[bool, Opt("-a", help="set only the access time, which is not stored")] = False
    modified: Annotated[bool, Opt("-m", help="set only the modification time")] = False
    ignored: Annotated[bool, Opt("-f", help="accepted and ignored")] = False


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the operands, which are written, and the reference, whose metadata is read."""
    yield from inspects([flags.reference] if flags.reference else [])
    yield from writes(operands)


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Set the time of each operand."""
    modified_ns = _parse_time(ctx, flags)
    if not operands:
        raise UsageError("missing file operand", status=1)
    for operand in operands:
        about = "setting times of" if flags.no_create or operand.endswith("/") else "cannot touch"
        with ctx.reporting(operand, f"{about} {quote(operand)}"):
            _touch(ctx, flags, operand, modified_ns)
    return ctx.status


def _touch(ctx: Context, flags: Flags, operand: str, modified_ns: int | None) -> None:
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
        ctx.workspace.touch(ctx.path(operand), modified_ns=modified_ns)
    except ExistsError:
        # A broken link: its target is created.
        ctx.workspace.touch(resolve(ctx, operand), modified_ns=modified_ns)


def _parse_time(ctx: Context, flags: Flags) -> int | None:
    """Return the time to set, or `None` for now."""
    given = [value for value in (flags.date, flags.stamp, flags.reference) if value is not None]
    if len(given) > 1 and (flags.stamp is not None or flags.reference is None):
        raise UsageError("cannot specify times from more than one source", status=1)
    now = ctx.workspace.gate.now()
    if flags.reference is not None:
        now = _reference_time(ctx, flags.reference)
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


def _reference_time(ctx: Context, path: str) -> int:
    try:
        return ctx.stat(path).modified_ns
    except CarrelError as error:
        message = f"failed to get attributes of {quote(path)}: {strerror(error)}"
        raise UsageError(message, status=1, hint=False) from None
