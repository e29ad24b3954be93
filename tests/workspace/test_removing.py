"""Remove files, links and directories."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from carrel import Workspace
from carrel.errors import NotEmptyError, PathError
from tests.requirements import requirement
from tests.workspace.planting import plant, snapshot


@requirement("D-01", "D-10", "D-05")
@pytest.mark.parametrize("recursive", [True, False])
@pytest.mark.parametrize(
    "path", ["f", "empty", "empty/", "sub/f", "/workspace/f", "link", "out", "dangling", "loop"]
)
def test_one_entry_is_removed(workspace: Workspace, directory: Path, path: str, recursive: bool) -> None:
    plant(directory, "f", "empty/", "sub/f", "link => sub", "out => /etc", "dangling => no", "loop => loop")
    left = snapshot(directory)
    del left[path.strip("/").removeprefix("workspace/")]
    workspace.remove(path, recursive=recursive)
    assert snapshot(directory) == left


@requirement("D-03", "D-10")
def test_a_directory_with_content_is_kept_unless_asked(workspace: Workspace, directory: Path) -> None:
    plant(directory, "sub/f")
    with pytest.raises(NotEmptyError, match="directory 'sub' is not empty") as caught:
        workspace.remove("sub")
    assert caught.value.code == "path.not_empty"
    assert snapshot(directory) == {"sub": None, "sub/f": b"in"}
    workspace.remove("sub", recursive=True)
    assert snapshot(directory) == {}


@requirement("D-04", "P-12", "D-07")
def test_a_tree_is_removed_without_following_its_links(
    workspace: Workspace, directory: Path, outside: Path
) -> None:
    plant(
        directory, "t/a/b/c/f", "t/.hidden", f"t/out => {outside}", "t/up => ../..", "t/a/s => /etc", "kept"
    )
    os.mkfifo(directory / "t" / "fifo")
    workspace.remove("t", recursive=True)
    assert snapshot(directory) == {"kept": b"in"}
    assert snapshot(outside) == {"secret": b"secret data"}


def test_a_tree_whose_owner_took_away_his_own_rights_is_removed(unprivileged: Path) -> None:
    plant(unprivileged, "t/shut/deep/f", "t/readonly/f", "kept")
    (unprivileged / "t" / "shut" / "deep").chmod(0)
    (unprivileged / "t" / "shut").chmod(0)
    (unprivileged / "t" / "readonly").chmod(0o500)
    (unprivileged / "t").chmod(0o500)
    with Workspace.open(unprivileged) as workspace:
        workspace.remove("t", recursive=True)
    assert snapshot(unprivileged) == {"kept": b"in"}


@requirement("D-06", "D-21")
@pytest.mark.parametrize("recursive", [True, False])
@pytest.mark.parametrize("path", ["missing", "missing/deeper", "sub/missing", "missing/"])
def test_what_is_not_there_is_an_error_unless_forced(
    workspace: Workspace, directory: Path, path: str, recursive: bool
) -> None:
    plant(directory, "sub/f")
    with pytest.raises(FileNotFoundError, match=f"no such file or directory: '{path}'"):
        workspace.remove(path, recursive=recursive)
    recorded = len(list(workspace.changes()))
    workspace.remove(path, recursive=recursive, force=True)
    assert len(list(workspace.changes())) == recorded
    assert snapshot(directory) == {"sub": None, "sub/f": b"in"}


def test_force_hides_nothing_but_absence(workspace: Workspace, directory: Path) -> None:
    plant(directory, "sub/f")
    with pytest.raises(NotEmptyError):
        workspace.remove("sub", force=True)
    with pytest.raises(ValueError, match="escapes session workspace"):
        workspace.remove("../outside", force=True, recursive=True)
    with pytest.raises(NotADirectoryError):
        workspace.remove("sub/f/", force=True)


@requirement("D-08")
@pytest.mark.parametrize("path", [".", "./", "/workspace", "/workspace/", "sub/..", "sub/.", "link/.."])
@pytest.mark.parametrize("recursive", [True, False])
def test_the_workspace_itself_and_what_ends_in_dots_is_not_removed(
    workspace: Workspace, directory: Path, path: str, recursive: bool
) -> None:
    plant(directory, "sub/f", "link => sub")
    before = snapshot(directory)
    with pytest.raises(PathError, match="does not end in a name"):
        workspace.remove(path, recursive=recursive, force=True)
    assert snapshot(directory) == before


@pytest.mark.parametrize("path", ["f/", "link/", "out/"])
def test_a_slash_after_what_is_no_directory_removes_nothing(
    workspace: Workspace, directory: Path, outside: Path, path: str
) -> None:
    plant(directory, "f", "sub/f", "link => sub", f"out => {outside}")
    before = snapshot(directory)
    for recursive in (True, False):
        with pytest.raises(NotADirectoryError):
            workspace.remove(path, recursive=recursive)
    assert snapshot(directory) == before
    assert snapshot(outside) == {"secret": b"secret data"}


@requirement("D-07", "D-17", "P-09")
@pytest.mark.parametrize("path", ["../outside/secret", "../../etc/passwd", "/etc/passwd", "out/secret", ".."])
@pytest.mark.parametrize("recursive", [True, False])
def test_nothing_outside_is_removed(
    workspace: Workspace, directory: Path, outside: Path, path: str, recursive: bool
) -> None:
    plant(directory, "out => ../outside")
    with pytest.raises(ValueError, match="workspace"):
        workspace.remove(path, recursive=recursive)
    assert snapshot(outside) == {"secret": b"secret data"}


@requirement("P-13")
def test_removing_through_a_link_inside_removes_what_it_leads_to(
    workspace: Workspace, directory: Path
) -> None:
    plant(directory, "sub/f", "sub/g", "link => sub")
    workspace.remove("link/f")
    assert snapshot(directory) == {"sub": None, "sub/g": b"in", "link": "sub"}


# Making directories


def test_directories_are_made_with_those_above(workspace: Workspace, directory: Path) -> None:
    workspace.mkdir("a/b/c")
    assert snapshot(directory) == {"a": None, "a/b": None, "a/b/c": None}
    with pytest.raises(FileNotFoundError, match="'x/y'"):
        workspace.mkdir("x/y", parents=False)
    workspace.mkdir("a/d/", parents=False)
    assert (directory / "a" / "d").is_dir()


@pytest.mark.parametrize("path", ["sub", "sub/", ".", "f", "link", "dangling", "sub/.."])
def test_what_is_there_is_not_made_again(workspace: Workspace, directory: Path, path: str) -> None:
    plant(directory, "sub/", "f", "link => sub", "dangling => nothing")
    before = snapshot(directory)
    with pytest.raises(FileExistsError, match="already exists"):
        workspace.mkdir(path)
    assert snapshot(directory) == before


@pytest.mark.parametrize(("path", "fine"), [("sub", True), (".", True), ("link", True), ("f", False)])
def test_a_directory_that_is_there_is_fine_when_allowed(
    workspace: Workspace, directory: Path, path: str, fine: bool
) -> None:
    plant(directory, "sub/", "f", "link => sub")
    if fine:
        workspace.mkdir(path, exist_ok=True)
        return
    with pytest.raises(FileExistsError):
        workspace.mkdir(path, exist_ok=True)


@requirement("P-15")
@pytest.mark.parametrize("path", ["a/../../evil", "../evil", "out/evil", "gone", "/evil", "sub/../../evil"])
def test_no_directory_is_made_outside(
    workspace: Workspace, directory: Path, outside: Path, tmp_path: Path, path: str
) -> None:
    plant(directory, "sub/", "out => ../outside", "gone => ../outside/evil")
    before = snapshot(tmp_path)
    with pytest.raises((ValueError, FileNotFoundError, FileExistsError)):
        workspace.mkdir(path)
    assert snapshot(tmp_path) == before
