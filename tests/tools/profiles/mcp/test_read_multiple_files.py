"""`read_multiple_files`: the text of several files."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.calls import done, refused, said


def test_each_text_follows_its_path(mcp: Toolbox, workspace: Workspace, directory: Path) -> None:
    tree(directory, "a.txt = one\n", "d/b.txt = two")
    answer = done(mcp, "read_multiple_files", paths=["a.txt", "/workspace/d/b.txt"])
    assert answer.output == "a.txt:\none\n\n\n---\n/workspace/d/b.txt:\ntwo\n"
    assert [file["version"] for file in answer.metadata["files"]] == [
        workspace.stat(path).version for path in ("a.txt", "d/b.txt")
    ]


def test_one_that_fails_does_not_fail_the_rest(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt = one", "b.bin = \0", "d/")
    answer = done(mcp, "read_multiple_files", paths=["none", "../x", "/etc/passwd", "b.bin", "d", "a.txt"])
    parts = answer.text().split("\n---\n")
    assert [part.partition(":")[0] for part in parts] == [
        "none",
        "../x",
        "/etc/passwd",
        "b.bin",
        "d",
        "a.txt",
    ]
    assert all(" Error - " in part for part in parts[:-1])
    assert parts[-1] == "a.txt:\none\n"
    assert [file.get("code") for file in answer.metadata["files"]] == [
        "path.missing",
        "path.escape",
        "access.outside",
        "text.encoding",
        "path.is_directory",
        None,
    ]


def test_what_does_not_fit_is_reported(workspace: Workspace, directory: Path) -> None:
    tree(directory, "a.txt = one\n", f"b.txt = one\n{'x' * 100}", "c.txt = one\n")
    mcp = Toolbox(workspace, profile="mcp", answer_bytes=150)
    answer = done(mcp, "read_multiple_files", paths=["a.txt", "b.txt", "c.txt"])
    assert answer.text().split("\n---\n") == [
        "a.txt:\none\n\n",
        "b.txt:\none\n\n[Cut: the file has 104 bytes. Read it alone]\n",
        "[1 file left out, since the answer is long enough: read them separately]",
    ]
    assert answer.metadata["truncated"]
    assert ["truncated" in file for file in answer.metadata["files"]] == [False, True]
    assert answer.metadata["files_left_out"] == 1


@pytest.mark.parametrize("path", ["a.txt", "./" * 2000 + "a.txt", "none/" * 500 + "none"])
def test_many_files_are_no_longer_an_answer_than_few(
    workspace: Workspace, directory: Path, path: str
) -> None:
    tree(directory, "a.txt = one\n")
    mcp = Toolbox(workspace, profile="mcp", answer_bytes=2000)
    answer = done(mcp, "read_multiple_files", paths=[path] * 1000)
    assert len(answer.to_json()) < 2000 + 3 * len(path) + 500
    assert answer.metadata["truncated"]
    assert len(answer.metadata["files"]) + answer.metadata["files_left_out"] == 1000


def test_the_same_file_may_be_read_twice(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt = one")
    assert said(mcp, "read_multiple_files", paths=["a.txt", "a.txt"]) == "a.txt:\none\n\n---\na.txt:\none\n"


@pytest.mark.parametrize("paths", [[], "a.txt", [1], [""] * 1001, None])
def test_the_paths_are_a_list(mcp: Toolbox, paths: object) -> None:
    refused(mcp, "read_multiple_files", "tool.arguments", paths=paths)
