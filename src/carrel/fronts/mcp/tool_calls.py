"""`ToolCalls`: call a tool for a client, inline if it is quick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from carrel.errors import CarrelError
from carrel.fronts.mcp import progress
from carrel.fronts.mcp.client_context import SESSION_ARGUMENT, SESSION_PROFILE, ClientContext
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

Arguments = Mapping[str, Any]  # Any: whatever JSON can say; the tool checks it


class ToolCalls:
    """Calls tools on behalf of those who ask for it."""

    def __init__(self, service: Service, *, progress_seconds: float = progress.INTERVAL_SECONDS) -> None:
        self._service = service
        self._progress_seconds = progress_seconds

    async def answer(
        self, visit: ClientContext, name: str, arguments: Arguments, report: Report | None = None
    ) -> Document:
        """What a client gets; of what takes long it is told meanwhile, if there is a way to *report*.

        Raises:
            MCPError: There is no such tool, or none for this caller; or it is a mistake of ours.
        """
        found = self.at_once(visit, name, arguments)
        return await self.later(visit, name, arguments, report) if found is None else found

    def at_once(self, visit: ClientContext, name: str, arguments: Arguments) -> Document | None:
        """The same, if nobody has to wait for it; else `None`.

        Raises:
            MCPError: As above.
        """
        try:
            profile = _profile(name, visit)
            if profile == SESSION_PROFILE:
                return None
            try:
                session, rest = visit.asked(arguments)
                result = self._service.call_tool_inline(visit.caller, session, name, rest, profile=profile)
            except CarrelError as error:
                result = failure_result(error)
            return None if result is None else _rendered(result, profile, name)
        except Exception as error:
            raise mcp_error(error, name, self._service.logger) from None

    async def later(
        self, visit: ClientContext, name: str, arguments: Arguments, report: Report | None = None
    ) -> Document:
        """What `answer` gives, of a call that is not done at once.

        Raises:
            MCPError: As above.
        """
        try:
            profile = _profile(name, visit)
            try:
                if profile == SESSION_PROFILE:
                    result = await self._session_tool(visit, name, arguments, report)
                else:
                    result = await self._tool(visit, profile, name, arguments, report)
            except CarrelError as error:
                result = failure_result(error)
            return _rendered(result, profile, name)
        except Exception as error:
            raise mcp_error(error, name, self._service.logger) from None

    async def _tool(
        self, visit: ClientContext, profile: str, name: str, arguments: Arguments, report: Report | None
    ) -> ToolResult:
        session, rest = visit.asked(arguments)
        work = self._service.call_tool_in_thread(visit.caller, session, name, rest, profile=profile)
        if report is None or TOOLS[Profile(profile)][name].effect is not ToolEffect.RUN:
            return await work
        return await progress.with_progress(
            work, report, lambda: f"{name} is running", interval_seconds=self._progress_seconds
        )

    async def _session_tool(
        self, visit: ClientContext, name: str, arguments: Arguments, report: Report | None
    ) -> ToolResult:
        tool = SESSION_TOOLS[name]
        named = arguments.get(SESSION_ARGUMENT, visit.caller.session)
        role = await self._service.tool_role(visit.caller, named if isinstance(named, str) else None)
        if not tool.allowed(visit, role):
            raise _unknown(name)
        session = ""
        if tool.about is About.ONE:
            session, arguments = visit.asked(arguments)
        if tool.needs is not None:
            # Where the caller has none, the role that allowed it holds for what it does as well.
            visit = replace(visit, caller=visit.caller.acting_as(role.name))
        call = SessionToolCall(
            service=self._service,
            visit=visit,
            session=session,
            arguments=tool.parameters.parse(arguments),
            report=report or _no_report,
            progress_seconds=self._progress_seconds,
        )
        return await tool.run(call)


async def _no_report(progress: float, total: None, message: str) -> None:
    """Tell nobody."""


def _profile(name: str, visit: ClientContext) -> str:
    profile = find_profile(name, visit)
    if profile is None:
        raise _unknown(name)
    return profile


def _rendered(result: ToolResult, profile: str, name: str) -> Document:
    if result.code == UNKNOWN:
        # In the same words as a tool that nobody has: what others have is nobody's business.
        raise _unknown(name)
    return render_result(result, profile, name)


def _unknown(name: str) -> MCPError:
    return MCPError(INVALID_PARAMS, f"There is no tool {name[:_SHOWN_CHARACTERS]!r}")
