"""Move or rename files and directories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.errors import IntoItselfError
from carrel.shell.command.access import PathAccess, writes
from carrel.shell.command.context import Context
from carrel.shell.command.destination import (
    SourceTarget,
    is_same_file,
    source_targets,
    stat_if_exists,
    target_accesses,
)
from carrel.shell.command.flags import Opt, UsageError
from carrel.shell.command.paths import base_name
from carrel.shell.text.quoting import quote
from carrel.values import FileInfo

USAGE = "[OPTION]... SOURCE... TARGET"


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `mv`."""

    existing: Annotated[
        str,
        Opt("-f", "--force", const="replace", help="overwrite existing files; this is the default"),
        Opt("-n", "--no-clobber", const="keep", help="do not overwrite existing files"),
        Opt("-i", "--interactive", const="ask", help="not supported: there are no prompts"),
    ] = "replace"
    verbose: Annotated[bool, Opt("-v", "--verbose", help="print each moved file")] = False
    directory: Annotated[
        str | None,
        Opt("-t", "--target-directory", metavar="DIRECTORY", help="move all sources into DIRECTORY"),
    ] = None
    plain_target: Annotated[
        bool, Opt("-T", "--no-target-directory", help="treat TARGET as a file, not a directory")
    ] = False
    update: Annotated[bool, Opt("-u", "--update", help="overwrite only older files")] = False


def accesses(flags: Flags, operands: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the sources and targets, which are written."""
    sources, targets = target_accesses(operands, flags.directory)
    yield from writes(sources)
    yield from targets


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Move each source."""
    if flags.existing == "ask":
        raise UsageError("prompting is not supported; leave out -i", hint=False)
    for pair in source_targets(ctx, operands, directory=flags.directory, plain_target=flags.plain_target):
        _move(ctx, flags, pair)
    return ctx.status


def _move(ctx: Context, flags: Flags, pair: SourceTarget) -> None:
    source, target = pair
    info = before = None
    with ctx.reporting(source, f"cannot stat {quote(source)}"):
        info = ctx.stat(source, follow=False)
    if info is None:
        return
    with ctx.reporting(target, f"cannot stat {quote(target)}"):
        before = stat_if_exists(ctx, target, follow=False)
        if before is None or _may_replace(ctx, flags, info, before, pair):
            _rename(ctx, flags, pair)


def _may_replace(ctx: Context, flags: Flags, info: FileInfo, before: FileInfo, pair: SourceTarget) -> bool:
    source, target = pair
    if flags.existing == "keep":
        return False
    if is_same_file(info, before):
        ctx.error(f"{quote(source)} and {quote(target)} are the same file")
    elif info.is_directory and not before.is_directory:
        ctx.error(f"cannot overwrite non-directory {quote(target)} with directory {quote(source)}")
    elif before.is_directory and not info.is_directory:
        ctx.error(f"cannot overwrite directory {quote(target)} with non-directory")
    else:
        return not flags.update or before.modified_ns < info.modified_ns
    return False


def _rename(ctx: Context, flags: Flags, pair: SourceTarget) -> None:
    source, target = pair
    if base_name(source) in (".", ".."):
        ctx.error(f"cannot move {quote(source)} to {quote(target)}: Device or resource busy")
        return
    with ctx.reporting(source, f"cannot move {quote(source)} to {quote(target)}"):
        try:
            ctx.workspace.move(ctx.path(source), ctx.path(target), overwrite=True)
        except IntoItselfError:
            ctx.error(f"cannot move {quote(source)} to a subdirectory of itself, {quote(target)}")
            return
        if flags.verbose:
            ctx.write_line(f"renamed {quote(source)} -> {quote(target)}")
