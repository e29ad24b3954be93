"""`create_directory`: with those above it, and without complaint if it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel import Limits, Workspace
from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from tests.tools.profiles.files.answers import data, done, refused
from tests.workspace.planting import snapshot


def test_a_directory_is_made_and_reported(files: Toolbox, directory: Path) -> None:
    answer = done(files, "create_directory", path="out")
    assert answer.data == {"path": "/workspace/out", "created": True}
    assert answer.metadata["changes"] == [
        {"action": "created", "path": "/workspace/out", "type": "directory"}
    ]
    assert snapshot(directory) == {"out": None}


def test_those_above_are_made_as_well(files: Toolbox, directory: Path) -> None:
    answer = done(files, "create_directory", path="a/b/c/")
    assert answer.data == {"path": "/workspace/a/b/c", "created": True}
    assert [change["path"] for change in answer.metadata["changes"]] == [
        "/workspace/a",
        "/workspace/a/b",
        "/workspace/a/b/c",
    ]
    assert snapshot(directory) == {"a": None, "a/b": None, "a/b/c": None}


def test_without_recursion_the_one_above_must_be_there(files: Toolbox, directory: Path) -> None:
    answer = refused(files, "create_directory", "path.missing", path="a/b", recursive=False)
    assert answer.error == "Parent directory does not exist: a. Set recursive to create it as well."
    assert snapshot(directory) == {}
    assert data(files, "create_directory", path="a", recursive=False)["created"] is True
    assert data(files, "create_directory", path="a/b", recursive=False)["created"] is True


@pytest.mark.parametrize("recursive", [True, False])
@pytest.mark.parametrize("path", ["d", "/workspace/d", "link", ".", "d/."])
def test_one_that_is_there_is_no_error(files: Toolbox, directory: Path, path: str, recursive: bool) -> None:
    tree(directory, "d/f", "link => d")
    before = snapshot(directory)
    answer = done(files, "create_directory", path=path, recursive=recursive)
    assert answer.data["created"] is False
    assert "changes" not in answer.metadata
    assert snapshot(directory) == before


def test_a_file_in_the_way_is_kept(files: Toolbox, directory: Path) -> None:
    tree(directory, "f = old")
    refused(files, "create_directory", "path.exists", path="f")
    refused(files, "create_directory", "path.not_directory", path="f/d")
    assert snapshot(directory) == {"f": b"old"}


def test_a_path_that_is_too_deep_is_refused(directory: Path) -> None:
    with (
        Workspace.open(directory, limits=Limits(depth=3)) as workspace,
        Toolbox(workspace, profile="files") as toolbox,
    ):
        answer = refused(toolbox, "create_directory", "limit.depth", path="a/b/c/d")
        assert (answer.metadata["limit"], answer.metadata["asked"]) == (3, 4)
        assert snapshot(directory) == {}
        done(toolbox, "create_directory", path="a/b/c")
