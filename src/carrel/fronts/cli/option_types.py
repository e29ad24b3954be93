"""Option types shared by several commands: durations, limits, tool profiles and roles."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import NamedTuple

import click

NONE = "none"
MAX_TTL_SECONDS = 100 * 366 * 86_400
"""Longest TTL of a session: a hundred years."""

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile(r"([0-9]{1,12})([smhd]?)", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,18}", re.ASCII)


class OptionValue(NamedTuple):
    """The value of an option that was given; an option that was not given is `None` instead."""

    value: int | None
    """`None` for the word `none`."""


OptionParser = Callable[[click.Context, click.Parameter, str | None], OptionValue | None]
"""A click callback that parses the text of an option or argument."""


def parse_duration(ctx: click.Context, param: click.Parameter, text: str | None) -> OptionValue | None:
    """Parse `90`, `90s`, `15m`, `24h`, `7d` or `none` into seconds."""
    return OptionValue(None) if text == NONE else _parse_seconds(text, f", 7d or {NONE}")


def parse_finite_duration(ctx: click.Context, param: click.Parameter, text: str | None) -> OptionValue | None:
    """Parse `90`, `90s`, `15m`, `24h` or `7d` into seconds."""
    return _parse_seconds(text, " or 7d")


def _parse_seconds(text: str | None, last_examples: str) -> OptionValue | None:
    if text is None:
        return None
    match = _DURATION.fullmatch(text)
    seconds = int(match[1]) * _UNITS[match[2] or "s"] if match else 0
    if match and seconds > MAX_TTL_SECONDS:
        raise click.BadParameter(f"{text!r} is longer than a hundred years.")
    if seconds == 0:
        raise click.BadParameter(f"{text!r} is not a duration such as 90, 90s, 15m, 24h{last_examples}.")
    return OptionValue(seconds)


def limit_parser(maximum: int) -> OptionParser:
    """A parser of whole numbers up to *maximum*, or `none`."""

    def parse(ctx: click.Context, param: click.Parameter, text: str | None) -> OptionValue | None:
        if text is None:
            return None
        if text == NONE:
            return OptionValue(None)
        if not _NUMBER.fullmatch(text) or int(text) > maximum:
            raise click.BadParameter(f"{text!r} is not a whole number from 0 to {maximum}, nor {NONE}.")
        return OptionValue(int(text))

    return parse


def render_duration(seconds: float | None) -> str:
    """Render a duration as the command line accepts it, in the largest unit that divides it."""
    if seconds is None:
        return NONE
    for name, unit in _UNITS.items():
        if seconds % unit == 0:
            return f"{int(seconds // unit)}{name}"
    return f"{seconds}s"


DEFAULT_ROLE = "generalist"
"""The role of a session that has none."""
PROFILES = ("agent", "files", "editor", "coding", "mcp")
"""The values of `carrel.tools.core.spec.Profile`, repeated here so that `--help` loads no tools."""

profile_option = click.option(
    "--profile",
    type=click.Choice(PROFILES),
    default="agent",
    show_default=True,
    help="Set of tool names: carrel's own (agent), filesystem operations for workflows (files), the text"
    " editor and shell of Claude models (editor), names known to coding models (coding), or the reference"
    " filesystem server of MCP (mcp).",
)


def require_roles(*roles: str) -> None:
    """Require each of *roles* to be configured.

    Raises:
        BadParameter: A role is not configured, most likely because its name was mistyped.
    """
    from carrel.config.load import load

    known = load(os.environ).roles
    for role in roles:
        if role not in known:
            raise click.BadParameter(f"unknown role {role!r}; the configured roles are: {', '.join(known)}.")
