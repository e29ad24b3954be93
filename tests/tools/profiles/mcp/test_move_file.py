"""`move_file`: give a file or directory another name."""

from __future__ import annotations

from pathlib import Path

from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.calls import done, refused


def test_a_file_gets_another_name(mcp: Toolbox, workspace: Workspace, directory: Path) -> None:
    tree(directory, "a.txt = text", "d/")
    answer = done(mcp, "move_file", source="a.txt", destination="d/b.txt")
    assert (directory / "d/b.txt").read_text() == "text"
    assert not (directory / "a.txt").exists()
    assert answer.output == "Moved /workspace/a.txt to /workspace/d/b.txt"
    assert answer.metadata["version"] == workspace.stat("d/b.txt").version
    assert [change["action"] for change in answer.metadata["changes"]] == ["moved"]


def test_a_directory_is_moved_with_what_is_in_it(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "d/f")
    done(mcp, "move_file", source="d", destination="e")
    assert (directory / "e/f").exists()


def test_a_link_is_moved_and_not_its_target(mcp: Toolbox, directory: Path, outside: Path) -> None:
    tree(directory, "link => ../outside/secret")
    done(mcp, "move_file", source="link", destination="other")
    assert (directory / "other").is_symlink()
    assert (outside / "secret").exists()


def test_nothing_is_overwritten(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "a = a", "b = b")
    told = refused(mcp, "move_file", "path.exists", source="a", destination="b")
    assert told == "Path already exists: b. Choose another name."
    assert ((directory / "a").read_text(), (directory / "b").read_text()) == ("a", "b")


def test_what_is_missing_or_outside_is_refused(mcp: Toolbox, directory: Path, outside: Path) -> None:
    tree(directory, "a", "d/")
    refused(mcp, "move_file", "path.missing", source="none", destination="b")
    refused(mcp, "move_file", "path.escape", source="../outside/secret", destination="b")
    refused(mcp, "move_file", "path.escape", source="a", destination="../outside/a")
    refused(mcp, "move_file", "path.into_itself", source="d", destination="d/e")
    assert [each.name for each in outside.iterdir()] == ["secret"]
    assert {each.name for each in directory.iterdir()} == {"a", "d"}


def test_a_destination_in_no_directory_says_what_is_missing(mcp: Toolbox, directory: Path) -> None:
    tree(directory, "a")
    told = refused(mcp, "move_file", "path.missing", source="a", destination="no/where/a")
    assert told == "Parent directory does not exist: no/where. Use create_directory to create it."
    told = refused(mcp, "move_file", "path.missing", source="b", destination="no/where/a")
    assert told == "File not found: b. Use list_directory to see what is there."


def test_a_directory_that_would_go_into_itself_is_reported_by_its_destination(
    mcp: Toolbox, directory: Path
) -> None:
    tree(directory, "d/")
    told = refused(mcp, "move_file", "path.into_itself", source="d", destination="d/e")
    assert told == "A directory cannot be put inside itself: 'd/e'. Choose another destination."
