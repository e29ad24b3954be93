"""What a client gets of a tool's answer."""

from __future__ import annotations

import json

import msgspec
import pytest
from mcp_types import CallToolResult

from carrel.fronts.mcp.responses import render_result, replace_surrogates
from carrel.values import ToolImage, ToolResult


def test_the_envelope_is_for_programs_and_the_text_for_models() -> None:
    result = ToolResult(success=True, output={"a": 1}, metadata={"path": "/workspace/a"})
    assert render_result(result, "agent", "file_read") == {
        "content": [{"type": "text", "text": '{"a": 1}'}],
        "structuredContent": {"success": True, "output": {"a": 1}, "metadata": {"path": "/workspace/a"}},
        "isError": False,
    }


def test_a_failure_is_one_for_both() -> None:
    told = render_result(
        ToolResult(success=False, error="No", metadata={"code": "path.missing"}), "mcp", "read_file"
    )
    assert told == {
        "content": [{"type": "text", "text": "No"}],
        "structuredContent": {"success": False, "error": "No", "metadata": {"code": "path.missing"}},
        "isError": True,
    }


@pytest.mark.parametrize("profile", ["agent", "mcp"])
def test_names_that_are_no_text_can_be_written(profile: str) -> None:
    name = "a\udcff"
    told = replace_surrogates(
        render_result(ToolResult(success=True, output=name, metadata={name: [name]}), profile, "x")
    )
    assert json.loads(msgspec.json.encode(told)) == told
    assert CallToolResult.model_validate(told).model_dump_json()
    assert told["structuredContent"]["metadata"] == {"a\\udcff": ["a\\udcff"]}


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("image/png", {"type": "image", "data": "AA==", "mimeType": "image/png"}),
        ("audio/wav", {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}),
        (
            "application/pdf",
            {
                "type": "resource",
                "resource": {"uri": "carrel:///a%20b", "mimeType": "application/pdf", "blob": "AA=="},
            },
        ),
    ],
)
def test_media_come_as_what_they_are(kind: str, told: dict[str, object]) -> None:
    metadata = {"media_type": kind, "path": "/workspace/a b"}
    document = render_result(
        ToolResult(success=True, output="AA==", metadata=metadata), "mcp", "read_media_file"
    )
    assert document["content"] == document["structuredContent"]["content"] == [told]
    assert CallToolResult.model_validate(document).is_error is False


def test_what_a_model_sees_is_in_the_content_alone() -> None:
    image = ToolImage(
        path="/workspace/p", media_type="image/png", size_bytes=1, width=1, height=1, data="AA=="
    )
    result = ToolResult(success=True, output={"on": 1}, model_text="on: 1", images=(image,))
    told = render_result(result, "agent", "file_read")
    assert told["content"] == [
        {"type": "text", "text": "on: 1"},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
    ]
    assert told["structuredContent"] == {"success": True, "output": {"on": 1}, "metadata": {}}
    assert CallToolResult.model_validate(told).is_error is False


def test_a_note_is_for_models_and_the_reference_content_for_programs() -> None:
    result = ToolResult(success=True, output="[]", metadata={"note": "[Cut]"})
    told = render_result(result, "mcp", "directory_tree")
    assert told["content"] == [{"type": "text", "text": "[]\n[Cut]"}]
    assert told["structuredContent"]["content"] == "[]"
