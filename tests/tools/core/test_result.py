"""What a tool answers, as an envelope and as a text."""

from __future__ import annotations

import json

import pytest

from carrel.values import ToolResult


@pytest.mark.parametrize(
    ("result", "document"),
    [
        (ToolResult(success=True, output="a"), {"success": True, "output": "a", "metadata": {}}),
        (ToolResult(success=True), {"success": True, "output": None, "metadata": {}}),
        (
            ToolResult(success=True, data={"exists": False}, metadata={"path": "/workspace/a"}),
            {"success": True, "data": {"exists": False}, "metadata": {"path": "/workspace/a"}},
        ),
        (
            ToolResult(success=False, error="No.", metadata={"code": "path.missing"}),
            {"success": False, "error": "No.", "metadata": {"code": "path.missing"}},
        ),
        (
            ToolResult(success=False, output={"exit_code": 1}, error="No."),
            {"success": False, "output": {"exit_code": 1}, "error": "No.", "metadata": {}},
        ),
    ],
)
def test_the_envelope_holds_what_there_is(result: ToolResult, document: dict[str, object]) -> None:
    assert result.to_dict() == document
    assert json.loads(result.to_json()) == document


def test_the_envelope_holds_what_a_model_reads_where_that_differs() -> None:
    result = ToolResult(success=True, output={"a": 1}, model_text="a: 1\n")
    assert result.to_dict() == {
        "success": True,
        "output": {"a": 1},
        "model_text": "a: 1\n",
        "metadata": {},
    }


def test_json_is_one_line_of_ascii_whatever_the_text() -> None:
    text = ToolResult(success=True, output="zwei\nZeilen, é, \ud800").to_json()
    assert text.isascii()
    assert "\n" not in text


def test_the_code_of_an_error_is_in_the_metadata() -> None:
    assert ToolResult(success=False, metadata={"code": "path.missing"}).code == "path.missing"
    assert ToolResult(success=True).code is None


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (ToolResult(success=True, output="a\n"), "a\n"),
        (ToolResult(success=True, output=["é", 1]), '["é", 1]'),
        (ToolResult(success=True, data={"a": None}), '{"a": null}'),
        (ToolResult(success=True), ""),
        (ToolResult(success=True, output=0), "0"),
        (ToolResult(success=False, error="No."), "No."),
        (ToolResult(success=False, output="partly", error="No."), "partly\nNo."),
        (ToolResult(success=True, output={True: 1}, model_text="on: 1 # comment\n"), "on: 1 # comment\n"),
        (ToolResult(success=True, output="a\n", metadata={"note": "[Cut]"}), "a\n[Cut]"),
        (ToolResult(success=True, output="a", model_text="", metadata={"note": "[Empty]"}), "[Empty]"),
        (ToolResult(success=False, output=[], model_text="b", metadata={"note": "n"}, error="e"), "b\nn\ne"),
    ],
)
def test_a_model_reads_the_output_and_the_error(result: ToolResult, text: str) -> None:
    assert result.text() == text


def test_a_text_can_be_written_as_utf_8_even_if_the_output_cannot() -> None:
    for output in ("a\ud800b", ["a\ud800b"], {"\udfff": 1}):
        ToolResult(success=True, output=output).text().encode()
