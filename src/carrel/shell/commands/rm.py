"""Remove files and directories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Annotated

from carrel.errors import IsDirectoryError, MissingError, NotDirectoryError, NotEmptyError
from carrel.shell.command.access import PathAccess, writes
from carrel.shell.command.context import Context
from carrel.shell.command.flags import Opt, UsageError
from carrel.shell.command.paths import base_name, post_order
from carrel.shell.text.quoting import quote
from carrel.values import FileInfo

USAGE = "[OPTION]... [FILE]..."


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `rm`."""

    recursive: Annotated[
        bool, Opt("-r", "-R", "--recursive", help="remove directories and their contents")
    ] = False
    force: Annotated[bool, Opt("-f", "--force", help="ignore nonexistent files")] = False
    directories: Annotated[bool, Opt("-d", "--dir", help="remove empty directories too")] = False
    verbose: Annotated[bool, Opt("-v", "--verbose", help="print each removed file")] = False
    ask: Annotated[bool, Opt("-i", "-I", help="not supported: there are no prompts")] = False


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the operands, which are written."""
    return writes(operands)


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Remove each operand."""
    if flags.ask:
        raise UsageError("prompting is not supported; leave out -i and -I", hint=False)
    if not operands and not flags.force:
        raise UsageError("missing operand", status=1)
    for operand in operands:
        with ctx.reporting(operand, f"cannot remove {quote(operand)}"):
            try:
                _remove(ctx, flags, operand)
            except (MissingError, NotDirectoryError):
                if not flags.force or ctx.exists(operand):
                    raise
    return ctx.status


def _remove(ctx: Context, flags: Flags, operand: str) -> None:
    if flags.recursive and base_name(operand) in (".", ".."):
        ctx.error(f"refusing to remove '.' or '..' directory: skipping {quote(operand)}")
        return
    info = ctx.stat(operand, follow=False)
    if info.is_directory:
        _remove_directory(ctx, flags, operand, info)
        return
    ctx.workspace.remove(ctx.path(operand))
    _report_removed(ctx, flags, operand, info)


def _remove_directory(ctx: Context, flags: Flags, operand: str, info: FileInfo) -> None:
    if not flags.recursive and not flags.directories:
        raise IsDirectoryError(f"{operand!r} is a directory", path=operand)
    if info.path == "." and not flags.recursive:
        raise NotEmptyError(f"directory {operand!r} is not empty", path=operand)
    if info.path == ".":
        ctx.error(f"it is dangerous to operate recursively on {quote(operand)}")
        return
    if not flags.recursive:
        ctx.workspace.remove(ctx.path(operand))
    elif flags.verbose:
        _remove_each(ctx, flags, operand, info)
        return
    else:
        ctx.workspace.remove(ctx.path(operand), recursive=True)
    _report_removed(ctx, flags, operand, info)


def _remove_each(ctx: Context, flags: Flags, operand: str, info: FileInfo) -> None:
    """Remove a tree entry by entry, to report each; directories of entries that remain are kept."""
    kept: set[str] = set()
    for path, found in chain(post_order(ctx.walk(operand)), [(operand, info)]):
        if path.rstrip("/") not in kept:
            with ctx.reporting(path, f"cannot remove {quote(path)}"):
                ctx.workspace.remove(ctx.path(path))
                _report_removed(ctx, flags, path, found)
                continue
        kept.add(path.rpartition("/")[0])


def _report_removed(ctx: Context, flags: Flags, path: str, info: FileInfo) -> None:
    if flags.verbose:
        ctx.write_line(f"removed {'directory ' if info.is_directory else ''}{quote(path)}")
