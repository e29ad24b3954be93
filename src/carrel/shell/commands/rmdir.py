"""Remove empty directories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.errors import CarrelError, ClosedError, NotDirectoryError, NotEmptyError, SessionMissingError
from carrel.shell.command.access import PathAccess, writes
from carrel.shell.command.context import Context
from carrel.shell.command.destination import is_directory
from carrel.shell.command.flags import Opt, UsageError
from carrel.shell.command.paths import base_name
from carrel.shell.text.quoting import quote

USAGE = "[OPTION]... DIRECTORY..."


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `rmdir`."""

    parents: Annotated[
        bool, Opt("-p", "--parents", help="remove the parent directories in DIRECTORY too")
    ] = False
    ignore: Annotated[
        bool, Opt("--ignore-fail-on-non-empty", help="ignore directories that are not empty")
    ] = False
    verbose: Annotated[bool, Opt("-v", "--verbose", help="print each directory")] = False


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the operands, which are written."""
    return writes(operands)


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Remove each directory."""
    if not operands:
        raise UsageError("missing operand", status=1)
    for operand in operands:
        if not _remove(ctx, flags, operand, f"failed to remove {quote(operand)}"):
            continue
        path = operand.rstrip("/")
        while flags.parents and "/" in path:
            path = path.rpartition("/")[0].rstrip("/")
            if not path or not _remove(ctx, flags, path, f"failed to remove directory {quote(path)}"):
                break
    return ctx.status


def _remove(ctx: Context, flags: Flags, path: str, about: str) -> bool:
    """Remove one directory, and return whether that succeeded."""
    if flags.verbose:
        ctx.write_line(f"{ctx.name}: removing directory, {quote(path)}")
    if base_name(path) == ".":
        ctx.error(f"{about}: Invalid argument")
        return False
    try:
        # The trailing slash excludes files and links.
        ctx.workspace.remove(ctx.path(path).rstrip("/") + "/")
    except NotEmptyError as error:
        if not flags.ignore:
            ctx.report(error, about)
    except NotDirectoryError as error:
        if path.endswith("/") and is_directory(ctx, path):
            ctx.error(f"{about}: Symbolic link not followed")
        else:
            ctx.report(error, about)
    except (ClosedError, SessionMissingError):
        raise
    except CarrelError as error:
        ctx.report(error, about)
    else:
        return True
    return False
