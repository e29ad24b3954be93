"""The tools that a caller is offered."""

from __future__ import annotations

from typing import Any

from mcp_types import Tool

from carrel.fronts.mcp.session_tools import SESSION_TOOLS, About, SessionTool
from carrel.fronts.mcp.visit import ARGUMENT, SESSIONS, Visit
from carrel.service.service import Service
from carrel.tools.formats import RESULT, Format
from carrel.tools.spec import Profile
from carrel.tools.table import TOOLS

_SESSION = {
    "type": "string",
    "description": "The session whose files are meant; it is made when it is first named",
    "minLength": 1,
}
_CONTENT = {"type": ["string", "array"], "description": "What the reference server gives"}


def profile_of(name: str, visit: Visit) -> str | None:
    """The first of the chosen sets that has a tool of this name."""
    for profile in visit.profiles:
        if name in (SESSION_TOOLS if profile == SESSIONS else TOOLS[Profile(profile)]):
            return profile
    return None


async def offered(service: Service, visit: Visit) -> list[Tool]:
    """All tools of the caller, each name once."""
    found: dict[str, Tool] = {}
    for profile in visit.profiles:
        for row in await _rows(service, visit, profile):
            found.setdefault(row["name"], Tool.model_validate(row))
    return list(found.values())


async def _rows(service: Service, visit: Visit, profile: str) -> list[dict[str, Any]]:  # Any: as JSON says it
    if profile == SESSIONS:
        role = await service.tool_role(visit.caller, visit.caller.session)
        rows = [_of_session(tool, visit) for tool in SESSION_TOOLS.values() if tool.allowed(visit, role)]
    else:
        found = await service.tools(
            visit.caller, visit.caller.session, profile=profile, format=Format.MCP.value
        )
        rows = found if visit.is_bound else [_with_session(row) for row in found]
    return [{**row, "outputSchema": _output(profile)} for row in rows]


def _output(profile: str) -> dict[str, Any]:
    """What a program gets; of the tools of the reference server what that gives, and more."""
    if profile != Profile.MCP:
        return RESULT
    properties = {"content": _CONTENT, **RESULT["properties"]}
    del properties["output"]
    return {**RESULT, "properties": properties, "required": ["content", *RESULT["required"]]}


def _of_session(tool: SessionTool, visit: Visit) -> dict[str, Any]:
    row = tool.render()
    return _with_session(row) if tool.about is About.ONE and not visit.is_bound else row


def _with_session(row: dict[str, Any]) -> dict[str, Any]:
    """The same tool with the session as its first argument."""
    schema = row["inputSchema"]
    return {
        **row,
        "inputSchema": {
            **schema,
            "properties": {ARGUMENT: _SESSION, **schema["properties"]},
            "required": [ARGUMENT, *schema["required"]],
        },
    }
