"""A workspace is a context manager; used after closing, it says so."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from carrel import AccessMode, PathRule, SandboxPolicy, Workspace
from carrel.errors import ClosedError, UnavailableError
from carrel.sessions.manager import WorkspaceManager
from tests.workspace.planting import plant

OPERATIONS: dict[str, Callable[[Workspace], object]] = {
    "read": lambda workspace: workspace.read("f"),
    "read_with_info": lambda workspace: workspace.read_with_info("f"),
    "read_text": lambda workspace: workspace.read_text("f"),
    "read_lines": lambda workspace: workspace.read_lines("f"),
    "read_chunks": lambda workspace: workspace.read_chunks("f"),
    "reader": lambda workspace: workspace.reader("f"),
    "archive": lambda workspace: workspace.archive(),
    "stat": lambda workspace: workspace.stat("f"),
    "exists": lambda workspace: workspace.exists("f"),
    "list": lambda workspace: workspace.list(),
    "list_names": lambda workspace: workspace.list_names(),
    "walk": lambda workspace: list(workspace.walk()),
    "read_tree": lambda workspace: list(workspace.read_tree()),
    "glob": lambda workspace: workspace.glob("*"),
    "list_files": lambda workspace: workspace.list_files(),
    "search": lambda workspace: workspace.search("x"),
    "usage": lambda workspace: workspace.usage(),
    "recount": lambda workspace: workspace.recount(),
    "narrowed": lambda workspace: workspace.narrowed(),
    "explain": lambda workspace: workspace.explain("f"),
    "host_path": lambda workspace: workspace.host_path("f"),
    "write": lambda workspace: workspace.write("f", b""),
    "write_chunks": lambda workspace: workspace.write_chunks("f", [b""]),
    "append": lambda workspace: workspace.append("f", b""),
    "append to a version": lambda workspace: workspace.append("f", b"", if_version="1-1-1"),
    "touch": lambda workspace: workspace.touch("f"),
    "edit": lambda workspace: workspace.edit("f", "in", "out"),
    "mkdir": lambda workspace: workspace.mkdir("d"),
    "extract": lambda workspace: workspace.extract(b""),
    "remove": lambda workspace: workspace.remove("f"),
    "remove a version": lambda workspace: workspace.remove("f", if_version="1-1-1"),
    "move a version": lambda workspace: workspace.move("f", "g", if_version="1-1-1"),
    "move": lambda workspace: workspace.move("f", "g"),
    "copy": lambda workspace: workspace.copy("f", "g"),
    "changes": lambda workspace: list(workspace.changes()),
    "a refusal": lambda workspace: workspace.read("/etc/passwd"),
    "an escape": lambda workspace: workspace.read("../x"),
}


def test_every_public_operation_is_in_the_table() -> None:
    operations = {
        name
        for name in dir(Workspace)
        if not name.startswith("_") and callable(getattr(Workspace, name)) and name not in ("open", "close")
    }
    assert operations <= set(OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_a_closed_workspace_says_so(directory: Path, operation: Callable[[Workspace], object]) -> None:
    plant(directory, "f")
    workspace = Workspace.open(directory)
    workspace.close()
    with pytest.raises(ClosedError, match="workspace is closed") as caught:
        operation(workspace)
    assert isinstance(caught.value, ValueError)
    assert caught.value.code == "workspace.closed"


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_a_closed_session_says_so(tmp_path: Path, operation: Callable[[Workspace], object]) -> None:
    workspace = WorkspaceManager(tmp_path / "sessions").create("closing")
    workspace.write("f", b"in")
    workspace.close()
    with pytest.raises(ClosedError, match="workspace is closed"):
        operation(workspace)


def test_leaving_the_block_closes_also_after_an_error(directory: Path) -> None:
    with pytest.raises(KeyError), Workspace.open(directory) as workspace:
        raise KeyError("mine")
    with pytest.raises(ClosedError):
        workspace.list()


def test_closing_twice_is_fine(directory: Path, tmp_path: Path) -> None:
    for workspace in (Workspace.open(directory), WorkspaceManager(tmp_path / "sessions").create()):
        workspace.close()
        workspace.close()


def test_everything_is_let_go(directory: Path, tmp_path: Path) -> None:
    plant(directory, "f")
    plant(tmp_path, "other/g")
    policy = SandboxPolicy.for_workspace(
        directory, allow=[PathRule(str(tmp_path / "other"), AccessMode.READ_WRITE)]
    )
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with Workspace.open(directory, policy=policy) as workspace:
            workspace.read("f")
            workspace.read(f"{tmp_path}/other/g")
            workspace.write("new", b"in")
        with WorkspaceManager(tmp_path / "sessions").get_workspace("s") as workspace:
            workspace.write("f", b"in")
            list(workspace.changes())
        del workspace
    assert sorted(os.listdir("/proc/self/fd")) == before


def test_what_was_begun_before_closing_is_finished(directory: Path) -> None:
    plant(directory, "f = 0123456789")
    workspace = Workspace.open(directory)
    chunks = workspace.read_chunks("f", chunk_bytes=4)
    assert next(chunks) == b"0123"
    workspace.close()
    assert list(chunks) == [b"4567", b"89"]


def test_closing_while_others_work_gives_results_or_says_closed(directory: Path) -> None:
    plant(directory, "f")
    strange: list[BaseException] = []
    for _ in range(20):
        workspace = Workspace.open(directory)
        begun = threading.Barrier(3)

        def work(workspace: Workspace = workspace, begun: threading.Barrier = begun) -> None:
            begun.wait()
            try:
                while True:
                    assert workspace.read("f") == b"in"
            except ClosedError:
                pass
            except BaseException as error:
                strange.append(error)

        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        begun.wait()
        workspace.close()
        for thread in threads:
            thread.join()
    assert strange == []


def test_only_an_existing_directory_is_opened(tmp_path: Path) -> None:
    plant(tmp_path, "file")
    for name in ("missing", "file"):
        with pytest.raises(UnavailableError, match=f"cannot open the directory '{name}'") as caught:
            Workspace.open(tmp_path / name)
        assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("confinement", ["kernel", "walk"])
def test_the_way_of_confining_can_be_demanded_and_is_told(directory: Path, confinement: str) -> None:
    plant(directory, "f", "out => ..")
    with Workspace.open(directory, confinement=confinement) as workspace:
        assert workspace.confinement == confinement
        assert workspace.read("f") == b"in"
        with pytest.raises(ValueError, match="escapes"):
            workspace.list("out")


def test_a_workspace_knows_its_session_its_limits_and_its_policy(
    workspace: Workspace, directory: Path
) -> None:
    assert workspace.session_id == "abc-123"
    assert workspace.limits.depth == 64
    assert workspace.policy.workspace_root == str(directory)
    assert workspace.confinement in ("kernel", "walk")
    assert workspace.host_path("a/b") == directory / "a" / "b"
