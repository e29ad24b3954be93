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
"""The actor of these calls in the journal."""
POLL_SECONDS = 0.2
"""Interval at which a call is checked for Ctrl-C."""


@click.command()
@click.argument("session", shell_complete=completers.sessions)
@click.argument("name", shell_complete=completers.tools)
@click.argument("arguments", metavar="[JSON|-]", required=False)
@click.option(
    "--role",
    metavar="ROLE",
    shell_complete=completers.roles,
    help=f"Call the tool as this role.  [default: the role of the session, else {DEFAULT_ROLE}]",
)
@profile_option
@click.option(
    "--timeout-ms",
    type=click.IntRange(min=1),
    metavar="N",
    help="Time limit of one file operation, in milliseconds.  [default: files.timeout_ms]",
)
@click.option("--json", is_flag=True, expose_value=False, help="Print errors of this command as JSON, too.")
@click.pass_obj
def tool(
    context: CliContext,
    session: str,
    name: str,
    arguments: str | None,
    role: str | None,
    profile: str,
    timeout_ms: int | None,
) -> int:
    """Call a tool on the files of a session, creating the session if it is missing.

    The arguments are one JSON object, or - to read it from standard input; without them the tool gets an
    empty object. The result is one line of JSON on standard output, even if the tool failed; the exit status
    then follows from the error code. `carrel tools` lists the tools of a role.

    If the configuration names a service (sandbox.address), the tool is called there, unless --sessions-dir
    names a local directory.
    """
    parsed = _parse_json(_read_arguments(arguments))
    from carrel.config.load import load
    from carrel.service.error_status import error_status

    settings = load(os.environ)
    if settings.sandbox_address and context.sessions_dir_option is None:
        if timeout_ms is not None:
            raise click.UsageError("--timeout-ms is for local calls; this call goes to the service.")
        result = _call_remote(settings, session, name, parsed, role, profile)
    else:
        result = _call_local(context, session, name, parsed, role, profile, timeout_ms)
    click.echo(result.to_json())
    return 0 if result.success else error_status(result.code or "").exit_status


def _call_remote(
    settings: Settings,
    session: str,
    name: str,
    arguments: Any,  # Any: any JSON value
    role: str | None,
    profile: str,
) -> ToolResult:
    """Call the tool at the configured service."""
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
        return _call(tools, name, arguments)


def _call_local(
    context: CliContext,
    session: str,
    name: str,
    arguments: Any,  # Any: any JSON value
    role: str | None,
    profile: str,
    timeout_ms: int | None,
) -> ToolResult:
    """Call the tool on a session of the local sessions directory."""
    from carrel.paths.session_id import require_session_id
    from carrel.sandbox.engines import one_shot_engine
    from carrel.tools.toolbox import Toolbox

    require_session_id(session)
    with (
        context.manager() as manager,
        one_shot_engine() as engine,
        manager.get_workspace(session, actor=ACTOR) as workspace,
    ):
        if role is None:
            role = manager.status(session).record.role or DEFAULT_ROLE
        options: ToolOptions = {"engine": engine}
        if timeout_ms is not None:
            options["timeout_ms"] = timeout_ms
        with Toolbox(workspace, role, profile=profile, here=True, **options) as toolbox:
            return _call(toolbox, name, arguments)


def _read_arguments(arguments: str | None) -> str:
    if arguments is None:
        return "{}"
    if arguments != STREAM:
        return arguments
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"The arguments are not UTF-8: byte {error.start + 1} of standard input."
        ) from None


def _parse_json(text: str) -> Any:  # Any: any JSON value
    """Parse the arguments.

    Raises:
        UsageError: They are not valid JSON; the message names the position.
    """
    import json

    try:
        return json.loads(text, parse_constant=_reject_constant, parse_int=_parse_int)
    except json.JSONDecodeError as error:
        position = f"line {error.lineno}, column {error.colno}"
        raise click.UsageError(f"The arguments are not valid JSON at {position}: {error.msg}.") from None
    except ValueError as error:
        raise click.UsageError(f"The arguments are not valid JSON: {error}.") from None
    except RecursionError:
        raise click.UsageError("The arguments are not valid JSON: they are nested too deeply.") from None


def _reject_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _parse_int(digits: str) -> int:
    """Parse a whole number.

    Raises:
        ValueError: It has too many digits; the message omits Python's advice for programmers.
    """
    try:
        return int(digits)
    except ValueError:
        raise ValueError(f"a number of {len(digits)} digits is too long") from None


def _call(toolbox: Toolbox | RemoteTools, name: str, arguments: Any) -> ToolResult:  # Any: any JSON value
    """Call a tool; on Ctrl-C it is cancelled and awaited before anything is closed."""
    import asyncio

    async def call() -> ToolResult:
        task = asyncio.create_task(toolbox.acall(name, arguments))
        try:
            # A signal delivered to another thread does not end a wait.
            while not task.done():
                await asyncio.wait([task], timeout=POLL_SECONDS)
        finally:
            if task.cancel():
                await asyncio.wait([task])
        return task.result()

    return asyncio.run(call())
