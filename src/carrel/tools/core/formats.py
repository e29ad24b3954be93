"""Tool definitions in the formats of clients: JSON Schema, OpenAI, Anthropic and MCP."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from carrel.tools.core.spec import USUAL_FACTS, LoadedTool, ToolEffect, ToolFacts

_IMAGE_SCHEMA: dict[str, Any] = {  # Any: a JSON Schema
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "media_type": {"type": "string"},
        "size_bytes": {"type": "integer"},
        "width": {"type": "integer"},
        "height": {"type": "integer"},
        "data": {"type": "string", "contentEncoding": "base64"},
    },
    "required": ["path", "media_type", "size_bytes", "width", "height", "data"],
}
RESULT_SCHEMA: dict[str, Any] = {  # Any: as above
    "type": "object",
    "properties": {
        "success": {"type": "boolean"},
        "output": {},
        "data": {},
        "model_text": {"type": "string"},
        "images": {"type": "array", "items": _IMAGE_SCHEMA},
        "error": {"type": "string"},
        "metadata": {"type": "object", "additionalProperties": True},
    },
    "required": ["success", "metadata"],
}
"""JSON Schema of the result of any tool."""


class Format(StrEnum):
    """The format of tool definitions."""

    JSON = "json"
    """JSON Schema, with the name as `title`."""
    OPENAI = "openai"
    """Functions of the Chat Completions API."""
    OPENAI_RESPONSES = "openai-responses"
    """Functions of the Responses API."""
    ANTHROPIC = "anthropic"
    MCP = "mcp"


def render_tool(loaded: LoadedTool, format: Format, facts: ToolFacts = USUAL_FACTS) -> dict[str, Any]:
    """Render the definition of one tool in *format*; it states the *facts* in force."""
    tool, schema = loaded.tool, loaded.schema(facts)
    name, description = tool.name, loaded.description(facts)
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
