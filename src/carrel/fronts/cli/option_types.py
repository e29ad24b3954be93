"""Option values that several commands take: durations, limits, tool profiles and roles."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import NamedTuple

import click

NONE = "none"
MAX_TTL_SECONDS = 100 * 366 * 86_400
"""A hundred years, the longest that a session may be idle."""

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile(r"([0-9]{1,12})([smhd]?)", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)


class OptionValue(NamedTuple):
    """What was given, as opposed to nothing given."""

    value: int | None
    """`None` if it was `none`."""


OptionParser = Callable[[click.Context, click.Parameter, str | None], OptionValue | None]
"""What `click` calls with the text of an option or an argument."""


def parse_duration(ctx: click.Context, param: click.Parameter, text: str | None) -> OptionValue | None:
    """Parse seconds from `90`, `90s`, `15m`, `24h` or `7d`, or `none`."""
    return OptionValue(None) if text == NONE else _seconds(text, f", 7d or {NONE}")


def parse_finite_duration(ctx: click.Context, param: click.Parameter, text: str | None) -> OptionValue | None:
    """Parse seconds from `90`, `90s`, `15m`, `24h` or `7d`."""
    return _seconds(text, " or 7d")


def _seconds(text: str | None, rest: str) -> OptionValue | None:
    if text is None:
        return None
    match = _DURATION.fullmatch(text)
    seconds = int(match[1]) * _UNITS[match[2] or "s"] if match else 0
    if match and seconds > MAX_TTL_SECONDS:
        raise click.BadParameter(f"{text!r} is longer than a hundred years.")
    if seconds == 0:
        raise click.BadParameter(f"{text!r} is no duration like 90, 90s, 15m, 24h{rest}.")
    return OptionValue(seconds)


def limit_parser(most: int) -> OptionParser:
    """A parser of whole numbers up to *most*, or `none`."""

    def parse(ctx: click.Context, param: click.Parameter, text: str | None) -> OptionValue | None:
        if text is None:
            return None
        if text == NONE:
            return OptionValue(None)
        if not _NUMBER.fullmatch(text) or int(text) > most:
            raise click.BadParameter(f"{text!r} is no whole number from 0 to {most}, nor {NONE}.")
        return OptionValue(int(text))

    return parse


def render_duration(seconds: float | None) -> str:
    """A duration as the command line takes it, in the largest unit that it is a multiple of."""
    if seconds is None:
        return NONE
    for name, unit in _UNITS.items():
        if seconds % unit == 0:
            return f"{int(seconds // unit)}{name}"
    return f"{seconds}s"


DEFAULT_ROLE = "generalist"
"""Whose tools are meant where nobody says it."""
PROFILES = ("agent", "files", "editor", "coding", "mcp")
"""Written out, so that the help loads no tools."""

profile_option = click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default="agent",
    show_default=True,
    help="Under which names: our own (agent), filesystem operations for workflows (files), the text editor"
    " and the shell of Claude models (editor), what coding models know (coding), those of the reference"
    " filesystem server of MCP (mcp).",
)


def require_roles(*roles: str) -> None:
    """Do nothing if the configuration has all of *roles*.

    Raises:
        BadParameter: It lacks one, most likely since its name was mistyped.
    """
    from carrel.config.load import load

    known = load(os.environ).roles
    for role in roles:
        if role not in known:
            raise click.BadParameter(f"there is no role {role!r}; there are: {', '.join(known)}.")
