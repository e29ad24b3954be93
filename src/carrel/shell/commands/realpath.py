"""Print absolute paths with links resolved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated

from carrel.errors import CarrelError, ClosedError, MissingError, NotDirectoryError, SessionMissingError
from carrel.shell.command.access import PathAccess, inspects
from carrel.shell.command.context import Context
from carrel.shell.command.flags import Opt, UsageError
from carrel.shell.command.paths import Missing, absolute, resolve
from carrel.shell.text.quoting import encode, quote_if_needed

USAGE = "[OPTION]... FILE..."


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `realpath`."""

    missing: Annotated[
        Missing,
        Opt("-e", "--canonicalize-existing", const=Missing.NONE, help="all components must exist"),
        Opt("-m", "--canonicalize-missing", const=Missing.ALL, help="no component need exist"),
    ] = Missing.LAST
    as_text: Annotated[
        bool,
        Opt("-s", "--strip", "--no-symlinks", help="do not follow links"),
        Opt("-P", "--physical", const=False, help="follow links; this is the default"),
    ] = False
    logical: Annotated[bool, Opt("-L", "--logical", help="resolve .. before links")] = False
    quiet: Annotated[bool, Opt("-q", "--quiet", help="print no errors")] = False
    zero: Annotated[bool, Opt("-z", "--zero", help="end each path with a NUL, not a newline")] = False
    relative_to: Annotated[
        str | None, Opt("--relative-to", metavar="DIR", help="print paths relative to DIR")
    ] = None
    relative_base: Annotated[
        str | None, Opt("--relative-base", metavar="DIR", help="the same, but only for paths below DIR")
    ] = None


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the operands, whose metadata is read."""
    return inspects(operands)


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Print the resolved path of each operand."""
    if not operands:
        raise UsageError("missing operand", status=1)
    base = _resolve_directory(ctx, flags, flags.relative_base)
    origin = _resolve_directory(ctx, flags, flags.relative_to) or base
    if ctx.status:
        return ctx.status
    if base is not None and not _is_within(origin or base, base):
        base = origin = None
    end = b"\0" if flags.zero else b"\n"
    for operand in operands:
        path = _resolve_operand(ctx, flags, operand)
        if path is not None:
            if origin is not None and (base is None or _is_within(path, base)):
                path = _relative(path, origin)
            ctx.write(encode(path) + end)
    return ctx.status


def _resolve_directory(ctx: Context, flags: Flags, operand: str | None) -> str | None:
    path = None if operand is None else _resolve_operand(ctx, flags, operand)
    if path is not None and flags.missing is Missing.NONE and not ctx.stat(path).is_directory:
        ctx.report(NotDirectoryError(f"{operand!r} is not a directory"), quote_if_needed(operand or ""))
        return None
    return path


def _resolve_operand(ctx: Context, flags: Flags, operand: str) -> str | None:
    """Return the path of *operand*, or report the error and return `None`."""
    try:
        if not flags.as_text:
            return resolve(ctx, absolute(ctx, operand) if flags.logical else operand, flags.missing)
        path = absolute(ctx, operand)
        if flags.missing is Missing.NONE:
            ctx.stat(path, follow=False)
        else:
            ctx.workspace.explain(path).require()
            _require_not_file(ctx, path if operand.endswith("/") else path.rpartition("/")[0] or "/")
    except (ClosedError, SessionMissingError):
        raise
    except CarrelError as error:
        if flags.quiet:
            ctx.status = 1
        else:
            ctx.report(error, quote_if_needed(operand))
        return None
    return path


def _require_not_file(ctx: Context, directory: str) -> None:
    if directory == "/" or not ctx.workspace.explain(directory).allowed:
        return
    with suppress(MissingError):
        if not ctx.stat(directory).is_directory:
            raise NotDirectoryError(f"{directory!r} is not a directory", path=directory)


def _is_within(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _relative(path: str, origin: str) -> str:
    parts, origin_parts = path.strip("/").split("/"), origin.strip("/").split("/")
    common = 0
    while common < min(len(parts), len(origin_parts)) and parts[common] == origin_parts[common]:
        common += 1
    return "/".join([".."] * (len(origin_parts) - common) + parts[common:]) or "."
