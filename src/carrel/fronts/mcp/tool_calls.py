"""`ToolCalls`: call a tool for a client, inline if possible."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from carrel.errors import CarrelError
from carrel.fronts.mcp import progress
from carrel.fronts.mcp.client_context import (
    SESSION_ARGUMENT,
    SESSION_PROFILE,
    ClientContext,
    SessionArguments,
)
from carrel.fronts.mcp.progress import Report
from carrel.fronts.mcp.responses import Document, failure_result, mcp_error, render_result
from carrel.fronts.mcp.session_tools import SESSION_TOOLS, About, SessionToolCall
from carrel.fronts.mcp.tool_list import find_profile
from carrel.service.service import Service
from carrel.tools.core.spec import Profile, ToolEffect
from carrel.tools.core.table import TOOLS
from carrel.values import ToolResult

UNKNOWN = "tool.unknown"
_SHOWN_CHARACTERS = 80
"""How much of an unknown tool name an error message repeats."""

Arguments = Mapping[str, Any]  # Any: any JSON; the tool validates it
PendingCall = Callable[[Report | None], Awaitable[Document]]
"""Runs the rest of a call; reports the progress of a long one, if given a function for that."""


class ToolCalls:
    """Calls tools for clients."""

    def __init__(self, service: Service, *, progress_seconds: float = progress.INTERVAL_SECONDS) -> None:
        self._service = service
        self._progress_seconds = progress_seconds

    async def call(
        self, client: ClientContext, name: str, arguments: Arguments, report: Report | None = None
    ) -> Document:
        """Call a tool, and *report* the progress of a long call.

        Raises:
            MCPError: The client has no such tool, or the server failed.
        """
        started = self.start(client, name, arguments)
        return await started(report) if callable(started) else started

    def start(self, client: ClientContext, name: str, arguments: Arguments) -> Document | PendingCall:
        """Call a tool inline if possible; otherwise return what runs the call.

        Raises:
            MCPError: The client has no such tool, or the server failed.
        """
        try:
            profile = _require_profile(name, client)
            if profile == SESSION_PROFILE:
                return partial(
                    self._finish, profile, name, partial(self._call_session_tool, client, name, arguments)
                )
            try:
                parsed = client.split_session(arguments)
                result = self._service.call_tool_inline(
                    client.caller, parsed.session, name, parsed.arguments, profile=profile
                )
            except CarrelError as error:
                return _render(failure_result(error), profile, name)
            if result is not None:
                return _render(result, profile, name)
            return partial(
                self._finish, profile, name, partial(self._call_tool, client, profile, name, parsed)
            )
        except Exception as error:
            raise mcp_error(error, name, self._service.logger) from None

    async def _finish(
        self,
        profile: str,
        name: str,
        call: Callable[[Report | None], Awaitable[ToolResult]],
        report: Report | None,
    ) -> Document:
        """Await the result of a call and render it.

        Raises:
            MCPError: The client has no such tool, or the server failed.
        """
        try:
            try:
                result = await call(report)
            except CarrelError as error:
                result = failure_result(error)
            return _render(result, profile, name)
        except Exception as error:
            raise mcp_error(error, name, self._service.logger) from None

    async def _call_tool(
        self, client: ClientContext, profile: str, name: str, parsed: SessionArguments, report: Report | None
    ) -> ToolResult:
        session, arguments = parsed
        work = self._service.call_tool_in_thread(client.caller, session, name, arguments, profile=profile)
        if report is None or TOOLS[Profile(profile)][name].effect is not ToolEffect.RUN:
            return await work
        with progress.compilation_messages() as compiling:
            return await progress.with_progress(
                work,
                report,
                lambda: compiling() or f"{name} is running",
                interval_seconds=self._progress_seconds,
            )

    async def _call_session_tool(
        self, client: ClientContext, name: str, arguments: Arguments, report: Report | None
    ) -> ToolResult:
        tool = SESSION_TOOLS[name]
        session_id = arguments.get(SESSION_ARGUMENT, client.caller.session)
        role = await self._service.tool_role(
            client.caller, session_id if isinstance(session_id, str) else None
        )
        if not tool.is_allowed(client, role):
            raise _unknown_tool(name)
        session = ""
        if tool.about is About.ONE:
            session, arguments = client.split_session(arguments)
        if tool.needs is not None:
            # For a caller without a role, the role that allowed the tool also limits what it does.
            client = replace(client, caller=client.caller.acting_as(role.name))
        call = SessionToolCall(
            service=self._service,
            client=client,
            session=session,
            arguments=tool.parameters.parse(arguments),
            report=report or _no_report,
            progress_seconds=self._progress_seconds,
        )
        return await tool.run(call)


async def _no_report(progress: float, total: None, message: str) -> None:
    """Report nothing."""


def _require_profile(name: str, client: ClientContext) -> str:
    profile = find_profile(name, client)
    if profile is None:
        raise _unknown_tool(name)
    return profile


def _render(result: ToolResult, profile: str, name: str) -> Document:
    if result.code == UNKNOWN:
        # Reported like a tool that does not exist, so that clients learn nothing about other roles.
        raise _unknown_tool(name)
    return render_result(result, profile, name)


def _unknown_tool(name: str) -> MCPError:
    return MCPError(INVALID_PARAMS, f"There is no tool {name[:_SHOWN_CHARACTERS]!r}")
