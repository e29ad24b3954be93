"""Which container a workspace has, and what that is made of."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from carrel.config.settings import ContainerSettings
from carrel.containers.spec import NOBODY, Bind, ContainerSpec
from carrel.errors import RuntimeMissingError, UnavailableError
from carrel.fs.memory.files import MemoryFiles
from carrel.policy.rules import SandboxPolicy
from carrel.runtimes.container.binding import ContainerBinding, find_binding, make_spec
from carrel.sessions.manager import WorkspaceManager
from carrel.values import Limits
from carrel.workspace.unmediated_run import UnmediatedRun
from carrel.workspace.workspace import Workspace

SETTINGS = ContainerSettings(image="image")


def home(workspace: Workspace, state: Path, settings: ContainerSettings = SETTINGS) -> ContainerBinding:
    return find_binding(workspace, UnmediatedRun(workspace).files, settings, lambda: state)


def test_a_session_is_noted_beside_the_sessions_by_its_id(tmp_path: Path) -> None:
    with WorkspaceManager(tmp_path / "s") as manager, manager.create("one") as workspace:
        found = home(workspace, tmp_path / "state")
    assert found.directory == tmp_path / "s" / ".carrel" / "containers"
    assert (found.key, found.run_lock.name) == ("one", "one.turn")
    assert found.spec.mount == Bind(source=str(tmp_path / "s" / "one"))


def test_another_directory_is_noted_by_its_path(tmp_path: Path) -> None:
    keys = set()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        with Workspace.open(tmp_path / name, session_id=name) as workspace:
            found = home(workspace, tmp_path / "state")
            assert found.directory == tmp_path / "state"
            assert found == home(workspace, tmp_path / "state")
            keys.add(found.key)
    assert len(keys) == 2


def test_files_in_memory_have_no_container(tmp_path: Path) -> None:
    files = MemoryFiles()
    with (
        Workspace(files, policy=SandboxPolicy.for_workspace(tmp_path)) as workspace,
        pytest.raises(UnavailableError, match="on the host's disk, or in a volume"),
    ):
        home(workspace, tmp_path)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="is about root")
def test_root_runs_programs_as_nobody(tmp_path: Path) -> None:
    with Workspace.open(tmp_path) as workspace:
        assert home(workspace, tmp_path).spec.user == NOBODY


def test_others_run_programs_as_themselves(unprivileged: Path) -> None:
    with Workspace.open(unprivileged) as workspace:
        found = home(workspace, unprivileged)
        assert found.owner == (os.geteuid(), os.getegid())
        set_by_operator = home(workspace, unprivileged, ContainerSettings(image="image", user="5:6"))
    assert set_by_operator.owner == (5, 6)


def test_the_settings_make_the_specification() -> None:
    settings = ContainerSettings(
        image="image",
        pull=True,
        memory_bytes=2**26,
        cpus=0.5,
        pids=9,
        tmp_bytes=2**20,
        network="net",
        read_only=False,
        capabilities=("CHOWN",),
        seccomp="unconfined",
        new_privileges=True,
    )
    made = make_spec(settings, "1:2", None, Limits(file_bytes=None, disk_bytes=500))
    assert made == ContainerSpec(
        image="image",
        user="1:2",
        pull=True,
        memory_bytes=2**26,
        cpus=0.5,
        pids=9,
        tmp_bytes=2**20,
        network="net",
        read_only=False,
        capabilities=("CHOWN",),
        seccomp="unconfined",
        new_privileges=True,
        file_bytes=500,
    )


def test_one_file_may_hold_what_the_stricter_limit_says() -> None:
    for limits, most in {
        Limits(file_bytes=5, disk_bytes=7): 5,
        Limits(file_bytes=7, disk_bytes=5): 5,
        Limits(file_bytes=None, disk_bytes=None): None,
    }.items():
        assert make_spec(SETTINGS, NOBODY, None, limits).file_bytes == most


def test_without_an_image_there_is_no_specification() -> None:
    with pytest.raises(RuntimeMissingError, match="no image"):
        make_spec(ContainerSettings(), NOBODY, None, Limits())
