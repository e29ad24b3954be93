"""`search_files`: the files and directories whose paths match a pattern."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.calls import done, refused, said

FILES = ("a.txt", "src/b.txt", "src/c.py", "src/deep/d.txt", ".git/e.txt", "txt/")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.txt", [".git/e.txt", "a.txt", "src/b.txt", "src/deep/d.txt"]),
        ("**/*.txt", [".git/e.txt", "a.txt", "src/b.txt", "src/deep/d.txt"]),
        ("src/*", ["src/b.txt", "src/c.py", "src/deep"]),
        ("deep", ["src/deep"]),
        ("*txt", [".git/e.txt", "a.txt", "src/b.txt", "src/deep/d.txt", "txt"]),
    ],
)
def test_whole_paths_come_one_on_each_line(
    mcp: Toolbox, directory: Path, pattern: str, found: list[str]
) -> None:
    tree(directory, *FILES)
    answer = said(mcp, "search_files", path=".", pattern=pattern)
    assert sorted(answer.split("\n")) == [f"/workspace/{path}" for path in found]


def test_only_what_is_below_the_path_is_found(mcp: Toolbox, directory: Path) -> None:
    tree(directory, *FILES)
    assert said(mcp, "search_files", path="src/deep", pattern="*.txt") == "/workspace/src/deep/d.txt"


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        ([".git"], ["a.txt", "src/b.txt", "src/deep/d.txt"]),
        ([".git", "deep"], ["a.txt", "src/b.txt"]),
        (["**/deep/**", ".git/*"], ["a.txt", "src/b.txt"]),
        (["*.txt"], []),
    ],
)
def test_what_is_excluded_is_not_found_nor_what_is_in_it(
    mcp: Toolbox, directory: Path, patterns: list[str], found: list[str]
) -> None:
    tree(directory, *FILES)
    answer = said(mcp, "search_files", path=".", pattern="*.txt", excludePatterns=patterns)
    shown = [f"/workspace/{path}" for path in found] or ["No matches found"]
    assert answer.split("\n") == shown


def test_links_are_found_and_not_followed(mcp: Toolbox, directory: Path, outside: Path) -> None:
    tree(directory, "out => ../outside")
    assert said(mcp, "search_files", path=".", pattern="**") == "/workspace/out"


def test_a_long_answer_is_cut_and_says_so(workspace: Workspace, directory: Path) -> None:
    tree(directory, *(f"file-{number}" for number in range(9)))
    mcp = Toolbox(workspace, profile="mcp", answer_bytes=20)
    answer = done(mcp, "search_files", path=".", pattern="*")
    assert answer.output == (
        "/workspace/file-0\n"
        "[Cut: 8 more matches would be too much for one answer. Narrow the pattern or the path]"
    )
    assert answer.metadata["truncated"]


def test_what_is_not_a_pattern_or_directory_is_refused(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "a")
    refused(mcp, "search_files", "pattern.invalid", path=".", pattern="../*")
    refused(mcp, "search_files", "pattern.invalid", path=".", pattern="*", excludePatterns=["/etc"])
    refused(mcp, "search_files", "path.not_directory", path="a", pattern="*")
    refused(mcp, "search_files", "tool.arguments", path=".", pattern="")
