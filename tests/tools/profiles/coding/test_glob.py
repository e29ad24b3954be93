"""`glob`: the files whose paths match a pattern."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel import Limits
from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.calls import done, refused, said

FILES = ("a.py", "b.txt", "src/c.py", "src/deep/d.py", "src/deep/e.ts", ".git/f.py", "empty.py/")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["a.py", "src/c.py", "src/deep/d.py"]),
        ("**/*.py", ["a.py", "src/c.py", "src/deep/d.py"]),
        ("src/*.py", ["src/c.py"]),
        ("src/**", ["src/c.py", "src/deep/d.py", "src/deep/e.ts"]),
        ("*.{ts,txt}", ["b.txt", "src/deep/e.ts"]),
        ("/workspace/src/*.py", ["src/c.py"]),
        (".git/*", [".git/f.py"]),
    ],
)
def test_one_path_comes_on_each_line_sorted(
    coding: Toolbox, directory: Path, pattern: str, found: list[str]
) -> None:
    tree(directory, *FILES)
    assert said(coding, "glob", pattern=pattern).split("\n") == [f"/workspace/{path}" for path in found]


def test_a_pattern_is_seen_from_the_path(coding: Toolbox, directory: Path) -> None:
    tree(directory, *FILES)
    assert said(coding, "glob", pattern="deep/*", path="src").split("\n") == [
        "/workspace/src/deep/d.py",
        "/workspace/src/deep/e.ts",
    ]


def test_no_matching_files_are_reported_as_such(coding: Toolbox, directory: Path) -> None:
    tree(directory, *FILES)
    answer = done(coding, "glob", pattern="*.rs")
    assert answer.output == "No files found"
    assert answer.metadata == {"directory": "/workspace", "pattern": "*.rs", "count": 0}


def test_a_link_is_a_file_and_not_followed(coding: Toolbox, directory: Path, outside: Path) -> None:
    tree(directory, "link.txt => ../outside/secret", "out => ../outside")
    assert said(coding, "glob", pattern="**").split("\n") == ["/workspace/link.txt", "/workspace/out"]


def test_a_long_answer_is_cut_and_says_so(workspace: Workspace, directory: Path) -> None:
    tree(directory, *(f"file-{number}" for number in range(9)))
    coding = Toolbox(workspace, profile="coding", answer_bytes=40)
    answer = done(coding, "glob", pattern="*")
    assert answer.output == (
        "/workspace/file-0\n/workspace/file-1\n"
        "[Cut: 7 more files would be too much for one answer. Narrow the pattern or the path]"
    )
    assert (answer.metadata["count"], answer.metadata["truncated"]) == (9, True)


def test_a_tree_that_is_too_large_to_be_walked_says_so(directory: Path) -> None:
    tree(directory, *"abcdefghi")
    with Workspace.open(directory, limits=Limits(walk_entries=5)) as workspace:
        answer = done(Toolbox(workspace, profile="coding"), "glob", pattern="*")
    assert answer.metadata["truncated"]
    assert answer.text().endswith(". Narrow the pattern or the path]")
    assert "more than 5 entries" in answer.text()


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "a\0b", "x" * 2000])
def test_what_is_not_a_pattern_is_refused(coding: Toolbox, pattern: str) -> None:
    refused(coding, "glob", "pattern.invalid", pattern=pattern)


def test_a_path_must_be_a_directory_inside(coding: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt")
    refused(coding, "glob", "path.not_directory", pattern="*", path="a.txt")
    refused(coding, "glob", "path.missing", pattern="*", path="none")
    refused(coding, "glob", "path.escape", pattern="*", path="..")
