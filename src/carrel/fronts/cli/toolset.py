"""What the commands about tools share: whose tools are meant, and under which names."""

from __future__ import annotations

import os

import click

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
