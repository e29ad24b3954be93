"""`directory_tree`: a directory and everything below it, as a tree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from carrel.testing.tree import tree
from carrel.tools.profiles.mcp.directory_tree import MAX_LEVELS
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.calls import done, refused, said


def grown(mcp: Toolbox, **arguments: object) -> Any:  # Any: whatever JSON can say
    """The tree."""
    return json.loads(said(mcp, "directory_tree", **arguments))


def file(name: str) -> dict[str, object]:
    return {"name": name, "type": "file"}


def folder(name: str, *children: object) -> dict[str, object]:
    return {"name": name, "type": "directory", "children": list(children)}


def test_the_tree_is_json_of_names_types_and_children(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "b.txt", "a/c.txt", "a/d/", "a/e/f", ".env")
    assert grown(mcp, path=".") == [
        file(".env"),
        folder("a", file("c.txt"), folder("d"), folder("e", file("f"))),
        file("b.txt"),
    ]
    assert grown(mcp, path="/workspace/a/e") == [file("f")]


def test_names_can_be_read_in_any_script(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "grün/世界.txt")
    assert '"name": "世界.txt"' in said(mcp, "directory_tree", path=".")


def test_links_are_shown_and_not_followed(mcp: Toolbox, directory: Path, outside: Path) -> None:
    tree(directory, "loop => .", "out => ../outside")
    assert grown(mcp, path=".") == [file("loop"), file("out")]


@pytest.mark.parametrize(
    ("patterns", "result"),
    [
        (["node_modules"], [folder("a", file("b.py")), file("c.log")]),
        (["*.log", "node_modules"], [folder("a", file("b.py"))]),
        (["a/node_modules"], [folder("a", file("b.py")), file("c.log")]),
        (["**/*.{py,js,log}"], [folder("a", folder("node_modules"))]),
        (["a"], [file("c.log")]),
    ],
)
def test_what_is_excluded_is_left_out_with_all_below_it(
    mcp: Toolbox, directory: Path, patterns: list[str], result: list[object]
) -> None:
    tree(directory, "a/b.py", "a/node_modules/x.js", "c.log")
    assert grown(mcp, path=".", excludePatterns=patterns) == result


def test_patterns_are_seen_from_the_directory(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "a/b/c", "a/b/d")
    assert grown(mcp, path="a", excludePatterns=["b/c"]) == [folder("b", file("d"))]


def test_a_large_tree_is_cut_from_below_and_stays_json(workspace: Workspace, directory: Path) -> None:
    tree(directory, *(f"d{outer}/e/f{inner}" for outer in range(5) for inner in range(50)))
    mcp = Toolbox(workspace, profile="mcp", answer_bytes=3000)
    answer = done(mcp, "directory_tree", path=".")
    found = json.loads(answer.output)
    assert [entry["name"] for entry in found] == ["d0", "d1", "d2", "d3", "d4"]
    assert answer.metadata["truncated"]
    first, last = found[0]["children"][0], found[4]["children"][0]
    assert last == {**folder("e"), "truncated": True}
    assert 0 < len(first["children"]) < 50
    assert first["truncated"]
    assert 2000 < len(answer.output) < 4000
    assert answer.text().startswith(f"{answer.output}\n[Cut: ")
    assert answer.text().endswith(", or leave others out with excludePatterns]")


def test_a_tree_that_fits_is_not_cut(workspace: Workspace, directory: Path) -> None:
    tree(directory, "a/b/c")
    answer = done(Toolbox(workspace, profile="mcp", answer_bytes=1000), "directory_tree", path=".")
    assert "truncated" not in answer.to_json()


def test_what_is_not_a_directory_is_refused(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "a")
    refused(mcp, "directory_tree", "path.not_directory", path="a")
    refused(mcp, "directory_tree", "path.missing", path="none")
    refused(mcp, "directory_tree", "path.escape", path="../outside")
    refused(mcp, "directory_tree", "pattern.invalid", path=".", excludePatterns=["../*"])


def test_a_tree_that_is_very_deep_is_cut(workspace: Workspace, directory: Path) -> None:
    inner = directory
    for _ in range(400):
        inner /= "d"
    inner.mkdir(parents=True)
    mcp = Toolbox(workspace, profile="mcp", answer_bytes=2**24)
    answer = done(mcp, "directory_tree", path=".")
    assert answer.metadata["truncated"]
    (node,) = json.loads(answer.output)
    levels = 1
    while node["children"]:
        (node,) = node["children"]
        levels += 1
    assert (levels, node["truncated"]) == (MAX_LEVELS, True)
