"""Errors: a code, what is wrong, what to do next; and nothing about the host."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from carrel import Limits, Workspace
from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from carrel.values import ToolResult
from tests.workspace.planting import snapshot

PATHS = (
    "missing", "missing/f", "f", "f/x", "d", "d/", ".", "..", "../ws/f", "../outside/secret", "d/../../x",
    "/etc/passwd", "/", "/workspace", "/workspace/../etc", "out", "out/secret", "up", "up/ws/f", "loop",
    "pipe", "nowhere", "shut/f", "a\0b", "x" * 300, "y/" * 200 + "z", "~", "C:\\windows", "\\\\host\\share",
    "d\\f", "\ud800", "", " ", "CON", ".carrel", "a//b", "proc",
)  # fmt: skip
ARGUMENTS: dict[str, list[dict[str, Any]]] = {  # Any: whatever an operation takes
    "read_file": [{}, {"encoding": "ascii"}],
    "write_file": [
        {"content": "x" * 2000},
        {"content": "%", "encoding": "base64"},
        {"content": "", "if_match": "1"},
    ],
    "list_directory": [{}, {"recursive": True}],
    "create_directory": [{"recursive": False}],
    "delete": [{}, {"if_match": "1", "recursive": True}],
    "exists": [{}],
    "file_info": [{}],
}


@pytest.fixture
def answers(directory: Path, outside: Path) -> list[ToolResult]:
    """What every operation says to every path, in a workspace where much is wrong."""
    tree(
        directory,
        "f = grün",
        "d/f",
        "d/e/g",
        f"out => {outside}",
        "up => ..",
        "loop => loop",
        f"nowhere => {directory}/missing",
        "proc => /proc/self/root",
        "shut/f",
    )
    os.mkfifo(directory / "pipe")
    found = []
    with (
        Workspace.open(directory, limits=Limits(disk_bytes=1000, entries=12, depth=8)) as workspace,
        Toolbox(workspace, profile="files", max_file_size=1500) as toolbox,
    ):
        assert set(ARGUMENTS) == set(toolbox.names)
        for name, arguments in ARGUMENTS.items():
            for path in PATHS:
                before = snapshot(directory)
                for more in arguments:
                    result = toolbox.call(name, {"path": path, **more})
                    found.append(result)
                    if not result.success:
                        assert snapshot(directory) == before
                    before = snapshot(directory)
    return found


def test_no_result_reveals_the_path_of_the_workspace(answers: list[ToolResult], tmp_path: Path) -> None:
    assert sum(not answer.success for answer in answers) > 100
    for answer in answers:
        for text in (answer.to_json(), answer.text()):
            assert str(tmp_path) not in text
            assert "Traceback" not in text


def test_every_error_has_a_code_and_a_sentence(answers: list[ToolResult]) -> None:
    for answer in answers:
        if not answer.success:
            assert answer.code not in (None, "tool.failed", "carrel.error")
            assert answer.error
            assert answer.error == answer.error.strip()


def test_nothing_outside_was_touched(answers: list[ToolResult], outside: Path) -> None:
    assert snapshot(outside) == {"secret": b"secret data"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody without rights")
def test_permissions_of_the_host_are_an_error_like_any_other(unprivileged: Path) -> None:
    tree(unprivileged, "shut/f", "f")
    (unprivileged / "shut").chmod(0)
    (unprivileged / "f").chmod(0)
    with (
        Workspace.open(unprivileged) as workspace,
        Toolbox(workspace, profile="files") as toolbox,
    ):
        for name, path in (("read_file", "f"), ("read_file", "shut/f"), ("list_directory", "shut")):
            result = toolbox.call(name, {"path": path})
            assert result.code == "path.permission"
            assert str(unprivileged) not in result.to_json()
    (unprivileged / "shut").chmod(0o700)


def test_unknown_arguments_are_refused_by_name(files: Toolbox, directory: Path) -> None:
    for name in files.names:
        result = files.call(name, {"path": "f", "content": "x", "createParents": True})
        assert result.code == "tool.arguments"
        assert result.error is not None
        assert "'createParents'" in result.error
    assert snapshot(directory) == {}


def test_a_path_is_required_by_every_operation(files: Toolbox) -> None:
    for schema in files.schemas():
        assert "path" in schema["required"]
        assert schema["additionalProperties"] is False
        result = files.call(schema["title"], {})
        assert result.error is not None
        assert "'path' is missing" in result.error


def test_a_closed_workspace_is_an_answer(directory: Path) -> None:
    workspace = Workspace.open(directory)
    toolbox = Toolbox(workspace, profile="files")
    workspace.close()
    assert toolbox.call("read_file", {"path": "f"}).code == "workspace.closed"


def test_a_path_that_ends_in_a_dot_is_reported_as_it_is(files: Toolbox) -> None:
    assert files.call("read_file", {"path": "a."}).error == (
        "File not found: a.. Use list_directory to see what is there."
    )


@pytest.mark.parametrize("path", ["../outside/secret", "/etc/passwd", "out/secret"])
def test_every_attempt_to_leave_is_recorded_and_logged(
    files: Toolbox,
    workspace: Workspace,
    directory: Path,
    outside: Path,
    caplog: pytest.LogCaptureFixture,
    path: str,
) -> None:
    tree(directory, f"out => {outside}")
    for name, (arguments, *_) in ARGUMENTS.items():
        caplog.clear()
        before = max((event.sequence or 0 for event in workspace.changes()), default=0)
        result = files.call(name, {"path": path, **arguments})
        assert not result.success
        told = {(event.error, event.path) for event in workspace.changes(since=before)}
        assert told == {(result.code, path)}
        assert {record.levelname for record in caplog.records} == {"WARNING"}


def test_what_is_away_for_a_while_is_an_answer_and_works_again_afterwards(
    files: Toolbox, directory: Path
) -> None:
    tree(directory, "d/f")
    (directory / "d").rename(directory / "away")
    for name in ("read_file", "list_directory", "delete", "file_info"):
        result = files.call(name, {"path": "d"})
        assert result.code == "path.missing"
        assert str(directory) not in result.to_json()
    (directory / "away").rename(directory / "d")
    assert files.call("read_file", {"path": "d/f"}).success
