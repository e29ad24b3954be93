"""`write`: put content into a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.calls import done, refused


def test_a_file_is_written_with_the_directories_above_it(
    coding: Toolbox, workspace: Workspace, directory: Path
) -> None:
    answer = done(coding, "write", file_path="d/a.txt", content="text\n")
    assert (directory / "d/a.txt").read_text() == "text\n"
    assert answer.output == "Wrote 5 bytes to /workspace/d/a.txt"
    assert answer.metadata["version"] == workspace.stat("d/a.txt").version


def test_what_was_there_is_replaced_with_a_diff(coding: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt = old\n")
    answer = done(coding, "write", file_path="a.txt", content="new\n")
    assert (directory / "a.txt").read_text() == "new\n"
    assert "-old\n+new\n" in answer.metadata["diff"]
    assert answer.metadata["changes"] == [
        {"action": "changed", "path": "/workspace/a.txt", "size_bytes": 4, "before_bytes": 4}
    ]


def test_a_directory_is_not_overwritten(coding: Toolbox, directory: Path) -> None:
    tree(directory, "d/f")
    refused(coding, "write", "path.is_directory", file_path="d", content="x")
    assert (directory / "d/f").exists()


@pytest.mark.parametrize("path", ["../a", "/etc/a", "/a", "d/../../a"])
def test_nothing_is_written_outside(coding: Toolbox, directory: Path, path: str) -> None:
    tree(directory, "d/")
    told = refused(
        coding, "write", coding.call("read", {"file_path": path}).code or "", file_path=path, content=""
    )
    assert told == f"Writing {path} is not allowed. Use session workspace."
    assert [each.name for each in directory.parent.iterdir()] == ["ws"]


def test_a_role_without_writing_has_neither_write_nor_edit(workspace: Workspace) -> None:
    reader = Toolbox(workspace, "reader", profile="coding", roles={"reader": ["file_read", "file_list"]})
    assert set(reader.names) == {"read", "glob", "grep"}
    refused(reader, "write", "tool.unknown", file_path="a.txt", content="x")
