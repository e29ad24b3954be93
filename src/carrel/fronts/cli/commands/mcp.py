"""`carrel mcp`: serve tools and files of sessions to one MCP client over standard streams."""

from __future__ import annotations

import sys
from dataclasses import replace

import click

from carrel.fronts.cli.completion import completers
from carrel.fronts.cli.context import CliContext
from carrel.fronts.cli.errors import requires_extra
from carrel.fronts.cli.option_types import DEFAULT_ROLE, PROFILES, require_roles
from carrel.fronts.cli.output import hint

CHOICES = (*PROFILES, "sessions")
DEFAULT = ("agent", "sessions")
WAITING = (
    "waiting for an MCP client on standard input, one JSON message per line;"
    " clients start this command themselves (Ctrl-C ends it)"
)


@click.command()
@click.option(
    "--session",
    metavar="SESSION",
    shell_complete=completers.sessions,
    help="Serve only this session; it is created if it is missing.",
)
@click.option(
    "--role",
    metavar="ROLE",
    shell_complete=completers.roles,
    help=f"Offer the tools of this role.  [default: the role of the session, else {DEFAULT_ROLE}]",
)
@click.option(
    "--profile",
    "profiles",
    type=click.Choice(CHOICES),
    multiple=True,
    default=DEFAULT,
    show_default=True,
    help="Set of tools, as in `carrel tools`; sessions adds the tools that manage sessions. May be repeated;"
    " of two tools with the same name the first is offered.",
)
@click.pass_obj
def mcp(context: CliContext, session: str | None, role: str | None, profiles: tuple[str, ...]) -> None:
    """Serve one MCP (Model Context Protocol) client over standard input and output.

    MCP clients start this command themselves. Without --session every tool takes the session as its first
    argument, and sessions are created on first use. With --profile mcp the tools are those of the reference
    filesystem server, as a drop-in replacement. To serve many clients over HTTP, use `carrel serve`; its
    endpoint is /mcp.
    """
    from carrel.paths.session_id import require_session_id

    if session is not None:
        require_session_id(session)
    if role is not None:
        require_roles(role)
    # Imported late: the server is slow to import, and its packages may not be installed.
    with requires_extra("mcp"):
        from carrel.fronts.mcp.transports.stdio_server import serve
    from carrel.fronts.mcp.client_context import ClientContext
    from carrel.service.authentication.authenticator import OPERATOR
    from carrel.service.service import Service

    caller = replace(OPERATOR, role=role, session=session)
    # One local caller, who could open the files anyway, so commands need no worker process.
    service = Service.from_env(root=context.sessions_dir_option, logger=context.logger(), walled=False)
    if sys.stdin.isatty():
        hint(WAITING)
    serve(service, ClientContext(caller=caller, profiles=profiles))
