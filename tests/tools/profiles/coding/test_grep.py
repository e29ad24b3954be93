"""`grep`: the lines that match a regular expression."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel import Limits
from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.calls import done, refused, said


def test_each_match_is_a_path_a_line_and_the_text(coding: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt = one\ntwo\nthree\n", "d/b.txt = two: three\n")
    assert said(coding, "grep", pattern="^t.*e").split("\n") == [
        "/workspace/a.txt:3:three",
        "/workspace/d/b.txt:1:two: three",
    ]


@pytest.mark.parametrize("path", ["d", "d/b.txt", "/workspace/d"])
def test_a_directory_or_a_file_is_looked_into(coding: Toolbox, directory: Path, path: str) -> None:
    tree(directory, "a.txt = here\n", "d/b.txt = here\n")
    assert said(coding, "grep", pattern="here", path=path) == "/workspace/d/b.txt:1:here"


def test_binary_media_and_hidden_files_are_left_out(coding: Toolbox, directory: Path) -> None:
    tree(directory, "a.bin = here\0", "b.png = here", ".env = here")
    assert said(coding, "grep", pattern="here") == "No matches found"
    assert said(coding, "grep", pattern="here", path=".env") == "/workspace/.env:1:here"


def test_links_are_not_followed(coding: Toolbox, directory: Path, outside: Path) -> None:
    tree(directory, "link => ../outside/secret", "out => ../outside")
    assert said(coding, "grep", pattern="secret") == "No matches found"


@pytest.mark.parametrize("pattern", ["(", "a{2000}", r"(?=x)", r"(a)\1"])
def test_what_is_not_an_re2_expression_is_refused(coding: Toolbox, pattern: str) -> None:
    told = refused(coding, "grep", "pattern.invalid", pattern=pattern)
    assert told.startswith(f"Invalid regular expression {pattern!r}: ")


def test_many_matches_are_cut_by_size_and_reported(workspace: Workspace, directory: Path) -> None:
    tree(directory, "a.txt = " + "x\n" * 9)
    coding = Toolbox(workspace, profile="coding", answer_bytes=50)
    answer = done(coding, "grep", pattern="x")
    assert answer.output == (
        "/workspace/a.txt:1:x\n/workspace/a.txt:2:x\n"
        "[Cut: 7 more matches would be too much for one answer. Narrow the pattern or the path]"
    )
    assert answer.metadata["truncated"]


def test_more_matches_than_a_search_gives_are_reported(coding: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt = " + "x\n" * 1001)
    answer = done(coding, "grep", pattern="x")
    assert answer.metadata["count"] == 1000
    assert answer.text().endswith("\n[Cut: there are more matches. Narrow the pattern or the path]")


def test_a_tree_that_is_too_large_to_be_searched_says_so(directory: Path) -> None:
    tree(directory, *"abcdefghi")
    with Workspace.open(directory, limits=Limits(walk_entries=5)) as workspace:
        answer = done(Toolbox(workspace, profile="coding"), "grep", pattern="nowhere")
    assert answer.output == "[Cut: there are too many files. Narrow the pattern or the path]"
    assert answer.metadata["truncated"]


def test_a_path_must_be_there_and_inside(coding: Toolbox) -> None:
    refused(coding, "grep", "path.missing", pattern="x", path="none")
    refused(coding, "grep", "path.escape", pattern="x", path="../x")
