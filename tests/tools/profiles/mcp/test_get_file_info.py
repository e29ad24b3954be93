"""`get_file_info`: what is known about a file or directory."""

from __future__ import annotations

import os
from pathlib import Path

from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.calls import done, refused, said


def rows(answer: str) -> dict[str, str]:
    """Return the printed values by name."""
    return dict(line.split(": ", 1) for line in answer.split("\n"))


def test_file_metadata_is_printed_one_item_per_line(
    mcp: Toolbox, workspace: Workspace, directory: Path
) -> None:
    tree(directory, "a.txt = text")
    (directory / "a.txt").chmod(0o640)
    os.utime(directory / "a.txt", ns=(10**18, 10**18 + 5 * 10**8))
    answer = done(mcp, "get_file_info", path="a.txt")
    found = rows(answer.text())
    assert found.pop("created")
    assert found == {
        "size": "4",
        "modified": "2001-09-09T01:46:40.500Z",
        "accessed": "2001-09-09T01:46:40.000Z",
        "isDirectory": "false",
        "isFile": "true",
        "permissions": "640",
    }
    assert answer.metadata["version"] == workspace.stat("a.txt").version


def test_a_directory_is_reported(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "d/f")
    found = rows(said(mcp, "get_file_info", path="/workspace/d"))
    assert (found["isDirectory"], found["isFile"]) == ("true", "false")


def test_what_is_missing_or_outside_is_refused_alike(mcp: Toolbox, directory: Path, outside: Path) -> None:
    told = refused(mcp, "get_file_info", "path.missing", path="none")
    assert told == "File not found: none. Use list_directory to see what is there."
    refused(mcp, "get_file_info", "path.escape", path="../outside/secret")
