"""`create_directory`: make a directory and those above it."""

from __future__ import annotations

from pathlib import Path

from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from tests.tools.calls import done, refused


def test_a_directory_is_made_with_those_above_it(mcp: Toolbox, directory: Path) -> None:
    answer = done(mcp, "create_directory", path="a/b")
    assert (directory / "a/b").is_dir()
    assert answer.output == "Created directory /workspace/a/b"
    assert [change["path"] for change in answer.metadata["changes"]] == ["/workspace/a", "/workspace/a/b"]


def test_one_that_is_there_is_left_as_it_is(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "a/f")
    answer = done(mcp, "create_directory", path="a")
    assert answer.output == "Directory exists already: /workspace/a"
    assert "changes" not in answer.metadata
    assert (directory / "a/f").exists()


def test_a_file_in_the_way_is_kept(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "a")
    told = refused(mcp, "create_directory", "path.exists", path="a")
    assert told == "Path already exists: a. Choose another name."
    assert (directory / "a").is_file()


def test_nothing_is_made_outside(mcp: Toolbox, directory: Path) -> None:
    refused(mcp, "create_directory", "path.escape", path="../new")
    refused(mcp, "create_directory", "access.outside", path="/tmp/new")
    assert [each.name for each in directory.parent.iterdir()] == ["ws"]
