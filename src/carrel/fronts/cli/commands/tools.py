"""`carrel tools`: list the tools of a role, or print their schemas."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING

import click

from carrel.fronts.cli.completion import completers
from carrel.fronts.cli.context import CliContext
from carrel.fronts.cli.option_types import DEFAULT_ROLE, profile_option
from carrel.fronts.cli.output import display, print_json

if TYPE_CHECKING:
    from carrel.config.settings import Settings
    from carrel.tools.core.spec import Tool

FORMATS = ("json", "openai", "openai-responses", "anthropic", "mcp")
"""Written out, so that the help loads no tools."""


@click.command()
@click.option(
    "--role",
    "name",
    metavar="ROLE",
    shell_complete=completers.roles,
    help=f"Whose tools.  [default: {DEFAULT_ROLE}, or the role of the key where a service is asked]",
)
@profile_option
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    help="Print their schemas as one JSON list, in the shape that a client takes.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document with their schemas.")
@click.pass_obj
def tools(place: CliContext, name: str | None, profile: str, format: str | None, as_json: bool) -> None:
    """List the tools that a role has.

    Roles and their tools are in the configuration; one that is not there has no tools. The effect is the most
    that a tool does: it reads files, writes them, or runs commands or code, which may do what the role may.

    Where the configuration names a service (sandbox.address), the tools are those that `carrel tool` finds
    there, unless --sessions-dir says which directory of this machine is meant.
    """
    from carrel.config.load import load

    settings = load(os.environ)
    if settings.sandbox_address and place.given is None:
        _print_theirs(settings, name, profile, format, as_json=as_json)
    else:
        _print_ours(settings, name or DEFAULT_ROLE, profile, format, as_json=as_json)


def _print_theirs(
    settings: Settings, name: str | None, profile: str, format: str | None, *, as_json: bool
) -> None:
    """The tools at the service that the configuration names."""
    from carrel.tools.core.spec import Profile
    from carrel.tools.core.table import TOOLS
    from carrel.tools.remote import RemoteTools

    address = settings.sandbox_address or ""
    far = RemoteTools(
        address, "", role=name, profile=profile, key=settings.sandbox_key, ca=settings.sandbox_ca
    )
    with closing(far):
        if format is not None:
            print_json(far.schemas(format))
            return
        # What a service of another version has besides is not known here.
        known = TOOLS[Profile(profile)]
        offered = [known[each] for each in far.names if each in known]
    if as_json:
        print_json({"role": name, "profile": profile, "tools": [_described(tool) for tool in offered]})
    else:
        _print(offered)
    if not offered:
        click.echo(f"carrel: there are no tools for this role and key at {address}", err=True)


def _print_ours(settings: Settings, name: str, profile: str, format: str | None, *, as_json: bool) -> None:
    """The tools as the configuration gives them to the role *name*."""
    from carrel.policy.roles import Role
    from carrel.tools.core.spec import Profile
    from carrel.tools.core.table import tools_of, unknown_tools

    roles = settings.roles
    role = Role.find(name, roles)
    offered = tools_of(role, Profile(profile)).values()
    if format is not None:
        from carrel.tools.core.formats import Format, render_tool
        from carrel.tools.core.options import ResolvedOptions
        from carrel.tools.core.run_location import role_run_location

        where = role_run_location(role, ResolvedOptions.of(settings, {}))
        print_json([render_tool(tool.load(where), Format(format)) for tool in offered])
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
        known = f"the roles are: {', '.join(display(each) for each in roles)}"
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
