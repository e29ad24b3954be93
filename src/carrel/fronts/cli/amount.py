"""Amounts as the command line takes them: durations and ceilings, of which either may be `none`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import click

NONE = "none"
LONGEST_SECONDS = 100 * 366 * 86_400
"""A hundred years, the longest that a session may be idle."""

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile(r"([0-9]{1,12})([smhd]?)", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)


class Amount(NamedTuple):
    """What was given, as opposed to nothing given."""

    value: int | None
    """`None` if it was `none`."""


Parser = Callable[[click.Context, click.Parameter, str | None], Amount | None]
"""What `click` calls with the text of an option or an argument."""


def duration(ctx: click.Context, param: click.Parameter, text: str | None) -> Amount | None:
    """Parse seconds from `90`, `90s`, `15m`, `24h` or `7d`, or `none`."""
    return Amount(None) if text == NONE else _seconds(text, f", 7d or {NONE}")


def finite_duration(ctx: click.Context, param: click.Parameter, text: str | None) -> Amount | None:
    """Parse seconds from `90`, `90s`, `15m`, `24h` or `7d`."""
    return _seconds(text, " or 7d")


def _seconds(text: str | None, rest: str) -> Amount | None:
    if text is None:
        return None
    match = _DURATION.fullmatch(text)
    seconds = int(match[1]) * _UNITS[match[2] or "s"] if match else 0
    if match and seconds > LONGEST_SECONDS:
        raise click.BadParameter(f"{text!r} is longer than a hundred years.")
    if seconds == 0:
        raise click.BadParameter(f"{text!r} is no duration like 90, 90s, 15m, 24h{rest}.")
    return Amount(seconds)


def ceiling(most: int) -> Parser:
    """A parser of whole numbers up to *most*, or `none`."""

    def parse(ctx: click.Context, param: click.Parameter, text: str | None) -> Amount | None:
        if text is None:
            return None
        if text == NONE:
            return Amount(None)
        if not _NUMBER.fullmatch(text) or int(text) > most:
            raise click.BadParameter(f"{text!r} is no whole number from 0 to {most}, nor {NONE}.")
        return Amount(int(text))

    return parse


def render_duration(seconds: float | None) -> str:
    """A duration as the command line takes it, in the largest unit that it is a multiple of."""
    if seconds is None:
        return NONE
    for name, unit in _UNITS.items():
        if seconds % unit == 0:
            return f"{int(seconds // unit)}{name}"
    return f"{seconds}s"
