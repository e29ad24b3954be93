"""Copy standard input to files and standard output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from carrel.shell.command.access import PathAccess, writes
from carrel.shell.command.context import NULL, STDIN, Context
from carrel.shell.command.flags import Opt
from carrel.shell.runtime.redirect import AppendedFile, ReplacedFile
from carrel.shell.streams import NullSink, PipeClosed, Sink

USAGE = "[OPTION]... [FILE]..."


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `tee`."""

    append: Annotated[bool, Opt("-a", "--append", help="append to the files, do not overwrite them")] = False
    ignored: Annotated[bool, Opt("-i", "--ignore-interrupts", help="ignored"), Opt("-p", help="ignored")] = (
        False
    )


def accesses(flags: Flags, files: Sequence[str]) -> Iterable[PathAccess]:
    """Declare the files that are written."""
    return writes(file for file in files if file != NULL)


def run(ctx: Context, flags: Flags, files: Sequence[str]) -> int:
    """Copy standard input to each file and to standard output."""
    sinks: dict[Sink, str] = {}
    for file in files:
        with ctx.reporting(file):
            sinks[_open(ctx, flags, file)] = file
    try:
        _copy(ctx, list(sinks))
    finally:
        for sink, file in sinks.items():
            with ctx.reporting(file):
                sink.close()
    return ctx.status


def _open(ctx: Context, flags: Flags, file: str) -> Sink:
    if file == NULL:
        return NullSink()
    path = ctx.path(file)
    return AppendedFile(ctx.workspace, path) if flags.append else ReplacedFile(ctx.workspace, path, ctx.meter)


def _copy(ctx: Context, sinks: Iterable[Sink]) -> None:
    open_sinks = list(sinks)
    for chunk in ctx.chunks(STDIN):
        ctx.write(chunk)
        for sink in list(open_sinks):
            try:
                sink.write(chunk)
            except PipeClosed:
                # The error is reported when the sink is closed.
                open_sinks.remove(sink)
