"""Tools about sessions themselves: create, inspect, reset and delete them, and run code in them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from carrel.errors import ToolError
from carrel.fronts.mcp import available_runtimes
from carrel.fronts.mcp.client_context import ClientContext
from carrel.fronts.mcp.progress import Report, with_progress
from carrel.policy.roles import CODE, WRITING, Role
from carrel.remote.json_codec import render
from carrel.runtimes.result import SandboxResult
from carrel.service.execution_request import CodeRequest
from carrel.service.service import Service
from carrel.service.sessions.info import NewSession
from carrel.tools.core.schema import Param, Parameters
from carrel.values import UNSET, ToolResult

CODE_CHARACTERS = 10_000
"""Longest code that is run."""
PAGE = 100


class About(StrEnum):
    """What a tool is about."""

    ONE = "one session"
    MANY = "sessions"
    """It is of no use to a caller who is bound to one."""
    NONE = "no session"


class SessionToolCall(NamedTuple):
    """One call of such a tool."""

    service: Service
    visit: ClientContext
    session: str
    """The one that it is about; empty for a tool that is about none."""
    arguments: Any  # Any: the dataclass of the tool
    report: Report
    progress_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionTool:
    """All that is known about one tool."""

    name: str
    summary: str
    notes: str
    parameters: Parameters[Any]
    run: Callable[[SessionToolCall], Awaitable[ToolResult]]
    needs: str | None = None
    """The tool that a role must have for this one."""
    about: About = About.ONE
    reads: bool = False
    destructive: bool = False
    idempotent: bool = True

    def allowed(self, visit: ClientContext, role: Role) -> bool:
        """Whether the caller is offered it: its role may, and it is not bound where that makes no sense."""
        if visit.is_bound and self.about is About.MANY:
            return False
        return self.needs is None or role.allows(self.needs)

    def render(self) -> dict[str, Any]:  # Any: whatever JSON can say
        """What a client is told about it."""
        return {
            "name": self.name,
            "title": self.summary,
            "description": f"{self.summary}. {self.notes}".strip(),
            "inputSchema": self.parameters.schema(),
            "annotations": {
                "readOnlyHint": self.reads,
                "destructiveHint": self.destructive,
                "idempotentHint": self.idempotent,
                "openWorldHint": False,
            },
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class NoArguments:
    """No arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSessionArguments:
    """Arguments of `create_session`."""

    session_id: Annotated[str | None, Param("Its name; a fresh one by default", minimum=1)] = None
    ttl_seconds: Annotated[
        int | None, Param("It ends when it is not used for so long; as configured by default", minimum=1)
    ] = None


async def create_session(call: SessionToolCall) -> ToolResult:
    """Make a session."""
    asked: CreateSessionArguments = call.arguments
    made = await call.service.sessions.create(
        call.visit.caller,
        NewSession(session_id=asked.session_id, ttl_seconds=asked.ttl_seconds or UNSET),
    )
    return ToolResult(success=True, output=render(made))


async def destroy_session(call: SessionToolCall) -> ToolResult:
    """End a session and delete its files."""
    await call.service.sessions.delete(call.visit.caller, call.session)
    return ToolResult(success=True, output=f"Session {call.session} is gone, with all its files")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListSessionsArguments:
    """Arguments of `get_active_sessions`."""

    after: Annotated[str | None, Param("`next` of an answer, to go on from there")] = None
    count: Annotated[int, Param("How many at most", minimum=1, maximum=1000)] = PAGE


async def get_active_sessions(call: SessionToolCall) -> ToolResult:
    """List the caller's sessions."""
    asked: ListSessionsArguments = call.arguments
    page = await call.service.sessions.list(call.visit.caller, after=asked.after, count=asked.count)
    return ToolResult(success=True, output=render(page))


async def get_workspace_info(call: SessionToolCall) -> ToolResult:
    """Tell what is known about a session."""
    return ToolResult(
        success=True, output=render(await call.service.sessions.status(call.visit.caller, call.session))
    )


async def reset_workspace(call: SessionToolCall) -> ToolResult:
    """Delete all files of a session."""
    await call.service.sessions.reset(call.visit.caller, call.session)
    return ToolResult(success=True, output=f"Session {call.session} has no files any more")


async def list_runtimes(call: SessionToolCall) -> ToolResult:
    """Tell what code may be written in."""
    return ToolResult(success=True, output={"runtimes": available_runtimes.runtimes()})


async def list_available_packages(call: SessionToolCall) -> ToolResult:
    """Tell what code can import."""
    return ToolResult(success=True, output={available_runtimes.PYTHON: available_runtimes.packages()})


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecuteCodeArguments:
    """Arguments of `execute_code`."""

    code: Annotated[str, Param("The source; print what you want to see", minimum=1, maximum=CODE_CHARACTERS)]
    language: Annotated[str, Param("What it is written in")] = available_runtimes.PYTHON
    timeout: Annotated[int, Param("Longest time it may take, in seconds", minimum=1, maximum=300)] = 30


async def execute_code(call: SessionToolCall) -> ToolResult:
    """Run code on the files of a session."""
    asked: ExecuteCodeArguments = call.arguments
    if asked.language != available_runtimes.PYTHON:
        raise ToolError(
            "arguments",
            f"Unsupported language: {asked.language[:40]!r}; the languages are: {available_runtimes.PYTHON}",
        )
    code = CodeRequest(code=asked.code, timeout_seconds=asked.timeout)
    execution = await call.service.start(call.visit.caller, call.session, code, create=True)
    printed = 0

    async def ended() -> SandboxResult:
        nonlocal printed
        async for output in execution.events():
            printed = output.offset
        result = await execution.result()
        assert isinstance(result, SandboxResult)  # noqa: S101  # what code gives
        return result

    with execution.attached():
        try:
            result = await with_progress(
                ended(),
                call.report,
                lambda: f"{execution.id}: {printed} bytes of output",
                interval_seconds=call.progress_seconds,
            )
        finally:
            execution.cancel()
    return _execution_result(execution.id, result)


def _execution_result(execution_id: str, result: SandboxResult) -> ToolResult:
    """What the code did; that it failed is told, and is no failure of ours."""
    document = render(result)
    error = None
    if not result.success:
        said = result.stderr.strip().splitlines()
        reason = result.trap_reason or f"status {result.exit_status}"
        error = f"The code ended with {reason}" + (f": {said[-1]}" if said else "")
    metadata = {"execution_id": execution_id, "duration_ms": round(result.duration_ms, 3)}
    if error is not None:
        metadata["code"] = "tool.status"
    return ToolResult(success=result.success, output=document, error=error, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelExecutionArguments:
    """Arguments of `cancel_execution`."""

    execution_id: Annotated[str, Param("As the progress of execute_code tells it", minimum=1)]


async def cancel_execution(call: SessionToolCall) -> ToolResult:
    """Stop code that runs."""
    asked: CancelExecutionArguments = call.arguments
    execution = call.service.execution(call.visit.caller, call.session, asked.execution_id)
    was_done = execution.is_done
    execution.cancel()
    return ToolResult(success=True, output={"execution_id": execution.id, "cancelled": not was_done})


_ROWS = (
    SessionTool(
        name="create_session",
        summary="Make a session with files of its own",
        notes="Gives its name, which every other tool takes as `session`.",
        parameters=Parameters(CreateSessionArguments),
        run=create_session,
        about=About.MANY,
        idempotent=False,
    ),
    SessionTool(
        name="destroy_session",
        summary="End a session and delete all its files",
        notes="",
        parameters=Parameters(NoArguments),
        run=destroy_session,
        needs=WRITING,
        destructive=True,
    ),
    SessionTool(
        name="get_active_sessions",
        summary="List your sessions",
        notes="In the order of their names; if there are more, `next` says where to go on.",
        parameters=Parameters(ListSessionsArguments),
        run=get_active_sessions,
        about=About.MANY,
        reads=True,
    ),
    SessionTool(
        name="get_workspace_info",
        summary="Tell how much a session holds, what it may hold, and when it ends",
        notes="",
        parameters=Parameters(NoArguments),
        run=get_workspace_info,
        reads=True,
    ),
    SessionTool(
        name="reset_workspace",
        summary="Delete all files of a session, which goes on",
        notes="",
        parameters=Parameters(NoArguments),
        run=reset_workspace,
        needs=WRITING,
        destructive=True,
    ),
    SessionTool(
        name="execute_code",
        summary="Run code on the files of a session",
        notes="It runs in a sandbox, without network and processes; what it prints comes back.",
        parameters=Parameters(ExecuteCodeArguments),
        run=execute_code,
        needs=CODE,
        destructive=True,
        idempotent=False,
    ),
    SessionTool(
        name="list_runtimes",
        summary="List the languages that execute_code runs",
        notes="",
        parameters=Parameters(NoArguments),
        run=list_runtimes,
        about=About.NONE,
        reads=True,
    ),
    SessionTool(
        name="list_available_packages",
        summary="List what code can import besides the standard library",
        notes="",
        parameters=Parameters(NoArguments),
        run=list_available_packages,
        about=About.NONE,
        reads=True,
    ),
    SessionTool(
        name="cancel_execution",
        summary="Stop code that execute_code runs",
        notes="",
        parameters=Parameters(CancelExecutionArguments),
        run=cancel_execution,
        needs=CODE,
    ),
)
SESSION_TOOLS: Mapping[str, SessionTool] = {row.name: row for row in _ROWS}
