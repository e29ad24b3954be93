"""`carrel mcp`: serve tools and files of sessions to one MCP client over standard streams."""

from __future__ import annotations

from dataclasses import replace

import click

from carrel.fronts.cli.completion import completers
from carrel.fronts.cli.context import CliContext
from carrel.fronts.cli.errors import requires_extra
from carrel.fronts.cli.option_types import DEFAULT_ROLE, PROFILES, require_roles

CHOICES = (*PROFILES, "sessions")
DEFAULT = ("agent", "sessions")


@click.command()
@click.option(
    "--session",
    metavar="SESSION",
    shell_complete=completers.sessions,
    help="The one session that is served; made if it is missing.",
)
@click.option(
    "--role",
    metavar="ROLE",
    shell_complete=completers.roles,
    help=f"Whose tools.  [default: the role of the session, else {DEFAULT_ROLE}]",
)
@click.option(
    "--profile",
    "profiles",
    type=click.Choice(CHOICES),
    multiple=True,
    default=DEFAULT,
    show_default=True,
    help="Which tools, as in `carrel tools`; sessions stands for those about sessions. May be given more than"
    " once: of two tools with one name the first is offered.",
)
@click.pass_obj
def mcp(place: CliContext, session: str | None, role: str | None, profiles: tuple[str, ...]) -> None:
    """Serve one client of the Model Context Protocol over standard input and output.

    A client starts this itself. Without --session every tool takes the session as its first argument, and a
    session is made when it is first named. With --profile mcp the tools are those of the reference filesystem
    server, so that its clients can switch. Many clients are served over HTTP by `carrel serve`, at /mcp.
    """
    from carrel.paths.session_id import require_session_id

    if session is not None:
        require_session_id(session)
    if role is not None:
        require_roles(role)
    # Late: what serves takes long to import, and its packages may not be installed.
    with requires_extra("mcp"):
        from carrel.fronts.mcp.transports.stdio_server import serve
    from carrel.fronts.mcp.client_context import ClientContext
    from carrel.service.authentication.authenticator import OPERATOR
    from carrel.service.service import Service

    caller = replace(OPERATOR, role=role, session=session)
    # One local caller, who could open the files anyway: no process between them and their commands.
    service = Service.from_env(root=place.given, logger=place.logger(), walled=False)
    serve(service, ClientContext(caller=caller, profiles=profiles))
