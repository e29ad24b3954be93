"""Calls of tools, whatever way they come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from carrel.errors import CarrelError
from carrel.fronts.mcp import progress
from carrel.fronts.mcp.answer import Document, answer, failed
from carrel.fronts.mcp.offer import profile_of
from carrel.fronts.mcp.progress import Report
from carrel.fronts.mcp.refusal import refusal
from carrel.fronts.mcp.session_tools import SESSION_TOOLS, About, Call
from carrel.fronts.mcp.visit import ARGUMENT, SESSIONS, Visit
from carrel.service.service import Service
from carrel.tools.result import ToolResult
from carrel.tools.spec import Effect, Profile
from carrel.tools.table import TOOLS

UNKNOWN = "tool.unknown"
_SHOWN_CHARACTERS = 80

Arguments = Mapping[str, Any]  # Any: whatever JSON can say; the tool checks it


class Calls:
    """Calls tools on behalf of those who ask for it."""

    def __init__(self, service: Service, *, progress_seconds: float = progress.INTERVAL_SECONDS) -> None:
        self._service = service
        self._progress_seconds = progress_seconds

    async def answer(
        self, visit: Visit, name: str, arguments: Arguments, report: Report | None = None
    ) -> Document:
        """What a client gets; of what takes long it is told meanwhile, if there is a way to *report*.

        Raises:
            MCPError: There is no such tool, or none for this caller; or it is a mistake of ours.
        """
        found = self.at_once(visit, name, arguments)
        return await self.later(visit, name, arguments, report) if found is None else found

    def at_once(self, visit: Visit, name: str, arguments: Arguments) -> Document | None:
        """The same, if nobody has to wait for it; else `None`.

        Raises:
            MCPError: As above.
        """
        try:
            profile = _profile(name, visit)
            if profile == SESSIONS:
                return None
            try:
                session, rest = visit.asked(arguments)
                result = self._service.call_tool_at_once(visit.caller, session, name, rest, profile=profile)
            except CarrelError as error:
                result = failed(error)
            return None if result is None else _rendered(result, profile, name)
        except Exception as error:
            raise refusal(error, name, self._service.logger) from None

    async def later(
        self, visit: Visit, name: str, arguments: Arguments, report: Report | None = None
    ) -> Document:
        """What `answer` gives, of a call that is not done at once.

        Raises:
            MCPError: As above.
        """
        try:
            profile = _profile(name, visit)
            try:
                if profile == SESSIONS:
                    result = await self._session_tool(visit, name, arguments, report)
                else:
                    result = await self._tool(visit, profile, name, arguments, report)
            except CarrelError as error:
                result = failed(error)
            return _rendered(result, profile, name)
        except Exception as error:
            raise refusal(error, name, self._service.logger) from None

    async def _tool(
        self, visit: Visit, profile: str, name: str, arguments: Arguments, report: Report | None
    ) -> ToolResult:
        session, rest = visit.asked(arguments)
        work = self._service.call_tool_in_thread(visit.caller, session, name, rest, profile=profile)
        if report is None or TOOLS[Profile(profile)][name].effect is not Effect.RUN:
            return await work
        return await progress.told(
            work, report, lambda: f"{name} is running", interval_seconds=self._progress_seconds
        )

    async def _session_tool(
        self, visit: Visit, name: str, arguments: Arguments, report: Report | None
    ) -> ToolResult:
        tool = SESSION_TOOLS[name]
        named = arguments.get(ARGUMENT, visit.caller.session)
        role = await self._service.tool_role(visit.caller, named if isinstance(named, str) else None)
        if not tool.allowed(visit, role):
            raise _unknown(name)
        session = ""
        if tool.about is About.ONE:
            session, arguments = visit.asked(arguments)
        if tool.needs is not None:
            # Where the caller has none, the role that allowed it holds for what it does as well.
            visit = replace(visit, caller=visit.caller.acting_as(role.name))
        call = Call(
            service=self._service,
            visit=visit,
            session=session,
            arguments=tool.parameters.read(arguments),
            report=report or _nobody,
            progress_seconds=self._progress_seconds,
        )
        return await tool.run(call)


async def _nobody(progress: float, total: None, message: str) -> None:
    """Tell nobody."""


def _profile(name: str, visit: Visit) -> str:
    profile = profile_of(name, visit)
    if profile is None:
        raise _unknown(name)
    return profile


def _rendered(result: ToolResult, profile: str, name: str) -> Document:
    if result.code == UNKNOWN:
        # In the same words as a tool that nobody has: what others have is nobody's business.
        raise _unknown(name)
    return answer(result, profile, name)


def _unknown(name: str) -> MCPError:
    return MCPError(INVALID_PARAMS, f"There is no tool {name[:_SHOWN_CHARACTERS]!r}")
