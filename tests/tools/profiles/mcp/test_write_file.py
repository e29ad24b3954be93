"""`write_file`: put content into a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.calls import done, refused


def test_a_file_is_written_and_what_changed_is_reported(
    mcp: Toolbox, workspace: Workspace, directory: Path
) -> None:
    answer = done(mcp, "write_file", path="d/a.txt", content="text")
    assert (directory / "d/a.txt").read_text() == "text"
    assert answer.output == "Wrote 4 bytes to /workspace/d/a.txt"
    assert answer.metadata["version"] == workspace.stat("d/a.txt").version
    assert [change["path"] for change in answer.metadata["changes"]] == [
        "/workspace/d",
        "/workspace/d/a.txt",
    ]


def test_what_was_there_is_replaced_and_not_compared(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt = old\n")
    answer = done(mcp, "write_file", path="a.txt", content="new\n")
    assert (directory / "a.txt").read_text() == "new\n"
    assert "diff" not in answer.metadata


def test_a_link_that_leads_out_is_not_written_through(mcp: Toolbox, directory: Path, outside: Path) -> None:
    tree(directory, "link => ../outside/secret")
    mcp.call("write_file", {"path": "link", "content": "x"})
    assert (outside / "secret").read_bytes() == b"secret data"


@pytest.mark.parametrize("path", ["../a", "/etc/a"])
def test_nothing_is_written_outside(mcp: Toolbox, directory: Path, path: str) -> None:
    result = mcp.call("write_file", {"path": path, "content": "x"})
    assert result.error == f"Writing {path} is not allowed. Use session workspace."
    assert [each.name for each in directory.parent.iterdir()] == ["ws"]


def test_a_role_without_writing_has_no_tool_that_changes_anything(workspace: Workspace) -> None:
    roles = {"reader": ["file_read", "file_list"]}
    reader = Toolbox(workspace, "reader", profile="mcp", roles=roles)
    changing = {"write_file", "edit_file", "create_directory", "move_file"}
    assert set(Toolbox(workspace, profile="mcp").names) - set(reader.names) == changing
    for name in changing:
        refused(reader, name, "tool.unknown")
