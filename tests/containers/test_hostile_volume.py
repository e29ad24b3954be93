"""Programs on files that live only in a volume of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from carrel.config.settings import ContainerSettings
from carrel.containers import volume as volumes
from carrel.containers.engine import Engine
from carrel.containers.files import ContainerFiles
from carrel.containers.manager import Containers
from carrel.containers.spec import ContainerSpec, Volume
from carrel.errors import UnavailableError
from carrel.policy.rules import SandboxPolicy
from carrel.runtimes.container.runtime import ContainerRuntime
from carrel.runtimes.result import TrapReason
from carrel.sandbox.container import ContainerSandbox
from carrel.sandbox.workspace_source import OpenWorkspaceSource
from carrel.values import MIB, Limits
from carrel.workspace.workspace import Workspace
from tests.contained import said
from tests.containers.conftest import Make
from tests.engines import BUSYBOX

LIMIT = 5 * MIB


@pytest.fixture
def runtime(engine: Engine, tmp_path: Path) -> Iterator[ContainerRuntime]:
    """What runs programs."""
    settings = ContainerSettings(image=BUSYBOX, address=engine.address)
    made = ContainerRuntime(settings, state=lambda: tmp_path / "state")
    yield made
    made.close()


@pytest.fixture(params=[None, 20 * MIB], ids=["disk", "memory"])
def workspace(
    request: pytest.FixtureRequest, engine: Engine, containers: Containers, tmp_path: Path
) -> Iterator[Workspace]:
    """The gate to a volume, on the disk of the engine or in memory."""
    name = f"carrel-test-{uuid4().hex}"
    volume = Volume(name=name, memory_bytes=request.param, entries=10_000)
    containers.register("files", ContainerSpec(image=BUSYBOX, mount=volume))
    files = ContainerFiles(containers.ensure("files"))
    policy = SandboxPolicy.for_workspace(tmp_path)
    limits = Limits(disk_bytes=LIMIT, file_bytes=2 * MIB)
    with Workspace(files, policy=policy, limits=limits) as opened:
        yield opened
    containers.remove("files")
    volumes.remove_volume(engine, name)


def test_a_program_and_the_gate_work_on_the_same_volume(
    workspace: Workspace, runtime: ContainerRuntime
) -> None:
    workspace.write("d/f", "gate\n")
    sandbox = ContainerSandbox(OpenWorkspaceSource(workspace), engine=runtime)
    result = sandbox.run(["sh", "-c", "cat d/f; echo program >>d/f; echo x >new; ln -s /etc/passwd out"])
    assert said(result) == "gate\n"
    assert (result.files_created, result.files_modified) == (["new", "out"], ["d/f"])
    assert workspace.read_text("d/f") == "gate\nprogram\n"
    assert [event.path for event in workspace.changes(0)][-3:] == ["d/f", "new", "out"]
    with pytest.raises(ValueError, match="escapes"):
        workspace.read("out")
    workspace.write("d/f", "again")
    assert said(sandbox.run(["cat", "d/f"])) == "again"


def test_what_fills_the_volume_is_ended(workspace: Workspace, runtime: ContainerRuntime) -> None:
    sandbox = ContainerSandbox(OpenWorkspaceSource(workspace), engine=runtime)
    script = "i=0; while i=$((i+1)); do head -c 10000 /dev/zero >f$i; done"
    result = sandbox.run(["sh", "-c", script], timeout_seconds=60)
    assert result.trap_reason is TrapReason.QUOTA
    assert workspace.usage().disk_bytes > LIMIT


def test_files_that_are_in_no_volume_have_no_container(
    make: Make, runtime: ContainerRuntime, tmp_path: Path
) -> None:
    files = ContainerFiles(make(), "/tmp")
    with Workspace(files, policy=SandboxPolicy.for_workspace(tmp_path)) as workspace:
        sandbox = ContainerSandbox(OpenWorkspaceSource(workspace), engine=runtime)
        with pytest.raises(UnavailableError, match="in a volume at /workspace"):
            sandbox.run(["true"])
