"""A workspace that was closed, before or in the middle of an operation (E1, E2)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from carrel.audit.logger import SandboxLogger
from carrel.errors import ClosedError
from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.sessions.manager import WorkspaceManager
from carrel.workspace.workspace import Workspace
from tests.workspace.traces import drafts_in

OPERATIONS: dict[str, Callable[[Workspace, str], object]] = {
    "read": lambda workspace, path: workspace.read(path),
    "read_with_info": lambda workspace, path: workspace.read_with_info(path),
    "read_lines": lambda workspace, path: workspace.read_lines(path),
    "read_chunks": lambda workspace, path: list(workspace.read_chunks(path)),
    "reader": lambda workspace, path: list(workspace.reader(path).chunks(10)),
    "archive": lambda workspace, path: list(workspace.archive(path)),
    "list": lambda workspace, path: workspace.list(path),
    "walk": lambda workspace, path: list(workspace.walk(path)),
    "stat": lambda workspace, path: workspace.stat(path),
    "exists": lambda workspace, path: workspace.exists(path),
    "search": lambda workspace, path: workspace.search("x", path),
    "write": lambda workspace, path: workspace.write(path, b"x"),
    "write_chunks": lambda workspace, path: workspace.write_chunks(path, [b"x"]),
    "append": lambda workspace, path: workspace.append(path, b"x"),
    "edit": lambda workspace, path: workspace.edit(path, "x", "y"),
    "mkdir": lambda workspace, path: workspace.mkdir(path),
    "extract": lambda workspace, path: workspace.extract(bytes(1024), path),
    "remove": lambda workspace, path: workspace.remove(path),
    "remove recursive": lambda workspace, path: workspace.remove(path, recursive=True),
    "move": lambda workspace, path: workspace.move(path, "g"),
    "copy": lambda workspace, path: workspace.copy(path, "g"),
    "copy recursive": lambda workspace, path: workspace.copy(path, "g", recursive=True),
    "glob": lambda workspace, path: workspace.glob("*"),
    "list_files": lambda workspace, path: workspace.list_files(),
    "usage": lambda workspace, path: workspace.usage(),
    "recount": lambda workspace, path: workspace.recount(),
    "changes": lambda workspace, path: list(workspace.changes()),
    "host_path": lambda workspace, path: workspace.host_path(path),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("path", ["f", "d/f", "../f", "/etc/passwd", "/workspace/f", "allowed"])
def test_every_operation_on_a_closed_workspace_says_so(
    sessions: WorkspaceManager, tmp_path: Path, operation: str, path: str
) -> None:
    """Whatever the path: also where the policy would refuse it, or another rule has a directory for it."""
    allowed = tmp_path / "allowed"
    allowed.mkdir()
    (allowed / "f").write_bytes(b"x")
    policy = SandboxPolicy.for_workspace(
        sessions.root / "one", allow=[PathRule(str(allowed), AccessMode.READ_WRITE)]
    )
    workspace = sessions.create("one", policy=policy)
    workspace.write("f", b"x")
    workspace.close()
    if path == "allowed":
        path = f"{allowed}/f"
    with pytest.raises(ClosedError):
        OPERATIONS[operation](workspace, path)
    workspace.close()
    assert os.listdir(allowed) == ["f"]
    assert os.listdir(sessions.root / "one") == ["f"]


@pytest.mark.parametrize("kind", ["bare", "session"])
def test_a_write_that_was_begun_before_closing_says_so_and_leaves_nothing(
    tmp_path: Path, quiet: SandboxLogger, kind: str
) -> None:
    """Nobody but the workspace keeps its directories open, and every number that becomes free is taken."""
    (tmp_path / "decoy").mkdir()
    if kind == "bare":
        (tmp_path / "ws").mkdir()
        workspace = Workspace.open(tmp_path / "ws", logger=quiet)
        place = tmp_path / "ws"
    else:
        workspace = WorkspaceManager(tmp_path / "sessions", logger=quiet).create("one")
        place = tmp_path / "sessions/one"
    taken: list[int] = []

    def chunks() -> Iterator[bytes]:
        yield b"one "
        workspace.close()
        taken.extend(os.open(tmp_path / "decoy", os.O_RDONLY | os.O_DIRECTORY) for _ in range(16))
        yield b"two"

    with pytest.raises(ClosedError):
        workspace.write_chunks("a/f", chunks())
    for fd in taken:
        os.close(fd)
    assert os.listdir(place) == []
    assert os.listdir(tmp_path / "decoy") == []
    if kind == "session":
        assert drafts_in(tmp_path / "sessions") == []


def test_a_stream_or_walk_that_was_begun_before_closing_ends_normally_or_says_that_it_is_closed(
    bare: Workspace, directory: Path
) -> None:
    for name in ("a/f", "b/f", "c/f"):
        bare.write(name, b"x" * 100)
    stream, walk = bare.read_chunks("a/f", chunk_bytes=10), bare.walk()
    found = [next(stream), next(walk).path]
    bare.close()
    decoys = [os.open(directory.parent, os.O_RDONLY | os.O_DIRECTORY) for _ in range(16)]
    try:
        found += [*stream, *(info.path for info in walk)]
    except ClosedError:
        pass
    else:
        assert found == [b"x" * 10, "a", *[b"x" * 10] * 9, "a/f", "b", "b/f", "c", "c/f"]
    for fd in decoys:
        os.close(fd)
