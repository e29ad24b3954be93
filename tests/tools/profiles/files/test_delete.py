"""`delete`: files, links, directories; and what it must not touch."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel import Limits, Workspace
from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from tests.requirements import requirement
from tests.tools.profiles.files.answers import done, refused
from tests.workspace.planting import snapshot


@requirement("D-01", "D-02")
def test_a_file_is_deleted_and_that_is_confirmed(files: Toolbox, directory: Path) -> None:
    tree(directory, "data/temp.txt = four")
    answer = done(files, "delete", path="data/temp.txt")
    assert answer.data == {"path": "/workspace/data/temp.txt", "deleted": True}
    assert answer.metadata["item_count"] == 1
    assert answer.metadata["changes"] == [
        {"action": "deleted", "path": "/workspace/data/temp.txt", "size_bytes": 4}
    ]
    assert snapshot(directory) == {"data": None}
    refused(files, "read_file", "path.missing", path="data/temp.txt")


@requirement("D-03")
def test_a_directory_with_content_is_kept_without_recursion(files: Toolbox, directory: Path) -> None:
    tree(directory, "cache/f")
    answer = refused(files, "delete", "path.not_empty", path="cache", force=True)
    assert answer.error == "Directory is not empty: cache. Set recursive to delete what is in it too."
    assert snapshot(directory) == {"cache": None, "cache/f": b"in"}


@requirement("D-04")
def test_a_directory_is_deleted_with_its_content(files: Toolbox, directory: Path) -> None:
    tree(directory, "cache/a/b/f", "cache/g", "keep")
    answer = done(files, "delete", path="cache", recursive=True)
    assert answer.data == {"path": "/workspace/cache", "deleted": True}
    assert answer.metadata["item_count"] == 5
    assert [change["path"] for change in answer.metadata["changes"]] == ["/workspace/cache"]
    assert snapshot(directory) == {"keep": b"in"}


@requirement("D-05")
def test_an_empty_directory_needs_no_recursion(files: Toolbox, directory: Path) -> None:
    tree(directory, "empty/")
    done(files, "delete", path="empty")
    assert snapshot(directory) == {}


@requirement("D-06", "D-21")
def test_what_is_missing_is_an_error_without_force(files: Toolbox) -> None:
    refused(files, "delete", "path.missing", path="missing")
    refused(files, "delete", "path.missing", path="missing", recursive=True)


@requirement("D-21")
@pytest.mark.parametrize("path", ["missing", "./missing", "/workspace/missing", "missing/"])
def test_what_is_missing_counts_as_deleted_with_force(files: Toolbox, path: str) -> None:
    answer = done(files, "delete", path=path, force=True)
    assert answer.data == {"path": "/workspace/missing", "deleted": True}
    assert answer.metadata["item_count"] == 0
    assert "changes" not in answer.metadata


@pytest.mark.parametrize("recursive", [True, False])
def test_a_link_is_deleted_and_never_its_target(
    files: Toolbox, directory: Path, outside: Path, recursive: bool
) -> None:
    tree(directory, "d/f", "in => d", f"out => {outside}", "nowhere => missing")
    for path in ("in", "out", "nowhere"):
        answer = done(files, "delete", path=path, recursive=recursive)
        assert answer.metadata["item_count"] == 1
    assert snapshot(directory) == {"d": None, "d/f": b"in"}
    assert (outside / "secret").read_bytes() == b"secret data"


def test_links_in_a_deleted_directory_are_not_followed(
    files: Toolbox, directory: Path, outside: Path
) -> None:
    tree(directory, f"d/out => {outside}", "d/in => ../keep", "keep/f")
    assert done(files, "delete", path="d", recursive=True).metadata["item_count"] == 3
    assert snapshot(directory) == {"keep": None, "keep/f": b"in"}
    assert (outside / "secret").read_bytes() == b"secret data"


@requirement("D-07", "D-08")
@pytest.mark.parametrize("path", [".", "/workspace", "d/..", "..", "../outside", "/etc/passwd", "/"])
def test_the_workspace_and_what_is_outside_cannot_be_deleted(
    files: Toolbox, directory: Path, outside: Path, path: str
) -> None:
    tree(directory, "d/f")
    before = snapshot(directory)
    for force in (True, False):
        result = files.call("delete", {"path": path, "recursive": True, "force": force})
        assert not result.success
        assert result.code in ("path.invalid", "path.escape", "access.outside")
    assert snapshot(directory) == before
    assert (outside / "secret").exists()


def test_another_version_is_not_deleted(files: Toolbox, directory: Path) -> None:
    tree(directory, "f = one")
    version = done(files, "read_file", path="f").metadata["version"]
    now = done(files, "write_file", path="f", content="two").metadata["version"]
    answer = refused(files, "delete", "path.changed", path="f", if_match=version)
    assert answer.metadata["version"] == now
    assert snapshot(directory) == {"f": b"two"}
    done(files, "delete", path="f", if_match=now)
    assert snapshot(directory) == {}


def test_a_tree_that_cannot_be_counted_is_deleted_nevertheless(directory: Path) -> None:
    tree(directory, "d/1/2/3/f")
    with (
        Workspace.open(directory, limits=Limits(depth=2)) as workspace,
        Toolbox(workspace, profile="files") as toolbox,
    ):
        answer = done(toolbox, "delete", path="d", recursive=True)
    assert "item_count" not in answer.metadata
    assert snapshot(directory) == {}
