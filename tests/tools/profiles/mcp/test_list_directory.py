"""`list_directory`: the names in a directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.calls import done, refused, said


def test_each_name_is_marked_and_hidden_ones_are_listed(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "b.txt", "a/deep.txt", ".env", "link => a")
    answer = done(mcp, "list_directory", path=".")
    assert answer.output == "[FILE] .env\n[DIR] a\n[FILE] b.txt\n[FILE] link"
    assert answer.metadata == {"path": "/workspace", "count": 4}
    assert said(mcp, "list_directory", path="/workspace/a") == "[FILE] deep.txt"


@pytest.mark.parametrize(
    "path", ["a", "./a/", "/workspace/a", "a/../a", "a//b/..", "link", "/workspace", "."]
)
def test_the_directory_is_called_as_every_tool_calls_it(mcp: Toolbox, directory: Path, path: str) -> None:
    tree(directory, "a/b/", "link => a")
    told = done(mcp, "list_directory", path=path).metadata["path"]
    assert told == done(mcp, "list_directory_with_sizes", path=path).metadata["path"]


def test_names_and_kinds_are_those_of_a_listing_with_sizes(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "a/", "b", "c\nd", "link => a", "nowhere => x", "out => ../..")
    os.mkfifo(directory / "fifo")
    lines = done(mcp, "list_directory_with_sizes", path=".").output.splitlines()
    named = [line.partition("  ")[0] for line in lines[:7]]
    assert said(mcp, "list_directory", path=".").splitlines() == named


def test_an_empty_directory_says_so(mcp: Toolbox) -> None:
    assert said(mcp, "list_directory", path=".") == "No entries found"


def test_a_long_listing_is_cut_and_says_so(workspace: Workspace, directory: Path) -> None:
    tree(directory, *"abcdefghi")
    mcp = Toolbox(workspace, profile="mcp", answer_bytes=20)
    assert said(mcp, "list_directory", path=".") == (
        "[FILE] a\n[FILE] b\n"
        "[Cut: 7 more entries would be too much for one answer. Search for a pattern instead]"
    )


def test_what_is_missing_or_no_directory_is_refused(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "a")
    told = refused(mcp, "list_directory", "path.missing", path="none")
    assert told == "File not found: none. Use list_directory to see what is there."
    told = refused(mcp, "list_directory", "path.not_directory", path="a")
    assert told == "Path is not a directory: a. If it is a file, use read_text_file to read it."
    refused(mcp, "list_directory", "path.escape", path="..")
