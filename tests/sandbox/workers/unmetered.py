"""A fault, loaded into worker processes: nothing is charged any more, and some commands behave badly."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from carrel.shell.budget import Meter
from carrel.shell.command.context import Context
from carrel.shell.command.table import COMMANDS, CommandEffect, CommandSpec


def _nothing(*_: object) -> None:
    """Charge nothing."""


def _all(_: Meter, count: int) -> int:
    return count


def hang(ctx: Context, argv: Sequence[str]) -> int:
    """Print, and go on for ever."""
    ctx.write(b"begun\n")
    ctx.flush()
    while True:
        pass


def hog(ctx: Context, argv: Sequence[str]) -> int:
    """Take all memory there is, and print a line for each MiB."""
    held = []
    while True:
        held.append(bytearray(b"x") * 2**20)
        ctx.write(b"1\n")
        ctx.flush()


def crash(ctx: Context, argv: Sequence[str]) -> int:
    """End the process by a signal."""
    ctx.write(b"begun\n")
    ctx.flush()
    os.kill(os.getpid(), getattr(signal, argv[0]))
    return 0


def mistake(ctx: Context, argv: Sequence[str]) -> int:
    """Fail as no command should."""
    raise KeyError("secret")


def process(ctx: Context, argv: Sequence[str]) -> int:
    """Print which process this is."""
    ctx.write_line(str(os.getpid()))
    return 0


def _install() -> None:
    changed: dict[str, Any] = {
        "hold": _nothing,
        "check": _nothing,
        "charge_entries": _nothing,
    }  # Any: methods
    for name, method in {**changed, "charge_output": _all}.items():
        setattr(Meter, name, method)
    for run in (hang, hog, crash, mistake, process):
        module = ModuleType(f"carrel.shell.commands.{run.__name__}")
        module.run = run  # type: ignore[attr-defined]  # a module of a command
        sys.modules[module.__name__] = module
        COMMANDS[run.__name__] = CommandSpec(run.__name__, "behave badly", CommandEffect.NONE)


if "carrel.sandbox.workers.zygote" in sys.modules:
    _install()
