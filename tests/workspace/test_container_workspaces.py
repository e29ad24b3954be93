"""Workspaces whose files live only in containers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.containers.engine import Engine
from carrel.errors import ContainerError, EscapeError, QuotaError, SessionIdError
from carrel.tools.toolbox import Toolbox
from carrel.values import Limits
from carrel.workspace.container_workspaces import ContainerWorkspaces
from tests.engines import BUSYBOX, require_engine


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine.connect(require_engine()) as found:
        yield found


@pytest.fixture
def workspaces(engine: Engine, tmp_path: Path) -> Iterator[ContainerWorkspaces]:
    with ContainerWorkspaces(engine, tmp_path, image=BUSYBOX) as opened:
        yield opened
        opened.delete("one")


def test_files_stay_when_everything_is_closed(
    engine: Engine, workspaces: ContainerWorkspaces, tmp_path: Path
) -> None:
    with workspaces.open("one") as workspace:
        workspace.write("deep/file.txt", "kept")
    ours = workspaces.container("one").id
    workspaces.close()
    assert ours not in [found["Id"] for found in engine.listed({"carrel.key": "one"})]
    with ContainerWorkspaces(engine, tmp_path, image=BUSYBOX) as others, others.open("one") as workspace:
        assert workspace.read("deep/file.txt") == b"kept"
        assert workspace.usage().entries == 2


def test_a_deleted_workspace_is_gone_with_its_files(workspaces: ContainerWorkspaces) -> None:
    with workspaces.open("one") as workspace:
        workspace.write("file.txt", "lost")
    assert workspaces.delete("one")
    assert not workspaces.delete("one")
    with workspaces.open("one") as workspace:
        assert workspace.list() == []


def test_the_gate_is_the_same_as_for_any_other_workspace(workspaces: ContainerWorkspaces) -> None:
    limits = Limits(disk_bytes=1000, entries=3)
    with workspaces.open("one", limits=limits) as workspace:
        workspace.write("a.txt", b"x" * 900)
        with pytest.raises(QuotaError):
            workspace.write("b.txt", b"x" * 101)
        workspace.write("b.txt", b"x" * 100)
        with pytest.raises(EscapeError):
            workspace.read("../../etc/passwd")
        changes = [(event.operation, event.path, event.error) for event in workspace.changes()]
    assert changes == [
        ("write", "a.txt", None),
        ("write", "b.txt", "quota.bytes"),
        ("write", "b.txt", None),
        ("read", "../../etc/passwd", "path.escape"),
    ]


def test_tools_work_on_it(workspaces: ContainerWorkspaces) -> None:
    with workspaces.open("one") as workspace:
        toolbox = Toolbox(workspace, role="developer")
        assert toolbox.call("file_write", {"path": "a.txt", "content": "one\ntwo\n"}).success
        assert toolbox.call("file_read", {"path": "a.txt"}).output == "one\ntwo\n"
        answer = toolbox.call("bash", {"command": "grep -n two a.txt"})
        assert answer.output["stdout"] == "2:two\n"


def test_a_workspace_in_memory_holds_its_quota_whoever_writes(engine: Engine, tmp_path: Path) -> None:
    limits = Limits(disk_bytes=2**20, entries=100)
    with ContainerWorkspaces(engine, tmp_path, image=BUSYBOX, in_memory=True) as workspaces:
        with workspaces.open("one", limits=limits) as workspace:
            workspace.write("file", bytes(2**19))
            with pytest.raises(QuotaError):
                workspace.write("more", bytes(2**19 + 1))
        workspaces.delete("one")


def test_a_workspace_in_memory_needs_a_size(engine: Engine, tmp_path: Path) -> None:
    with (
        ContainerWorkspaces(engine, tmp_path, image=BUSYBOX, in_memory=True) as workspaces,
        pytest.raises(ValueError, match="disk_bytes"),
    ):
        workspaces.open("one", limits=Limits(disk_bytes=None))


def test_what_cannot_be_is_named(engine: Engine, workspaces: ContainerWorkspaces, tmp_path: Path) -> None:
    with pytest.raises(SessionIdError):
        workspaces.open("../one")
    with (
        ContainerWorkspaces(engine, tmp_path, image="carrel-test-nothing") as others,
        pytest.raises(ContainerError, match="'carrel-test-nothing'"),
    ):
        others.open("one")
