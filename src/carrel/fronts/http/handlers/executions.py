"""Run commands and code, follow their output, and cancel them."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from carrel.errors import CarrelError, RequestError
from carrel.fronts.http.handlers.server_sent_events import (
    last_event_id,
    render_event,
    send_events,
    text_or_bytes,
    wants_events,
)
from carrel.fronts.http.handlers.tools import Context
from carrel.fronts.http.request import VARY, ClientDisconnected, Request, encode
from carrel.fronts.json_document import convert_document
from carrel.remote.json_codec import render, render_error
from carrel.service.error_status import error_status
from carrel.service.execution_request import CodeRequest, CommandRequest, ExecutionRequest
from carrel.service.executions import Execution, ExecutionResult

RESULT = Meta(
    extra_json_schema={
        "anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in ("ShellResult", "SandboxResult")]
    }
)


class ExecuteBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to run: exactly one of `command`, `code` and `file`."""

    command: str | None = None
    """A command line for the shell."""
    code: str | None = None
    """Python code for the guest."""
    file: str | None = None
    """A file of the workspace with Python code for the guest."""
    argv: tuple[str, ...] = ()
    env: dict[str, str] = {}
    stdin: str = ""
    stdin_encoding: Literal["utf-8", "base64"] = "utf-8"
    timeout_seconds: float | None = None
    cwd: str | None = None
    """Working directory of code; by default the workspace."""
    name: str | None = None
    """Name of code in tracebacks and `sys.argv[0]`."""
    shell: str | None = None
    """Name of a shell that keeps its working directory."""
    stateful: bool = False
    context: Context = Context()


class ExecutionState(Struct, frozen=True, kw_only=True):
    """An execution that runs or has recently ended."""

    execution_id: str
    session_id: str
    is_done: bool
    result: Annotated[Any, RESULT] | UnsetType = UNSET  # Any: a `ShellResult` or a `SandboxResult`, as JSON
    """The result of a command line or of code; absent while it runs."""


async def start(request: Request) -> None:
    """Run a command or code."""
    body = await request.document(ExecuteBody)
    requested = _execution_request(body)
    execution = await request.app.service.start(
        request.acting, request.session_id, requested, role=body.context.role
    )
    with execution.attached():
        if wants_events(request):
            await send_events(request, _events(execution, 0), is_finite=True)
        else:
            await _wait(request, execution)


def _execution_request(body: ExecuteBody) -> ExecutionRequest:
    if sum(each is not None for each in (body.command, body.code, body.file)) != 1:
        raise RequestError("exactly one of 'command', 'code' and 'file' must be given")
    stdin = _stdin(body)
    if body.command is None:
        return CodeRequest(
            code=body.code,
            file=body.file,
            argv=body.argv,
            env=body.env,
            stdin=stdin,
            timeout_seconds=body.timeout_seconds,
            cwd=body.cwd,
            name=body.name,
            stateful=body.stateful,
        )
    if body.argv or body.env or body.stateful or body.cwd or body.name:
        raise RequestError(
            "'argv', 'cwd', 'env', 'name' and 'stateful' can only be used with code, not with a command"
        )
    return CommandRequest(
        command=body.command, stdin=stdin, timeout_seconds=body.timeout_seconds, shell=body.shell
    )


def _stdin(body: ExecuteBody) -> bytes:
    try:
        if body.stdin_encoding == "utf-8":
            return body.stdin.encode("utf-8")
        return b64decode(body.stdin, validate=True)
    except ValueError:
        raise RequestError(f"'stdin' is not valid {body.stdin_encoding}") from None


async def _wait(request: Request, execution: Execution) -> None:
    """Answer when the execution ends; cancel it if the client disconnects first."""
    disconnected = asyncio.ensure_future(request.wait_disconnected())
    ending = asyncio.ensure_future(execution.result())
    try:
        await asyncio.wait((disconnected, ending), return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            execution.cancel()
            raise ClientDisconnected
        await request.send_encoded_json(200, await _render_ended(execution, ending.result()), [VARY])
    finally:
        disconnected.cancel()
        ending.cancel()
        await asyncio.wait((disconnected, ending))


async def watch(request: Request) -> None:
    """Resume the output of an execution, or return its state."""
    execution = request.app.service.execution(request.acting, request.session_id, request.path_values[1])
    if wants_events(request):
        with execution.attached():
            await send_events(request, _events(execution, last_event_id(request) or 0), is_finite=True)
        return
    if execution.is_done:
        body = await _render_ended(execution, await execution.result())
    else:
        body = encode(_state(execution))
    await request.send_encoded_json(200, body, [VARY])


async def cancel(request: Request) -> None:
    """Cancel an execution."""
    request.app.service.execution(request.acting, request.session_id, request.path_values[1]).cancel()
    await request.send_no_content()


async def _render_ended(execution: Execution, result: ExecutionResult) -> bytes:
    """Render the state and result of an ended execution as JSON."""
    return await convert_document(
        execution.kept_bytes, lambda: encode(_state(execution) | {"result": render(result)})
    )


def _state(execution: Execution) -> dict[str, object]:
    return {
        "execution_id": execution.id,
        "session_id": execution.session_id,
        "is_done": execution.is_done,
    }


async def _events(execution: Execution, after: int) -> AsyncIterator[bytes]:
    """Yield `start`, the output beyond the offset *after*, and then `exit` with the result, or `error`."""
    yield render_event("start", _state(execution), after)
    try:
        async for output in execution.events(after):
            after = output.offset
            yield render_event(output.stream, text_or_bytes(output.data), after)
        result = await execution.result()
    except CarrelError as error:
        yield render_event("error", render_error(error, retry=error_status(error.code).retry), after)
    else:
        yield await convert_document(
            execution.kept_bytes, lambda: render_event("exit", render(result), after)
        )
