"""The tools of a caller, as `tools/list` returns them."""

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
    "description": "The session to use; created when it is first named",
    "minLength": 1,
}
_CONTENT = {"type": ["string", "array"], "description": "The result, as the reference server returns it"}


def find_profile(name: str, client: ClientContext) -> str | None:
    """Return the first of the client's profiles that has a tool called *name*."""
    for profile in client.profiles:
        if name in (SESSION_TOOLS if profile == SESSION_PROFILE else TOOLS[Profile(profile)]):
            return profile
    return None


async def allowed_tools(service: Service, client: ClientContext) -> list[Tool]:
    """Return all tools of the caller, each name once, and of session tools only those not replaced."""
    found: dict[str, Tool] = {}
    for profile in client.profiles:
        for row in await _rows(service, client, profile):
            found.setdefault(row["name"], Tool.model_validate(row))
    replaced = {name for name, tool in SESSION_TOOLS.items() if tool.replaced_by in found}
    return [tool for name, tool in found.items() if name not in replaced]


async def _rows(
    service: Service, client: ClientContext, profile: str
) -> list[dict[str, Any]]:  # Any: any JSON
    if profile == SESSION_PROFILE:
        role = await service.tool_role(client.caller, client.caller.session)
        rows = [
            _render_session_tool(tool, client)
            for tool in SESSION_TOOLS.values()
            if tool.is_allowed(client, role)
        ]
    else:
        found = await service.tools(
            client.caller, client.caller.session, profile=profile, format=Format.MCP.value
        )
        rows = found if client.is_bound else [_with_session(row) for row in found]
    return [{**row, "outputSchema": _output_schema(profile)} for row in rows]


def _output_schema(profile: str) -> dict[str, Any]:
    """Return the schema of results; in the profile of the reference server, with its `content`."""
    if profile != Profile.MCP:
        return RESULT_SCHEMA
    properties = {"content": _CONTENT, **RESULT_SCHEMA["properties"]}
    del properties["output"]
    return {**RESULT_SCHEMA, "properties": properties, "required": ["content", *RESULT_SCHEMA["required"]]}


def _render_session_tool(tool: SessionTool, client: ClientContext) -> dict[str, Any]:
    row = tool.render()
    return _with_session(row) if tool.about is About.ONE and not client.is_bound else row


def _with_session(row: dict[str, Any]) -> dict[str, Any]:
    """Add the session as the first argument of a tool."""
    schema = row["inputSchema"]
    return {
        **row,
        "inputSchema": {
            **schema,
            "properties": {SESSION_ARGUMENT: _SESSION, **schema["properties"]},
            "required": [SESSION_ARGUMENT, *schema["required"]],
        },
    }
