"""Wait for some time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from carrel.shell.command.context import Context
from carrel.shell.command.flags import UsageError

USAGE = "NUMBER[s|m|h|d]..."
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Flags:
    """Options of `sleep`."""


def run(ctx: Context, flags: Flags, operands: Sequence[str]) -> int:
    """Wait for the sum of the operands, or until the time limit of the command line."""
    if not operands:
        raise UsageError("missing operand", status=1)
    ctx.meter.wait(sum(_parse_seconds(operand) for operand in operands))
    return 0


def _parse_seconds(text: str) -> float:
    number = text[:-1] if text[-1:] in _UNITS else text
    try:
        seconds = float(number) * _UNITS.get(text[-1:], 1)
    except ValueError:
        seconds = -1.0
    if not seconds >= 0 or "_" in number:
        raise UsageError(f"invalid time interval '{text}'", status=1)
    return seconds if math.isfinite(seconds) else 1e9
