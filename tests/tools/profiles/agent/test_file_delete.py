"""`file_delete`: by name and by pattern, and never more than was meant."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel import Limits, Workspace
from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from tests.requirements import requirement
from tests.tools.profiles.agent.answers import done, hurried, output, refused
from tests.workspace.planting import snapshot


@requirement("D-09")
def test_a_deletion_reports_what_it_deleted(tools: Toolbox, directory: Path) -> None:
    tree(directory, "to_delete.txt = four", "keep")
    answer = done(tools, "file_delete", path="to_delete.txt")
    assert answer.output == {"deleted_count": 1, "deleted_paths": ["to_delete.txt"]}
    assert answer.metadata == {
        "path": "/workspace/to_delete.txt",
        "item_count": 1,
        "changes": [{"action": "deleted", "path": "/workspace/to_delete.txt", "size_bytes": 4}],
    }
    assert snapshot(directory) == {"keep": b"in"}


@requirement("D-10")
def test_an_empty_directory_goes_and_a_full_one_stays(tools: Toolbox, directory: Path) -> None:
    tree(directory, "empty_dir/", "non_empty/f")
    assert output(tools, "file_delete", path="empty_dir")["deleted_count"] == 1
    answer = refused(tools, "file_delete", "path.not_empty", path="non_empty")
    assert answer.error == "Directory is not empty: non_empty. Set recursive to delete what is in it too."
    assert snapshot(directory) == {"non_empty": None, "non_empty/f": b"in"}


@requirement("D-04")
def test_a_directory_goes_with_its_content_when_requested(tools: Toolbox, directory: Path) -> None:
    tree(directory, "cache/a/b", "cache/c", "keep")
    answer = done(tools, "file_delete", path="cache/", recursive=True)
    assert answer.output == {"deleted_count": 1, "deleted_paths": ["cache"]}
    assert answer.metadata["item_count"] == 4
    assert snapshot(directory) == {"keep": b"in"}


@requirement("D-06", "D-21")
def test_what_is_missing_is_an_error_unless_forced(tools: Toolbox) -> None:
    answer = refused(tools, "file_delete", "path.missing", path="none")
    assert answer.error == "File not found: none. Use file_list to see what is there."
    nothing = {"deleted_count": 0, "deleted_paths": []}
    assert output(tools, "file_delete", path="none", force=True) == nothing
    assert output(tools, "file_delete", path="none", force=True, pattern="*") == nothing
    refused(tools, "file_delete", "path.missing", path="none", pattern="*")


@requirement("D-08")
@pytest.mark.parametrize("path", [".", "./", "/workspace", "/workspace/", "d/.."])
def test_the_workspace_itself_is_not_deleted(tools: Toolbox, directory: Path, path: str) -> None:
    tree(directory, "d/f")
    for recursive in (False, True):
        refused(tools, "file_delete", "path.invalid", path=path, recursive=recursive, force=True)
    assert snapshot(directory) == {"d": None, "d/f": b"in"}


def test_deleting_the_workspace_is_refused_with_advice(tools: Toolbox) -> None:
    answer = refused(tools, "file_delete", "path.invalid", path=".", recursive=True)
    assert answer.error == "The workspace itself cannot be deleted. Delete its entries by name."


@requirement("D-12")
def test_a_pattern_deletes_what_matches(tools: Toolbox, directory: Path) -> None:
    tree(directory, "a.tmp", "b.tmp", "keep.txt", "sub/c.tmp", "dir.tmp/")
    answer = done(tools, "file_delete", path=".", pattern="*.tmp")
    assert answer.output == {"deleted_count": 2, "deleted_paths": ["a.tmp", "b.tmp"]}
    assert [change["path"] for change in answer.metadata["changes"]] == [
        "/workspace/a.tmp",
        "/workspace/b.tmp",
    ]
    assert set(snapshot(directory)) == {"keep.txt", "sub", "sub/c.tmp", "dir.tmp"}


@requirement("D-13")
def test_a_pattern_deletes_at_every_depth_when_requested(tools: Toolbox, directory: Path) -> None:
    tree(directory, "a.tmp", "sub/b.tmp", "sub/keep.txt")
    answer = output(tools, "file_delete", path=".", pattern="*.tmp", recursive=True)
    assert answer == {"deleted_count": 2, "deleted_paths": ["a.tmp", "sub/b.tmp"]}
    assert set(snapshot(directory)) == {"sub", "sub/keep.txt"}


@requirement("D-14")
def test_a_pattern_that_matches_nothing_deletes_nothing(tools: Toolbox, directory: Path) -> None:
    tree(directory, "keep.txt")
    answer = output(tools, "file_delete", path=".", pattern="*.tmp", recursive=True)
    assert answer == {"deleted_count": 0, "deleted_paths": []}
    assert snapshot(directory) == {"keep.txt": b"in"}


@requirement("D-15")
def test_a_pattern_below_a_file_is_an_error(tools: Toolbox, directory: Path) -> None:
    tree(directory, "f")
    answer = refused(tools, "file_delete", "path.not_directory", path="f", pattern="*")
    assert answer.error is not None
    assert "not a directory" in answer.error
    assert snapshot(directory) == {"f": b"in"}


@requirement("D-16", "P-12")
def test_a_pattern_deletes_links_and_nothing_through_them(
    tools: Toolbox, directory: Path, outside: Path
) -> None:
    tree(directory, "escape_link => ../outside", "d/in_link => ../f", "f", "d/out => ../../outside/secret")
    answer = output(tools, "file_delete", path=".", pattern="*", recursive=True)
    assert answer["deleted_paths"] == ["escape_link", "f", "d/in_link", "d/out"]
    assert snapshot(directory) == {"d": None}
    assert snapshot(outside) == {"secret": b"secret data"}


@requirement("D-16")
def test_a_pattern_is_not_looked_for_behind_a_link_that_leads_out(
    tools: Toolbox, directory: Path, outside: Path
) -> None:
    tree(directory, "way => ../outside")
    answer = refused(tools, "file_delete", "path.escape", path="way", pattern="*", recursive=True)
    assert answer.error == "Writing way is not allowed. Use session workspace."
    assert snapshot(outside) == {"secret": b"secret data"}


@requirement("D-07", "D-17")
@pytest.mark.parametrize(
    "path", ["../../../etc/passwd", "/etc/passwd", "../outside/secret", "way/secret", "/workspace/../x"]
)
@pytest.mark.parametrize("more", [{}, {"recursive": True}, {"force": True}, {"pattern": "*"}])
def test_what_is_outside_is_not_deleted(
    tools: Toolbox, directory: Path, outside: Path, path: str, more: dict[str, object]
) -> None:
    tree(directory, "way => ../outside")
    answer = tools.call("file_delete", {"path": path, **more})
    assert answer.error == f"Writing {path} is not allowed. Use session workspace."
    assert "changes" not in answer.metadata
    assert snapshot(outside) == {"secret": b"secret data"}
    assert snapshot(directory) == {"way": "../outside"}


def test_a_link_is_deleted_and_not_its_target(tools: Toolbox, directory: Path, outside: Path) -> None:
    tree(directory, "f", "in => f", "out => ../outside", "d/", "to_d => d")
    for link in ("in", "out", "to_d"):
        done(tools, "file_delete", path=link, recursive=True)
    assert snapshot(directory) == {"f": b"in", "d": None}
    assert snapshot(outside) == {"secret": b"secret data"}


def test_hidden_files_are_deleted_only_by_a_pattern_that_names_them(tools: Toolbox, directory: Path) -> None:
    tree(directory, ".env", ".git/config", "f")
    assert output(tools, "file_delete", path=".", pattern="*", recursive=True)["deleted_paths"] == ["f"]
    assert output(tools, "file_delete", path=".", pattern=".e*")["deleted_paths"] == [".env"]
    assert set(snapshot(directory)) == {".git", ".git/config"}


@pytest.mark.parametrize("pattern", ["**/*", "sub/*", "**"])
def test_a_pattern_that_goes_deeper_wants_recursion(tools: Toolbox, directory: Path, pattern: str) -> None:
    tree(directory, "sub/f")
    answer = refused(tools, "file_delete", "tool.arguments", path=".", pattern=pattern)
    assert answer.error is not None
    assert "matches in subdirectories, so 'recursive' must be true" in answer.error
    assert output(tools, "file_delete", path=".", pattern=pattern, recursive=True)["deleted_count"] == 1


def test_a_version_is_of_one_file_and_not_of_a_pattern(tools: Toolbox, directory: Path) -> None:
    tree(directory, "f")
    refused(tools, "file_delete", "tool.arguments", path=".", pattern="*", if_match="1-2-3")
    assert snapshot(directory) == {"f": b"in"}


def test_only_the_version_that_was_seen_is_deleted(tools: Toolbox, directory: Path) -> None:
    tree(directory, "f = one")
    seen = done(tools, "file_read", path="f").metadata["version"]
    current = done(tools, "file_write", path="f", content="two").metadata["version"]
    answer = refused(tools, "file_delete", "path.changed", path="f", if_match=seen)
    assert answer.metadata["version"] == current
    assert snapshot(directory) == {"f": b"two"}
    done(tools, "file_delete", path="f", if_match=current)
    assert snapshot(directory) == {}


def test_many_paths_are_counted_and_reported_as_far_as_they_fit(
    workspace: Workspace, directory: Path
) -> None:
    tree(directory, *(f"f{number:03}" for number in range(150)))
    with Toolbox(workspace, answer_bytes=500) as toolbox:
        answer = done(toolbox, "file_delete", path=".", pattern="*")
    assert answer.output["deleted_count"] == 150
    assert len(answer.output["deleted_paths"]) == 62
    assert answer.metadata["truncated"]
    assert answer.text().endswith("\n[Cut: 88 other paths were deleted as well]")
    assert len(answer.metadata["changes"]) + answer.metadata["changes_left_out"] == 150


def test_a_tree_that_is_too_large_to_count_is_deleted(directory: Path) -> None:
    tree(directory, "d/1/2/3/4")
    with Workspace.open(directory, limits=Limits(depth=2)) as workspace, Toolbox(workspace) as toolbox:
        answer = done(toolbox, "file_delete", path="d", recursive=True)
    assert answer.metadata["item_count"] is None
    assert snapshot(directory) == {}


def test_what_a_walk_did_not_reach_is_reported(directory: Path) -> None:
    tree(directory, "f.tmp", "1/2/3/f.tmp")
    with Workspace.open(directory, limits=Limits(depth=2)) as workspace, Toolbox(workspace) as toolbox:
        answer = done(toolbox, "file_delete", path=".", pattern="*.tmp", recursive=True)
    assert answer.output["deleted_paths"] == ["f.tmp"]
    assert "deeper than 2 levels" in answer.metadata["incomplete"]


def test_a_deletion_that_ends_with_its_time_reports_what_it_did(
    workspace: Workspace, directory: Path
) -> None:
    tree(directory, *(f"f{number:03}" for number in range(100)))
    answer = hurried(workspace, 50).call("file_delete", {"path": ".", "pattern": "*"})
    assert answer.code == "limit.time"
    gone = {change["path"] for change in answer.metadata["changes"]}
    assert 0 < len(gone) < 100
    assert {f"/workspace/{path}" for path in snapshot(directory)}.isdisjoint(gone)
    assert len(snapshot(directory)) + len(gone) == 100
    refused(hurried(workspace, 1), "file_delete", "limit.time", path=".", pattern="*")
