"""`file_list`: what is in a directory, and nothing of what is not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from carrel import AccessMode, Limits, PathRule, SandboxPolicy, Workspace
from carrel.testing.tree import tree
from carrel.tools.core.options import ANSWER_BYTES
from carrel.tools.toolbox import Toolbox
from tests.requirements import requirement
from tests.tools.profiles.agent.answers import done, holds, hurried, output, pages, refused

PROMISED = """
{
  "success": true,
  "output": [
    {"name": "main.py", "path": "main.py", "is_file": true, "size_bytes": 1024},
    {"name": "utils.py", "path": "lib/utils.py", "is_file": true, "size_bytes": 512}
  ],
  "metadata": {
    "directory": "/tmp/shannon-sessions/my-session",
    "pattern": "*.py",
    "recursive": true,
    "file_count": 2,
    "dir_count": 0
  }
}
"""


def paths(toolbox: Toolbox, **arguments: object) -> list[str]:
    """The paths that are listed."""
    return [entry["path"] for entry in output(toolbox, "file_list", **arguments)]


def test_the_answer_is_the_promised_one(tools: Toolbox, directory: Path) -> None:
    tree(directory, f"main.py = {'x' * 1024}", f"lib/utils.py = {'x' * 512}", "lib/notes.txt")
    holds(done(tools, "file_list", path=".", pattern="*.py", recursive=True), PROMISED)


@requirement("L-13")
@pytest.mark.parametrize("path", ["", ".", "./", "/workspace", "/workspace/"])
def test_the_workspace_itself_has_several_names(tools: Toolbox, directory: Path, path: str) -> None:
    tree(directory, "file1.txt", "file2.txt", "subdir/inner")
    answer = done(tools, "file_list", path=path)
    assert [entry["path"] for entry in answer.output] == ["file1.txt", "file2.txt", "subdir"]
    assert answer.metadata == {
        "directory": "/workspace",
        "pattern": "*",
        "recursive": False,
        "file_count": 2,
        "dir_count": 1,
        "other_count": 0,
    }


@requirement("L-01")
def test_an_empty_workspace_is_an_empty_list(tools: Toolbox) -> None:
    assert output(tools, "file_list", path=".") == []


@requirement("L-14", "L-15")
def test_a_pattern_lists_and_counts_only_what_matches(tools: Toolbox, directory: Path) -> None:
    tree(directory, "test1.txt", "test2.txt", "other.py", "readme.md")
    answer = done(tools, "file_list", path=".", pattern="*.txt")
    assert answer.metadata["file_count"] == 2
    assert done(tools, "file_list", path=".").metadata["file_count"] == 4
    assert paths(tools, path=".", pattern="*.{py,md}") == ["other.py", "readme.md"]
    assert paths(tools, path=".", pattern="*.none") == []


@requirement("L-16")
def test_a_directory_is_entered_whatever_its_name_and_listed_only_if_it_matches(
    tools: Toolbox, directory: Path
) -> None:
    tree(directory, "findings/x.md", "findings/x.txt", "old.md/y.md", "top.md")
    answer = done(tools, "file_list", path=".", pattern="*.md", recursive=True)
    assert [entry["path"] for entry in answer.output] == ["old.md", "top.md", "findings/x.md", "old.md/y.md"]
    assert (answer.metadata["file_count"], answer.metadata["dir_count"]) == (3, 1)


def test_a_pattern_with_a_slash_goes_as_deep_as_it_says(tools: Toolbox, directory: Path) -> None:
    tree(directory, "a/x.py", "a/b/x.py", "x.py", "top/a/x.py")
    assert paths(tools, path=".", pattern="a/*.py") == ["a/x.py"]
    assert paths(tools, path=".", pattern="**/x.py") == ["x.py", "a/x.py", "a/b/x.py", "top/a/x.py"]
    assert paths(tools, path="top", pattern="a/*.py") == ["top/a/x.py"]


@requirement("L-17")
def test_hidden_files_are_listed_only_when_requested(tools: Toolbox, directory: Path) -> None:
    tree(directory, ".hidden", ".git/config", "seen", "d/.env")
    assert paths(tools, path=".", recursive=True) == ["d", "seen"]
    every = [".git", ".hidden", "d", "seen", ".git/config", "d/.env"]
    assert paths(tools, path=".", recursive=True, include_hidden=True) == every
    assert paths(tools, path=".", pattern=".*") == [".git", ".hidden"]
    assert paths(tools, path=".git") == [".git/config"]


@requirement("L-18")
def test_a_file_is_no_directory(tools: Toolbox, directory: Path) -> None:
    tree(directory, "f")
    for recursive in (False, True):
        answer = refused(tools, "file_list", "path.not_directory", path="f", recursive=recursive)
        assert answer.error == "Path is not a directory: f. If it is a file, use file_read to read it."


@requirement("L-19")
@pytest.mark.parametrize("path", ["/etc", "../outside", "/workspace/../outside", "way"])
@pytest.mark.parametrize("recursive", [False, True])
def test_what_is_outside_is_not_allowed(
    tools: Toolbox, directory: Path, outside: Path, path: str, recursive: bool
) -> None:
    tree(directory, "way => ../outside")
    answer = tools.call("file_list", {"path": path, "recursive": recursive})
    assert answer.error == f"Reading {path} is not allowed. Use session workspace."
    assert str(directory.parent) not in answer.to_json()


@requirement("L-20")
@pytest.mark.parametrize("recursive", [False, True])
def test_a_missing_directory_is_not_found(tools: Toolbox, recursive: bool) -> None:
    answer = refused(tools, "file_list", "path.missing", path="none", recursive=recursive)
    assert answer.error == "File not found: none. Use file_list to see what is there."


@requirement("L-21", "P-11")
def test_links_are_listed_as_links_whatever_they_lead_to(
    tools: Toolbox, directory: Path, outside: Path
) -> None:
    tree(directory, "f", "d/g", "in => f", "into => d", "out => ../outside/secret", "gone => ../outside/none")
    answer = done(tools, "file_list", path=".", recursive=True)
    assert [entry["path"] for entry in answer.output] == ["d", "f", "gone", "in", "into", "out", "d/g"]
    links = {entry["name"]: entry for entry in answer.output if entry["type"] == "link"}
    assert set(links) == {"gone", "in", "into", "out"}
    assert not any(entry["is_file"] for entry in links.values())
    assert (answer.metadata["file_count"], answer.metadata["dir_count"]) == (2, 1)
    assert answer.metadata["other_count"] == 4
    assert "secret data" not in answer.to_json()
    (outside / "none").write_bytes(b"now there is one")
    assert done(tools, "file_list", path=".", recursive=True) == answer


@requirement("L-22")
def test_an_entry_reports_name_path_kind_size_and_time(tools: Toolbox, directory: Path) -> None:
    tree(directory, "d/f = four")
    os.utime(directory / "d/f", ns=(0, 1_700_000_000_999_999_999))
    os.utime(directory / "d", ns=(0, 1_600_000_000 * 10**9))
    assert output(tools, "file_list", path=".", recursive=True) == [
        {
            "name": "d",
            "path": "d",
            "type": "directory",
            "is_file": False,
            "size_bytes": 0,
            "modified_time": 1_600_000_000,
        },
        {
            "name": "f",
            "path": "d/f",
            "type": "file",
            "is_file": True,
            "size_bytes": 4,
            "modified_time": 1_700_000_000,
        },
    ]


@requirement("L-22")
def test_each_directory_is_sorted_by_name(tools: Toolbox, directory: Path) -> None:
    tree(directory, "b/z", "b/a", "a-b/x", "a/y", "c", "B")
    assert paths(tools, path=".", recursive=True) == ["B", "a", "a-b", "b", "c", "a/y", "a-b/x", "b/a", "b/z"]


@requirement("L-23")
def test_odd_names_come_back_intact(tools: Toolbox, directory: Path) -> None:
    names = ["-rf", "a\nb", "ä世界.txt", "sp ace", "quote'\"", "back`tick$", "tab\t", "[x]*?"]
    for name in names:
        (directory / name).write_bytes(b"")
    (directory / os.fsdecode(b"latin\xff")).write_bytes(b"")
    found = paths(tools, path=".")
    assert found == sorted([*names, "latin\udcff"])
    for name in found:
        assert done(tools, "file_read", path=name).output == ""


def test_a_fifo_is_listed_and_not_opened(tools: Toolbox, directory: Path) -> None:
    os.mkfifo(directory / "pipe")
    (entry,) = output(tools, "file_list", path=".")
    assert (entry["type"], entry["is_file"]) == ("other", False)


@pytest.mark.parametrize("pattern", ["../*", "/etc/*", "a/../../*", "x" * 2000, "{a,b" * 300])
def test_an_invalid_pattern_is_refused(tools: Toolbox, directory: Path, pattern: str) -> None:
    tree(directory, "f")
    answer = tools.call("file_list", {"path": ".", "pattern": pattern})
    assert answer.code == "pattern.invalid" or answer.output == []


@pytest.mark.parametrize("recursive", [False, True])
def test_a_long_answer_is_cut_and_its_cursors_give_everything_once(
    workspace: Workspace, directory: Path, recursive: bool
) -> None:
    tree(directory, *(f"f{number:03}" for number in range(120)), *(f"d/g{n}" for n in range(30)), "d/e/h")
    with Toolbox(workspace, answer_bytes=2000) as toolbox:
        parts = list(pages(toolbox, "file_list", path=".", recursive=recursive))
    whole = Toolbox(workspace).call("file_list", {"path": ".", "recursive": recursive})
    assert len(parts) > 5
    assert [entry for part in parts for entry in part.output] == whole.output
    assert all(part.metadata["file_count"] == whole.metadata["file_count"] for part in parts)
    assert all(len(part.to_json()) < 2500 for part in parts)


def test_a_cursor_continues_where_it_was_whatever_is_deleted_in_between(
    workspace: Workspace, directory: Path
) -> None:
    tree(directory, *(f"f{number:03}" for number in range(60)))
    seen: list[str] = []
    with Toolbox(workspace, answer_bytes=2000) as toolbox:
        for part in pages(toolbox, "file_list", path="."):
            for entry in part.output:
                seen.append(entry["path"])
                workspace.remove(entry["path"])
    assert seen == [f"f{number:03}" for number in range(60)]


@pytest.mark.parametrize("cursor", ["", "zzz", "a/b/c", "../..", "/etc", "\0", "\ud800"])
def test_a_cursor_that_was_never_given_is_only_a_position(
    tools: Toolbox, directory: Path, cursor: str
) -> None:
    tree(directory, "m")
    assert paths(tools, path=".", cursor=cursor) in ([], ["m"])


def test_a_walk_that_ends_at_a_limit_says_so(directory: Path) -> None:
    tree(directory, "f", "1/2/3/4")
    with Workspace.open(directory, limits=Limits(depth=2)) as workspace, Toolbox(workspace) as toolbox:
        answer = done(toolbox, "file_list", path=".", recursive=True)
    assert [entry["path"] for entry in answer.output] == ["1", "f", "1/2"]
    assert answer.metadata["truncated"]
    assert "deeper than 2 levels" in answer.metadata["incomplete"]
    assert "next_cursor" not in answer.metadata


def test_a_walk_ends_with_its_time(workspace: Workspace, directory: Path) -> None:
    tree(directory, *(f"d{number}/f" for number in range(200)))
    answer = refused(hurried(workspace, 100), "file_list", "limit.time", path=".", recursive=True)
    assert answer.error == "Operation timed out after 1s. Ask for less at once, or for more time."
    assert len(output(hurried(workspace, 1000), "file_list", path=".", recursive=True)) == 400


def test_an_allowed_directory_is_listed_by_its_own_name(directory: Path, outside: Path) -> None:
    policy = SandboxPolicy(
        workspace_root=str(directory),
        allowed_paths=(
            PathRule(root=str(directory), mode=AccessMode.READ_WRITE),
            PathRule(root=str(outside), mode=AccessMode.READ_ONLY),
        ),
    )
    with Workspace.open(directory, policy=policy) as workspace, Toolbox(workspace) as toolbox:
        answer = done(toolbox, "file_list", path=str(outside))
    assert [entry["path"] for entry in answer.output] == [f"{outside}/secret"]
    assert answer.metadata["directory"] == str(outside)


def test_a_pattern_is_tried_on_names_only_while_there_is_time(workspace: Workspace, directory: Path) -> None:
    tree(directory, *(f"{number}" for number in range(100)))
    answer = hurried(workspace, 50).call("file_list", {"path": ".", "pattern": "[0-9]*"})
    assert answer.code == "limit.time"


def test_a_model_reads_the_beginning_of_a_long_listing_and_how_to_continue(
    tools: Toolbox, directory: Path
) -> None:
    names = [f"{number:04}" for number in range(1000)]
    tree(directory, *(f"many/{name}" for name in names))
    answer = done(tools, "file_list", path="many")
    assert [entry["name"] for entry in answer.output] == names
    assert "truncated" not in answer.metadata
    found: list[str] = []
    while True:
        shown, _, note = answer.text().partition("\n")
        assert len(shown) <= ANSWER_BYTES
        found += [entry["name"] for entry in json.loads(shown)]
        if not note:
            break
        assert note.startswith(f"[Cut: {1000 - len(found)} of 1000 entries follow. Continue with cursor ")
        answer = done(tools, "file_list", path="many", cursor=note.split("'")[1])
    assert found == names
