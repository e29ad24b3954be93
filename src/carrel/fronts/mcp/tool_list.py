"""The tools that a caller may use, as `tools/list` returns them."""

from __future__ import annotations

from typing import Any

from mcp_types import Tool

from carrel.fronts.mcp.client_context import SESSION_ARGUMENT, SESSION_PROFILE, ClientContext
from carrel.fronts.mcp.session_tools import SESSION_TOOLS, About, SessionTool
from carrel.service.service import Service
from carrel.tools.core.formats import RESULT_SCHEMA, Format
from carrel.tools.core.spec import Profile
from carrel.tools.core.table import TOOLS

_SESSION = {
    "type": "string",
    "description": "The session whose files are meant; it is made when it is first named",
    "minLength": 1,
}
_CONTENT = {"type": ["string", "array"], "description": "What the reference server gives"}


def find_profile(name: str, visit: ClientContext) -> str | None:
    """The first of the chosen sets that has a tool of this name."""
    for profile in visit.profiles:
        if name in (SESSION_TOOLS if profile == SESSION_PROFILE else TOOLS[Profile(profile)]):
            return profile
    return None


async def allowed_tools(service: Service, visit: ClientContext) -> list[Tool]:
    """All tools of the caller, each name once."""
    found: dict[str, Tool] = {}
    for profile in visit.profiles:
        for row in await _rows(service, visit, profile):
            found.setdefault(row["name"], Tool.model_validate(row))
    return list(found.values())


async def _rows(
    service: Service, visit: ClientContext, profile: str
) -> list[dict[str, Any]]:  # Any: as JSON says it
    if profile == SESSION_PROFILE:
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
        return RESULT_SCHEMA
    properties = {"content": _CONTENT, **RESULT_SCHEMA["properties"]}
    del properties["output"]
    return {**RESULT_SCHEMA, "properties": properties, "required": ["content", *RESULT_SCHEMA["required"]]}


def _of_session(tool: SessionTool, visit: ClientContext) -> dict[str, Any]:
    row = tool.render()
    return _with_session(row) if tool.about is About.ONE and not visit.is_bound else row


def _with_session(row: dict[str, Any]) -> dict[str, Any]:
    """The same tool with the session as its first argument."""
    schema = row["inputSchema"]
    return {
        **row,
        "inputSchema": {
            **schema,
            "properties": {SESSION_ARGUMENT: _SESSION, **schema["properties"]},
            "required": [SESSION_ARGUMENT, *schema["required"]],
        },
    }
