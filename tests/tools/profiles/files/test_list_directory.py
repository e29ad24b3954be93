"""`list_directory`: all entries with their type and size, also at every depth."""

from __future__ import annotations

import os
from pathlib import Path

from carrel import Limits, Workspace
from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from tests.requirements import requirement
from tests.tools.profiles.files.answers import data, done, refused


@requirement("L-13", "L-22")
def test_entries_report_name_type_size_and_path(files: Toolbox, directory: Path) -> None:
    tree(directory, "d/b.txt = four", "d/sub/", "d/.hidden = x", "d/link => b.txt")
    os.mkfifo(directory / "d" / "pipe")
    answer = done(files, "list_directory", path="d")
    assert answer.data == {
        "path": "/workspace/d",
        "entries": [
            {"name": ".hidden", "type": "file", "size": 1, "path": "/workspace/d/.hidden"},
            {"name": "b.txt", "type": "file", "size": 4, "path": "/workspace/d/b.txt"},
            {"name": "link", "type": "link", "size": 5, "path": "/workspace/d/link"},
            {"name": "pipe", "type": "other", "size": 0, "path": "/workspace/d/pipe"},
            {"name": "sub", "type": "directory", "size": 0, "path": "/workspace/d/sub"},
        ],
    }
    assert answer.metadata == {"path": "/workspace/d", "item_count": 5}


@requirement("L-01")
def test_an_empty_workspace_has_no_entries(files: Toolbox) -> None:
    for path in (".", "/workspace", "./"):
        assert data(files, "list_directory", path=path) == {"path": "/workspace", "entries": []}


@requirement("L-03")
def test_recursion_gives_what_is_at_every_depth(files: Toolbox, directory: Path) -> None:
    tree(directory, "root.txt", "sub/nested.txt", "sub/deep/deep.txt", "empty/")
    found = data(files, "list_directory", path=".", recursive=True)["entries"]
    assert [(entry["path"], entry["type"]) for entry in found] == [
        ("/workspace/empty", "directory"),
        ("/workspace/root.txt", "file"),
        ("/workspace/sub", "directory"),
        ("/workspace/sub/deep", "directory"),
        ("/workspace/sub/nested.txt", "file"),
        ("/workspace/sub/deep/deep.txt", "file"),
    ]
    assert {entry["name"] for entry in found if "deep.txt" in entry["path"]} == {"deep.txt"}


def test_without_recursion_nothing_deeper_is_listed(files: Toolbox, directory: Path) -> None:
    tree(directory, "sub/nested.txt")
    assert [entry["name"] for entry in data(files, "list_directory", path=".")["entries"]] == ["sub"]


@requirement("L-21")
def test_no_link_is_followed(files: Toolbox, directory: Path, outside: Path) -> None:
    tree(directory, "d/f", "to_file => d/f", "to_directory => d", f"out => {outside}", "loop => loop")
    answer = done(files, "list_directory", path=".", recursive=True)
    kinds = {entry["path"].removeprefix("/workspace/"): entry["type"] for entry in answer.data["entries"]}
    assert kinds == {
        "d": "directory",
        "d/f": "file",
        "loop": "link",
        "out": "link",
        "to_directory": "link",
        "to_file": "link",
    }
    assert str(outside) not in answer.to_json()


@requirement("L-18", "L-20", "L-19")
def test_what_is_not_a_directory_says_so(files: Toolbox, directory: Path) -> None:
    tree(directory, "f")
    assert refused(files, "list_directory", "path.not_directory", path="f").error == (
        "Path is not a directory: f. If it is a file, use read_file to read it."
    )
    refused(files, "list_directory", "path.missing", path="missing")
    refused(files, "list_directory", "access.outside", path="/etc")
    refused(files, "list_directory", "path.escape", path="..")
    refused(files, "list_directory", "tool.arguments", path="")


@requirement("L-23")
def test_odd_names_come_back_intact(files: Toolbox, directory: Path) -> None:
    names = ["-rf", "a b", "new\nline", "tab\t", "é世", "'quote'"]
    tree(directory, *names)
    found = data(files, "list_directory", path=".")["entries"]
    assert sorted(entry["name"] for entry in found) == sorted(names)


@requirement("L-24")
def test_a_directory_of_1000_entries_is_listed_whole(files: Toolbox, directory: Path) -> None:
    tree(directory, *(f"many/{number:04}" for number in range(1000)))
    answer = done(files, "list_directory", path="many")
    assert [entry["name"] for entry in answer.data["entries"]] == [f"{number:04}" for number in range(1000)]
    assert answer.metadata["item_count"] == 1000
    assert "truncated" not in answer.metadata


def test_a_long_listing_comes_in_pages_that_give_everything_once(
    workspace: Workspace, directory: Path
) -> None:
    names = [f"{place}/{number:02}" for place in "abc" for number in range(20)]
    tree(directory, *names)
    found: list[str] = []
    following: dict[str, str] = {}
    pages = 0
    with Toolbox(workspace, profile="files", answer_bytes=1000) as toolbox:
        while pages == 0 or following:
            answer = done(toolbox, "list_directory", path=".", recursive=True, **following)
            assert len(answer.to_json()) < 1500
            assert answer.metadata["item_count"] == 63
            cursor = answer.metadata.get("next_cursor")
            assert answer.metadata.get("truncated", False) == (cursor is not None)
            assert cursor is None or cursor != following.get("cursor")
            found += [entry["path"].removeprefix("/workspace/") for entry in answer.data["entries"]]
            following = {} if cursor is None else {"cursor": cursor}
            pages += 1
    assert sorted(found) == sorted([*names, "a", "b", "c"])
    assert pages > 3


def test_what_lies_too_deep_is_left_out_and_reported(directory: Path) -> None:
    tree(directory, "1/2/3/4/f", "z")
    with (
        Workspace.open(directory, limits=Limits(depth=2)) as workspace,
        Toolbox(workspace, profile="files") as toolbox,
    ):
        answer = done(toolbox, "list_directory", path=".", recursive=True)
    assert [entry["path"] for entry in answer.data["entries"]] == [
        "/workspace/1",
        "/workspace/z",
        "/workspace/1/2",
    ]
    assert answer.metadata["truncated"] is True
    assert "2" in answer.metadata["incomplete"]


def test_more_entries_than_a_listing_may_have_are_refused(directory: Path) -> None:
    tree(directory, *"abc")
    with (
        Workspace.open(directory, limits=Limits(list_entries=2)) as workspace,
        Toolbox(workspace, profile="files") as toolbox,
    ):
        refused(toolbox, "list_directory", "limit.list_entries", path=".")
        refused(toolbox, "list_directory", "limit.list_entries", path=".", recursive=True)
