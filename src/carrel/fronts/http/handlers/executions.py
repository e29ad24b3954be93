"""Run commands and code, follow their output, and cancel them."""

from __future__ import annotations

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator
from typing import Any, Literal

from msgspec import Struct

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


class ExecuteBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to run: exactly one of `command`, `code` and `file`."""

    command: str | None = None
    """A command line for the shell."""
    code: str | None = None
    """Python for the guest."""
    file: str | None = None
    """A file of the workspace with Python for the guest."""
    argv: tuple[str, ...] = ()
    env: dict[str, str] = {}
    stdin: str = ""
    stdin_encoding: Literal["utf-8", "base64"] = "utf-8"
    timeout_seconds: float | None = None
    shell: str | None = None
    """A name for a shell that remembers where it is."""
    stateful: bool = False
    context: Context = Context()


class ExecutionState(Struct, frozen=True, kw_only=True):
    """A command or code that runs, or has just ended."""

    execution_id: str
    session_id: str
    is_done: bool
    result: Any = None  # Any: a `ShellResult` or a `SandboxResult`, as JSON says it
    """How it ended; absent while it runs."""


async def start(call: Request) -> None:
    """Run a command or code."""
    body = await call.document(ExecuteBody)
    work = _work(body)
    execution = await call.app.service.start(call.who, call.session_id, work, role=body.context.role)
    with execution.attached():
        if wants_events(call):
            await send_events(call, _events(execution, 0), have_end=True)
        else:
            await _wait(call, execution)


def _work(body: ExecuteBody) -> ExecutionRequest:
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
            stateful=body.stateful,
        )
    if body.argv or body.env or body.stateful:
        raise RequestError("'argv', 'env' and 'stateful' are for code, not for a command")
    return CommandRequest(
        command=body.command, stdin=stdin, timeout_seconds=body.timeout_seconds, shell=body.shell
    )


def _stdin(body: ExecuteBody) -> bytes:
    try:
        if body.stdin_encoding == "utf-8":
            return body.stdin.encode("utf-8")
        return b64decode(body.stdin, validate=True)
    except ValueError:
        raise RequestError(f"'stdin' is no {body.stdin_encoding}") from None


async def _wait(call: Request, execution: Execution) -> None:
    """Answer when it has ended; a client that does not wait for that wants it stopped."""
    gone = asyncio.ensure_future(call.gone())
    ending = asyncio.ensure_future(execution.result())
    try:
        await asyncio.wait((gone, ending), return_when=asyncio.FIRST_COMPLETED)
        if not ending.done():
            execution.cancel()
            raise ClientDisconnected
        await call.json_text(200, await _ended(execution, ending.result()), [VARY])
    finally:
        gone.cancel()
        ending.cancel()
        await asyncio.wait((gone, ending))


async def watch(call: Request) -> None:
    """Go on with the output of what runs, or tell whether it still does."""
    execution = call.app.service.execution(call.who, call.session_id, call.values[1])
    if wants_events(call):
        with execution.attached():
            await send_events(call, _events(execution, last_event_id(call) or 0), have_end=True)
        return
    if execution.is_done:
        body = await _ended(execution, await execution.result())
    else:
        body = encode(_state(execution))
    await call.json_text(200, body, [VARY])


async def cancel(call: Request) -> None:
    """Stop what runs."""
    call.app.service.execution(call.who, call.session_id, call.values[1]).cancel()
    await call.empty()


async def _ended(execution: Execution, result: ExecutionResult) -> bytes:
    """The state of what has ended, as JSON."""
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
    """`start`, what is printed beyond the offset *after*, and `exit` with the result, or `error`."""
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
