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
"""The values of `carrel.tools.core.formats.Format`, repeated here so that `--help` loads no tools."""


@click.command()
@click.option(
    "--role",
    "name",
    metavar="ROLE",
    shell_complete=completers.roles,
    help=f"List the tools of this role.  [default: {DEFAULT_ROLE}; at a service, the role of the key]",
)
@profile_option
@click.option(
    "--format",
    type=click.Choice(FORMATS),
    help="Print the schemas as one JSON list in the format of an API.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document with the schemas.")
@click.pass_obj
def tools(context: CliContext, name: str | None, profile: str, format: str | None, as_json: bool) -> None:
    """List the tools of a role.

    Roles and their tools are set in the configuration; an unknown role has no tools. The second column is the
    strongest effect of a tool: read files, write files, or run commands or code with the rights of the role.

    If the configuration names a service (sandbox.address), its tools are listed, as for `carrel tool`, unless
    --sessions-dir names a local directory.
    """
    from carrel.config.load import load

    settings = load(os.environ)
    if settings.sandbox_address and context.sessions_dir_option is None:
        _print_remote(settings, name, profile, format, as_json=as_json)
    else:
        _print_local(settings, name or DEFAULT_ROLE, profile, format, as_json=as_json)


def _print_remote(
    settings: Settings, name: str | None, profile: str, format: str | None, *, as_json: bool
) -> None:
    """Print the tools of the configured service."""
    from carrel.tools.core.spec import Profile
    from carrel.tools.core.table import TOOLS
    from carrel.tools.remote import RemoteTools

    address = settings.sandbox_address or ""
    remote = RemoteTools(
        address, "", role=name, profile=profile, key=settings.sandbox_key, ca=settings.sandbox_ca
    )
    with closing(remote):
        if format is not None:
            print_json(remote.schemas(format))
            return
        # A service of another version may have tools that are unknown here.
        known = TOOLS[Profile(profile)]
        offered = [known[each] for each in remote.names if each in known]
    if as_json:
        print_json({"role": name, "profile": profile, "tools": [_described(tool) for tool in offered]})
    else:
        _print(offered)
    if not offered:
        click.echo(f"carrel: no tools for this role and key at {address}", err=True)


def _print_local(settings: Settings, name: str, profile: str, format: str | None, *, as_json: bool) -> None:
    """Print the tools that the configuration gives to the role *name*."""
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

        options = ResolvedOptions.of(settings, {})
        facts = options.facts(role_run_location(role, options))
        print_json([render_tool(tool.load(facts.run_location), Format(format), facts) for tool in offered])
    elif as_json:
        print_json({"role": name, "profile": profile, "tools": [_described(tool) for tool in offered]})
    else:
        _print(offered)
    if unknown := unknown_tools(role):
        click.echo(
            f"carrel: the role {name!r} names unknown tools: {', '.join(map(repr, unknown))}",
            err=True,
        )
    if not offered:
        known = f"configured roles: {', '.join(display(each) for each in roles)}"
        click.echo(f"carrel: the role {name!r} has no tools; {known}", err=True)


def _described(tool: Tool) -> dict[str, object]:
    return {
        "name": tool.name,
        "effect": str(tool.effect),
        "summary": tool.summary,
        "schema": tool.load().schema(),
    }


def _print(offered: Iterable[Tool]) -> None:
    rows = [(tool.name, str(tool.effect), tool.summary) for tool in offered]
    width = max((len(name) for name, _, _ in rows), default=0)
    for name, effect, summary in rows:
        click.echo(f"{name:<{width}}  {effect:<5}  {summary}")
