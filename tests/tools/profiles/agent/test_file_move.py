"""`file_move`: another name for a file or a directory, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel import Limits, Workspace
from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from tests.tools.profiles.agent.answers import done, hurried, refused
from tests.workspace.planting import snapshot


def test_a_move_reports_from_where_to_where(tools: Toolbox, directory: Path) -> None:
    tree(directory, "a.txt = four", "d/")
    version = done(tools, "file_read", path="a.txt").metadata["version"]
    answer = done(tools, "file_move", source="a.txt", destination="d/b.txt")
    assert answer.output == "Moved /workspace/a.txt to /workspace/d/b.txt"
    assert answer.metadata == {
        "source": "/workspace/a.txt",
        "destination": "/workspace/d/b.txt",
        "type": "file",
        "size_bytes": 4,
        "overwrite": False,
        "created_dirs": False,
        "version": version,
        "changes": [
            {"action": "moved", "path": "/workspace/d/b.txt", "from": "/workspace/a.txt", "size_bytes": 4}
        ],
    }
    assert snapshot(directory) == {"d": None, "d/b.txt": b"four"}


def test_a_directory_moves_with_its_content(tools: Toolbox, directory: Path) -> None:
    tree(directory, "d/e/f")
    assert done(tools, "file_move", source="d", destination="new").metadata["type"] == "directory"
    assert snapshot(directory) == {"new": None, "new/e": None, "new/e/f": b"in"}


def test_a_link_moves_as_a_link(tools: Toolbox, directory: Path, outside: Path) -> None:
    tree(directory, "out => ../outside/secret")
    assert done(tools, "file_move", source="out", destination="still").metadata["type"] == "link"
    assert snapshot(directory) == {"still": "../outside/secret"}


def test_nothing_is_replaced_unless_requested(tools: Toolbox, directory: Path) -> None:
    tree(directory, "a = one", "b = two")
    answer = refused(tools, "file_move", "path.exists", source="a", destination="b")
    assert answer.error == "Path already exists: b. Choose another name, or overwrite it."
    assert snapshot(directory) == {"a": b"one", "b": b"two"}
    done(tools, "file_move", source="a", destination="b", overwrite=True)
    assert snapshot(directory) == {"b": b"one"}


def test_a_link_at_the_destination_is_replaced_and_not_followed(
    tools: Toolbox, directory: Path, outside: Path
) -> None:
    tree(directory, "a = one", "out => ../outside/secret")
    refused(tools, "file_move", "path.exists", source="a", destination="out")
    done(tools, "file_move", source="a", destination="out", overwrite=True)
    assert snapshot(directory) == {"out": b"one"}
    assert snapshot(outside) == {"secret": b"secret data"}


@pytest.mark.parametrize("destination", ["d", "d/", ".", "/workspace", "/workspace/d"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_directory_at_the_destination_is_refused_with_advice(
    tools: Toolbox, directory: Path, destination: str, overwrite: bool
) -> None:
    tree(directory, "x/a.txt", "d/")
    answer = refused(
        tools, "file_move", "path.exists", source="x/a.txt", destination=destination, overwrite=overwrite
    )
    whole = f"{destination.rstrip('/')}/a.txt"
    assert answer.error == (
        f"Path already exists: {destination}, a directory. Give the full new path, such as {whole}."
    )
    done(tools, "file_move", source="x/a.txt", destination=whole)


def test_a_missing_parent_is_made_only_when_requested(tools: Toolbox, directory: Path) -> None:
    tree(directory, "a = one")
    answer = refused(tools, "file_move", "path.missing", source="a", destination="x/y/b")
    assert answer.error == "Parent directory does not exist: x/y. Set create_dirs to create it."
    assert snapshot(directory) == {"a": b"one"}
    made = done(tools, "file_move", source="a", destination="x/y/b", create_dirs=True)
    assert made.metadata["created_dirs"]
    assert snapshot(directory) == {"x": None, "x/y": None, "x/y/b": b"one"}


def test_a_missing_source_is_not_found_whatever_the_destination(tools: Toolbox, directory: Path) -> None:
    for destination in ("b", "x/y/b"):
        answer = refused(
            tools, "file_move", "path.missing", source="none", destination=destination, create_dirs=True
        )
        assert answer.error == "File not found: none. Use file_list to see what is there."
    assert snapshot(directory) == {}


@pytest.mark.parametrize("destination", ["d/e", "d/x/y/z", "./d/./x/y", "/workspace/d/x/y", "link/x/y"])
def test_a_directory_does_not_go_into_itself_and_nothing_is_made(
    tools: Toolbox, directory: Path, destination: str
) -> None:
    tree(directory, "d/f", "link => d")
    before = snapshot(directory)
    refused(tools, "file_move", "path.into_itself", source="d", destination=destination, create_dirs=True)
    assert snapshot(directory) == before


def test_directories_that_were_made_in_vain_are_taken_away(directory: Path) -> None:
    tree(directory, "a/f", "x/")
    before = snapshot(directory)
    with Workspace.open(directory, limits=Limits(depth=3)) as workspace, Toolbox(workspace) as tools:
        answer = tools.call("file_move", {"source": "a/f", "destination": "x/y/z/f", "create_dirs": True})
    assert answer.code == "limit.depth"
    assert snapshot(directory) == before


@pytest.mark.parametrize("more", [{}, {"create_dirs": True}])
def test_only_the_version_that_was_seen_is_moved(
    tools: Toolbox, directory: Path, more: dict[str, object]
) -> None:
    tree(directory, "a = one")
    seen = done(tools, "file_read", path="a").metadata["version"]
    current = done(tools, "file_write", path="a", content="two").metadata["version"]
    answer = refused(
        tools, "file_move", "path.changed", source="a", destination="x/b", if_match=seen, create_dirs=True
    )
    assert answer.metadata["version"] == current
    assert snapshot(directory) == {"a": b"two"}
    done(tools, "file_move", source="a", destination="b", if_match=current, **more)
    assert snapshot(directory) == {"b": b"two"}


@pytest.mark.parametrize(
    ("source", "destination"),
    [
        ("f", "../out"),
        ("f", "/etc/out"),
        ("f", "way/new"),
        ("f", "/workspace/../out"),
        ("../outside/secret", "new"),
        ("/etc/passwd", "new"),
        ("way/secret", "new"),
    ],
)
def test_nothing_goes_out_or_comes_in(
    tools: Toolbox, directory: Path, outside: Path, source: str, destination: str
) -> None:
    tree(directory, "f", "way => ../outside")
    answer = tools.call(
        "file_move",
        {"source": source, "destination": destination, "create_dirs": True, "overwrite": True},
    )
    wrong = destination if source == "f" else source
    assert answer.error == f"Writing {wrong} is not allowed. Use session workspace."
    assert snapshot(directory) == {"f": b"in", "way": "../outside"}
    assert snapshot(outside) == {"secret": b"secret data"}


def test_the_workspace_itself_is_not_moved(tools: Toolbox, directory: Path) -> None:
    tree(directory, "f")
    answer = tools.call("file_move", {"source": ".", "destination": "new"})
    assert not answer.success
    assert snapshot(directory) == {"f": b"in"}


def test_a_move_that_is_out_of_time_has_not_happened(workspace: Workspace, directory: Path) -> None:
    tree(directory, "a")
    refused(hurried(workspace, 1), "file_move", "limit.time", source="a", destination="x/b", create_dirs=True)
    assert snapshot(directory) == {"a": b"in"}


def test_a_move_that_was_made_is_reported_whatever_the_clock_says(
    workspace: Workspace, directory: Path
) -> None:
    answers = []
    for calls in range(1, 12):
        tree(directory, "a = one")
        answer = hurried(workspace, calls).call("file_move", {"source": "a", "destination": "b"})
        assert answer.success == (directory / "b").exists() == (not (directory / "a").exists())
        answers.append(answer.success)
        (directory / "b").unlink(missing_ok=True)
    assert answers == sorted(answers)
    assert {False, True} == set(answers)
