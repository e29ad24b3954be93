"""Print the whole path of a file."""

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
        Opt("-e", "--canonicalize-existing", const=Missing.NONE, help="all of the path must exist"),
        Opt("-m", "--canonicalize-missing", const=Missing.ALL, help="nothing of it need exist"),
    ] = Missing.LAST
    as_text: Annotated[
        bool,
        Opt("-s", "--strip", "--no-symlinks", help="do not follow links"),
        Opt("-P", "--physical", const=False, help="follow links, as it does anyway"),
    ] = False
    logical: Annotated[bool, Opt("-L", "--logical", help="take .. as text before links are followed")] = False
    quiet: Annotated[bool, Opt("-q", "--quiet", help="print no errors")] = False
    zero: Annotated[bool, Opt("-z", "--zero", help="end each path with a NUL, not a newline")] = False
    relative_to: Annotated[
        str | None, Opt("--relative-to", metavar="DIR", help="print paths as they are seen from DIR")
    ] = None
    relative_base: Annotated[
        str | None, Opt("--relative-base", metavar="DIR", help="the same, but only of those beneath DIR")
    ] = None


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """It would look at each operand."""
    return inspects(operands)


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Print where each operand really is."""
    if not operands:
        raise UsageError("missing operand", status=1)
    base = _directory(ctx, flags, flags.relative_base)
    origin = _directory(ctx, flags, flags.relative_to) or base
    if ctx.status:
        return ctx.status
    if base is not None and not _is_beneath(origin or base, base):
        base = origin = None
    end = b"\0" if flags.zero else b"\n"
    for operand in operands:
        path = _real(ctx, flags, operand)
        if path is not None:
            if origin is not None and (base is None or _is_beneath(path, base)):
                path = _relative(path, origin)
            ctx.write(encode(path) + end)
    return ctx.status


def _directory(ctx: Context, flags: Flags, operand: str | None) -> str | None:
    path = None if operand is None else _real(ctx, flags, operand)
    if path is not None and flags.missing is Missing.NONE and not ctx.stat(path).is_directory:
        ctx.report(NotDirectoryError(f"{operand!r} is not a directory"), quote_if_needed(operand or ""))
        return None
    return path


def _real(ctx: Context, flags: Flags, operand: str) -> str | None:
    """The path of *operand*, or `None` after it was told why there is none."""
    try:
        if not flags.as_text:
            return resolve(ctx, absolute(ctx, operand) if flags.logical else operand, flags.missing)
        path = absolute(ctx, operand)
        if flags.missing is Missing.NONE:
            ctx.stat(path, follow=False)
        else:
            ctx.workspace.explain(path).require()
            _require_no_file(ctx, path if operand.endswith("/") else path.rpartition("/")[0] or "/")
    except (ClosedError, SessionMissingError):
        raise
    except CarrelError as error:
        if flags.quiet:
            ctx.status = 1
        else:
            ctx.report(error, quote_if_needed(operand))
        return None
    return path


def _require_no_file(ctx: Context, directory: str) -> None:
    if directory == "/" or not ctx.workspace.explain(directory).allowed:
        return
    with suppress(MissingError):
        if not ctx.stat(directory).is_directory:
            raise NotDirectoryError(f"{directory!r} is not a directory", path=directory)


def _is_beneath(path: str, directory: str) -> bool:
    return path == directory or path.startswith(directory.rstrip("/") + "/")


def _relative(path: str, origin: str) -> str:
    parts, above = path.strip("/").split("/"), origin.strip("/").split("/")
    same = 0
    while same < min(len(parts), len(above)) and parts[same] == above[same]:
        same += 1
    return "/".join([".."] * (len(above) - same) + parts[same:]) or "."
