"""Every tool in every shape that clients take."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from carrel.tools.core.formats import Format, render_tool
from carrel.tools.core.spec import Profile, Tool, ToolEffect
from carrel.tools.core.table import TOOLS

EVERY = [
    pytest.param(tool, id=f"{tool.profile}-{tool.name}") for each in TOOLS.values() for tool in each.values()
]
SCHEMAS: dict[Format, Callable[[dict[str, Any]], dict[str, Any]]] = {
    Format.JSON: lambda told: {
        key: value for key, value in told.items() if key not in ("title", "description")
    },
    Format.OPENAI: lambda told: dict(told["function"]["parameters"]),
    Format.OPENAI_RESPONSES: lambda told: dict(told["parameters"]),
    Format.ANTHROPIC: lambda told: dict(told["input_schema"]),
    Format.MCP: lambda told: dict(told["inputSchema"]),
}
TYPES = {"object", "array", "string", "integer", "number", "boolean"}
WORDS = {
    "object": {"properties", "required", "additionalProperties"},
    "array": {"items", "minItems", "maxItems"},
    "string": {"enum", "minLength", "maxLength"},
    "integer": {"minimum", "maximum"},
    "number": {"minimum", "maximum"},
    "boolean": set(),
}


@pytest.mark.parametrize("tool", EVERY)
def test_every_format_holds_the_same_schema_and_can_be_written_as_json(tool: Tool) -> None:
    loaded = tool.load()
    for format, schema in SCHEMAS.items():
        told = render_tool(loaded, format)
        assert schema(json.loads(json.dumps(told))) == loaded.schema()


@pytest.mark.parametrize("tool", EVERY)
def test_every_schema_is_json_schema_that_all_clients_know(tool: Tool) -> None:
    """Only words that every client reads, each in its place, and an object that takes nothing else."""
    schema = tool.load().parameters.schema()
    assert schema["type"] == "object"
    _require_schema(schema)


@pytest.mark.parametrize("tool", EVERY)
def test_every_argument_is_described(tool: Tool) -> None:
    for name, about in tool.load().parameters.schema()["properties"].items():
        assert about["description"].strip(), name


@pytest.mark.parametrize("tool", EVERY)
def test_every_name_and_description_can_be_given_to_any_client(tool: Tool) -> None:
    loaded = tool.load()
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool.name)
    assert loaded.description().startswith(f"{tool.summary}.")
    assert len(loaded.description()) <= 1024


def test_the_shapes_are_those_of_the_clients() -> None:
    loaded = TOOLS[Profile.AGENT]["file_read"].load()
    schema, described = loaded.schema(), {"description": loaded.description()}
    assert render_tool(loaded, Format.JSON) == {"title": "file_read", **described, **schema}
    assert render_tool(loaded, Format.OPENAI) == {
        "type": "function",
        "function": {"name": "file_read", **described, "parameters": schema},
    }
    assert render_tool(loaded, Format.OPENAI_RESPONSES) == {
        "type": "function",
        "name": "file_read",
        **described,
        "parameters": schema,
    }
    assert render_tool(loaded, Format.ANTHROPIC) == {"name": "file_read", **described, "input_schema": schema}
    assert render_tool(loaded, Format.MCP) == {
        "name": "file_read",
        "title": "Read a file of the workspace",
        **described,
        "inputSchema": schema,
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }


@pytest.mark.parametrize("tool", EVERY)
def test_only_what_reads_is_said_to_be_read_only_and_none_of_that_to_destroy(tool: Tool) -> None:
    hints = render_tool(tool.load(), Format.MCP)["annotations"]
    assert hints["readOnlyHint"] == (tool.effect is ToolEffect.READ)
    assert not (hints["readOnlyHint"] and hints["destructiveHint"])


def _require_schema(schema: dict[str, Any]) -> None:
    kind = schema["type"]
    assert kind in TYPES
    assert set(schema) - {"type", "description", "default"} <= WORDS[kind]
    if kind == "object":
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) <= set(schema["properties"])
        for name, each in schema["properties"].items():
            assert not ("default" in each and name in schema["required"])
            _require_schema(each)
    if kind == "array":
        _require_schema(schema["items"])
    if "default" in schema:
        _require_fit(schema["default"], schema)


def _require_fit(value: Any, schema: dict[str, Any]) -> None:
    """A default is a value that the schema allows."""
    kinds = {
        "string": str,
        "integer": int,
        "number": (int, float),
        "boolean": bool,
        "array": list,
        "object": dict,
    }
    assert isinstance(value, kinds[schema["type"]])  # type: ignore[arg-type]  # types, or several
    assert value in schema.get("enum", [value])
    assert schema.get("minimum", value) <= value <= schema.get("maximum", value)
