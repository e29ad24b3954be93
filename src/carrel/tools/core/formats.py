"""Tool definitions in the formats of clients: JSON Schema, OpenAI, Anthropic and MCP."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from carrel.tools.core.spec import LoadedTool, ToolEffect

RESULT_SCHEMA: dict[str, Any] = {  # Any: as JSON Schema says it
    "type": "object",
    "properties": {
        "success": {"type": "boolean"},
        "output": {},
        "data": {},
        "error": {"type": "string"},
        "metadata": {"type": "object"},
    },
    "required": ["success", "metadata"],
}
"""The answer of any tool, as JSON Schema says it."""


class Format(StrEnum):
    """Who is to read it."""

    JSON = "json"
    """JSON Schema, with the name as `title`."""
    OPENAI = "openai"
    """Functions of chat completions."""
    OPENAI_RESPONSES = "openai-responses"
    """Functions of the Responses API."""
    ANTHROPIC = "anthropic"
    MCP = "mcp"


def render_tool(loaded: LoadedTool, format: Format) -> dict[str, Any]:
    """What a client is told about one tool."""
    tool, schema = loaded.tool, loaded.parameters.schema()
    name, description = tool.name, loaded.description
    match format:
        case Format.JSON:
            return {"title": name, "description": description, **schema}
        case Format.OPENAI:
            function = {"name": name, "description": description, "parameters": schema}
            return {"type": "function", "function": function}
        case Format.OPENAI_RESPONSES:
            return {"type": "function", "name": name, "description": description, "parameters": schema}
        case Format.ANTHROPIC:
            return {"name": name, "description": description, "input_schema": schema}
        case Format.MCP:
            hints = {
                "readOnlyHint": tool.effect is ToolEffect.READ,
                "destructiveHint": tool.destructive,
                "idempotentHint": tool.idempotent,
                "openWorldHint": False,
            }
            return {
                "name": name,
                "title": tool.summary,
                "description": description,
                "inputSchema": schema,
                "annotations": hints,
            }
