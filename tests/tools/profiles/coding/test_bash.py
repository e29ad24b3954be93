"""`bash` as coding models know it: with a time in milliseconds."""

from __future__ import annotations

import pytest

from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace


@pytest.fixture
def box(workspace: Workspace) -> Toolbox:
    return Toolbox(workspace, profile="coding", pipelines=True)


def test_the_schema_is_that_of_the_tool(box: Toolbox) -> None:
    (bash,) = (tool for tool in box.tools() if tool.name == "bash")
    schema = bash.load().parameters.schema()
    assert list(schema["properties"]) == ["command", "restart", "timeout_ms", "cursor"]
    assert schema["properties"]["timeout_ms"]["default"] == 120_000
    assert schema["required"] == []


def test_output_is_one_text(box: Toolbox) -> None:
    assert box.call("bash", {"command": "mkdir d && cd d && pwd"}).output == "/workspace/d\n"
    assert box.call("bash", {"command": "pwd", "restart": True}).output == "/workspace\n"
    assert box.call("bash", {}).code == "tool.arguments"


def test_the_timeout_is_the_requested_one_up_to_the_maximum(box: Toolbox, workspace: Workspace) -> None:
    result = box.call("bash", {"command": "sleep 1000", "timeout_ms": 20})
    assert (result.success, result.code, result.metadata["timeout_seconds"]) == (False, "limit.time", 0.02)
    assert box.call("bash", {"command": "pwd"}).metadata["timeout_seconds"] == 30
    free = Toolbox(workspace, profile="coding", shell_timeout_seconds=None)
    assert free.call("bash", {"command": "pwd"}).metadata["timeout_seconds"] == 120
    assert free.call("bash", {"command": "pwd", "timeout_ms": 300_000}).metadata["timeout_seconds"] == 300
