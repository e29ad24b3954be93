"""`carrel tool`: call one tool on the files of a session."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any, NoReturn

import click

from carrel.fronts.cli.completion import completers
from carrel.fronts.cli.context import CliContext
from carrel.fronts.cli.errors import requires_extra
from carrel.fronts.cli.local_files import STREAM
from carrel.fronts.cli.option_types import DEFAULT_ROLE, profile_option

if TYPE_CHECKING:
    from carrel.config.settings import Settings
    from carrel.tools.core.options import ToolOptions
    from carrel.tools.remote import RemoteTools
    from carrel.tools.toolbox import Toolbox
    from carrel.values import ToolResult

ACTOR = "agent"
"""Who the journal names."""
LOOK_SECONDS = 0.2


@click.command()
@click.argument("session", shell_complete=completers.sessions)
@click.argument("name", shell_complete=completers.tools)
@click.argument("arguments", metavar="[JSON|-]", required=False)
@click.option(
    "--role",
    metavar="ROLE",
    shell_complete=completers.roles,
    help=f"Who calls.  [default: the role of the session, else {DEFAULT_ROLE}]",
)
@profile_option
@click.option(
    "--timeout-ms",
    type=click.IntRange(min=1),
    metavar="N",
    help="Longest time of an operation on files.  [default: files.timeout_ms]",
)
@click.option("--json", is_flag=True, expose_value=False, help="Print errors of this command as JSON too.")
@click.pass_obj
def tool(
    place: CliContext,
    session: str,
    name: str,
    arguments: str | None,
    role: str | None,
    profile: str,
    timeout_ms: int | None,
) -> int:
    """Call a tool on the files of a session, which is made if it is missing.

    The arguments are one JSON object, or - for standard input; without them the tool is given none. Its
    answer is one line of JSON on standard output, also if it failed: the exit status is then that of the
    error's code. `carrel tools` lists the tools of a role.

    Where the configuration names a service (sandbox.address), the call goes to the session there, unless
    --sessions-dir says which directory of this machine is meant.
    """
    given = _parsed(_text(arguments))
    from carrel.config.load import load
    from carrel.service.error_status import error_status

    settings = load(os.environ)
    if settings.sandbox_address and place.given is None:
        if timeout_ms is not None:
            raise click.UsageError("--timeout-ms is for calls that run here, and this one goes to a service.")
        result = _called_there(settings, session, name, given, role, profile)
    else:
        result = _called_here(place, session, name, given, role, profile, timeout_ms)
    click.echo(result.to_json())
    return 0 if result.success else error_status(result.code or "").exit_status


def _called_there(
    settings: Settings,
    session: str,
    name: str,
    arguments: Any,  # Any: whatever JSON can say
    role: str | None,
    profile: str,
) -> ToolResult:
    """Call the tool of the service that the configuration names."""
    with requires_extra("client"):
        from carrel.tools.remote import RemoteTools

    tools = RemoteTools(
        settings.sandbox_address or "",
        session,
        role=role,
        profile=profile,
        key=settings.sandbox_key,
        ca=settings.sandbox_ca,
    )
    with closing(tools):
        return _called(tools, name, arguments)


def _called_here(
    place: CliContext,
    session: str,
    name: str,
    arguments: Any,  # Any: whatever JSON can say
    role: str | None,
    profile: str,
    timeout_ms: int | None,
) -> ToolResult:
    """Call the tool on a session of the sessions directory."""
    from carrel.paths.session_id import require_session_id
    from carrel.sandbox.engines import one_shot_engine
    from carrel.tools.toolbox import Toolbox

    require_session_id(session)
    with (
        place.manager() as manager,
        one_shot_engine() as engine,
        manager.get_workspace(session, actor=ACTOR) as workspace,
    ):
        if role is None:
            role = manager.status(session).record.role or DEFAULT_ROLE
        options: ToolOptions = {"engine": engine}
        if timeout_ms is not None:
            options["timeout_ms"] = timeout_ms
        with Toolbox(workspace, role, profile=profile, here=True, **options) as toolbox:
            return _called(toolbox, name, arguments)


def _text(arguments: str | None) -> str:
    if arguments is None:
        return "{}"
    if arguments != STREAM:
        return arguments
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise click.UsageError(f"JSON is not UTF-8: byte {error.start + 1} of standard input.") from None


def _parsed(text: str) -> Any:  # Any: whatever JSON can say
    """What *text* says.

    Raises:
        UsageError: It is not JSON; says where.
    """
    import json

    try:
        return json.loads(text, parse_constant=_refused, parse_int=_whole)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise click.UsageError(f"JSON cannot be read at {place}: {error.msg}.") from None
    except ValueError as error:
        raise click.UsageError(f"JSON cannot be read: {error}.") from None
    except RecursionError:
        raise click.UsageError("JSON cannot be read: it is nested too deeply.") from None


def _refused(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number of JSON")


def _whole(digits: str) -> int:
    """The number that *digits* say.

    Raises:
        ValueError: They are too many, said without what Python would recommend.
    """
    try:
        return int(digits)
    except ValueError:
        raise ValueError(f"a number of {len(digits)} digits is too long") from None


def _called(toolbox: Toolbox | RemoteTools, name: str, arguments: Any) -> ToolResult:  # Any: what JSON says
    """Call a tool so that Ctrl-C stops it before anything is closed."""
    import asyncio

    async def call() -> ToolResult:
        calling = asyncio.create_task(toolbox.acall(name, arguments))
        try:
            # A signal that another thread of ours was given does not end a wait.
            while not calling.done():
                await asyncio.wait([calling], timeout=LOOK_SECONDS)
        finally:
            if calling.cancel():
                await asyncio.wait([calling])
        return calling.result()

    return asyncio.run(call())
