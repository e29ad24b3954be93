"""`carrel tools`: the tools of a role."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from carrel.fronts.cli.report import print_json, shown
from carrel.fronts.cli.toolset import DEFAULT_ROLE, profile_option

if TYPE_CHECKING:
    from carrel.tools.spec import Tool

FORMATS = ("json", "openai", "openai-responses", "anthropic", "mcp")
"""Written out, so that the help loads no tools."""


@click.command()
@click.option("--role", "name", default=DEFAULT_ROLE, metavar="ROLE", show_default=True, help="Whose tools.")
@profile_option
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    help="Print their schemas as one JSON list, in the shape that a client takes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document with their schemas.")
def tools(name: str, profile: str, format: str | None, as_json: bool) -> None:
    """List the tools that a role has.

    Roles and their tools are in the configuration; one that is not there has no tools. The effect is the most
    that a tool does: it reads files, writes them, or runs commands or code, which may do what the role may.

    \b
    carrel tools
    carrel tools --role developer --format anthropic
    """  # noqa: D301  # the sign with which click keeps lines apart
    from carrel.config.load import load
    from carrel.policy.roles import Role
    from carrel.tools.spec import Profile
    from carrel.tools.table import tools_of, unknown_tools

    roles = load(os.environ).roles
    role = Role.find(name, roles)
    offered = tools_of(role, Profile(profile)).values()
    if format is not None:
        from carrel.tools.formats import Format, render

        print_json([render(tool.load(), Format(format)) for tool in offered])
    elif as_json:
        print_json({"role": name, "profile": profile, "tools": [_described(tool) for tool in offered]})
    else:
        _print(offered)
    if unknown := unknown_tools(role):
        click.echo(
            f"carrel: no tool is called {', '.join(map(repr, unknown))}, which the role {name!r} names",
            err=True,
        )
    if not offered:
        known = f"the roles are: {', '.join(shown(each) for each in roles)}"
        click.echo(f"carrel: the role {name!r} has no tools; {known}", err=True)


def _described(tool: Tool) -> dict[str, object]:
    return {
        "name": tool.name,
        "effect": str(tool.effect),
        "summary": tool.summary,
        "schema": tool.load().parameters.schema(),
    }


def _print(offered: Iterable[Tool]) -> None:
    rows = [(tool.name, str(tool.effect), tool.summary) for tool in offered]
    width = max((len(name) for name, _, _ in rows), default=0)
    for name, effect, summary in rows:
        click.echo(f"{name:<{width}}  {effect:<5}  {summary}")
