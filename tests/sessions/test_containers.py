"""The container of a session goes with it, and who has none pays nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import APIClient

from carrel.audit.logger import SandboxLogger
from carrel.config.settings import ContainerSettings
from carrel.containers.engine import Engine
from carrel.containers.manager import Containers
from carrel.containers.spec import Bind, ContainerSpec
from carrel.sessions.containers import locks_dir
from carrel.sessions.manager import WorkspaceManager
from tests.containers.test_container import run
from tests.engines import BUSYBOX, require_engine
from tests.sessions.stand_ins import HOUR, Events, SetClock

NOWHERE = ContainerSettings(address="unix:///nowhere/at/all")
USER = f"{os.geteuid()}:{os.getegid()}"
KILLED = """
import os, signal, sys
from pathlib import Path
from carrel.containers.engine import Engine
from carrel.containers.manager import Containers
from carrel.containers.spec import ContainerSpec

containers = Containers(Engine.connect(sys.argv[1]), Path(sys.argv[2]))
for key in sys.argv[4:]:
    containers.register(key, ContainerSpec(image=sys.argv[3]))
    containers.ensure(key)
os.kill(os.getpid(), signal.SIGKILL)
"""
WEIGH = """
import sys
from carrel.sessions.manager import WorkspaceManager

manager = WorkspaceManager(sys.argv[1])
with manager.create("one") as workspace:
    workspace.write("a", b"a")
manager.sweep(idle_seconds=0)
manager.create("two").close()
manager.reset_workspace("two")
manager.delete_workspace("two")
print(*sys.modules)
"""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine.connect(require_engine()) as found:
        yield found


@pytest.fixture
def settings(engine: Engine) -> ContainerSettings:
    return ContainerSettings(address=engine.address)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def manager(
    root: Path, settings: ContainerSettings, clock: SetClock, events: Events
) -> Iterator[WorkspaceManager]:
    logger = SandboxLogger(events)
    with WorkspaceManager(root, containers=settings, clock=clock, logger=logger) as made:
        yield made


@pytest.fixture
def containers(engine: Engine, root: Path) -> Iterator[Containers]:
    """Somebody who uses containers of these sessions."""
    keeper = Containers(engine, locks_dir(root))
    yield keeper
    for key in keeper.known():
        keeper.remove(key)
    keeper.close()


def use(containers: Containers, *keys: str) -> None:
    for key in keys:
        containers.register(key, ContainerSpec(image=BUSYBOX))
        containers.ensure(key)


def make(manager: WorkspaceManager, *names: str) -> None:
    for name in names:
        manager.create(name).close()


def leave(engine: Engine, root: Path, *keys: str) -> None:
    """Let a process that is killed leave containers behind."""
    argv = [sys.executable, "-c", KILLED, engine.address, str(locks_dir(root)), BUSYBOX, *keys]
    assert subprocess.run(argv, timeout=60, check=False).returncode == -9


def start(root: Path, address: str, events: Events) -> None:
    """Start with the configured engine, as a command or a service does."""
    environ = {"CARREL_CONTAINER_ENGINE": address}
    WorkspaceManager.from_env(environ, root=root, logger=SandboxLogger(events)).close()


def locks(root: Path) -> list[str]:
    return sorted(path.name for path in locks_dir(root).iterdir())


# What goes with a session


def test_a_deleted_session_takes_its_container_along_whoever_uses_it(
    manager: WorkspaceManager, containers: Containers, root: Path, events: Events
) -> None:
    make(manager, "one", "two")
    use(containers, "one", "two")
    for name in ("one", "two"):
        (locks_dir(root) / f"{name}.turn").touch()
    assert manager.delete_workspace("one")
    assert containers.known() == ["two"]
    assert locks(root) == ["two.lock", "two.turn"]
    assert events.named("session.container.removed") == [{"session_id": "one"}]


def test_an_expired_session_takes_its_container_along(
    manager: WorkspaceManager, containers: Containers, clock: SetClock
) -> None:
    make(manager, "one", "two")
    use(containers, "one", "two")
    clock.advance(25 * HOUR)
    manager.extend("two", 24 * HOUR)
    result = manager.sweep()
    assert (result.deleted, result.containers) == (["one"], 1)
    assert str(result).endswith(", removed 1 container")
    assert containers.known() == ["two"]


def test_a_session_that_is_open_keeps_its_container(
    manager: WorkspaceManager, containers: Containers, clock: SetClock
) -> None:
    with manager.create("one"):
        use(containers, "one")
        clock.advance(25 * HOUR)
        result = manager.sweep()
    assert (result.skipped, result.containers) == ({"one": "in_use"}, 0)
    assert containers.known() == ["one"]


def test_what_would_be_removed_is_left(
    manager: WorkspaceManager, containers: Containers, clock: SetClock
) -> None:
    make(manager, "one")
    use(containers, "one")
    clock.advance(25 * HOUR)
    assert manager.sweep(dry_run=True).containers == 0
    assert containers.known() == ["one"]


def test_a_program_of_a_deleted_session_is_ended_and_its_files_are_gone(
    manager: WorkspaceManager, containers: Containers, root: Path
) -> None:
    make(manager, "one")
    spec = ContainerSpec(image=BUSYBOX, user=USER, mount=Bind(source=str(root / "one")))
    containers.register("one", spec)
    container = containers.ensure("one")
    stream = container.exec(["sh", "-c", "i=0; while :; do i=$((i+1)); echo $i >$i; done"], cwd="/workspace")
    while not any((root / "one").iterdir()):
        pass
    assert manager.delete_workspace("one")
    stream.close()
    assert containers.known() == []
    assert list((root / ".carrel" / "trash").iterdir()) == []


def test_a_session_that_was_emptied_keeps_its_container_which_sees_that(
    manager: WorkspaceManager, containers: Containers, root: Path
) -> None:
    with manager.create("one") as workspace:
        workspace.write("d/f", b"old")
    spec = ContainerSpec(image=BUSYBOX, user=USER, mount=Bind(source=str(root / "one")))
    containers.register("one", spec)
    container = containers.ensure("one")
    run(container, "sh", "-c", "mkdir -p e/f; echo mine >e/f/g; ln -s / link; chmod 0 e/f", cwd="/workspace")
    assert manager.reset_workspace("one")
    assert run(container, "sh", "-c", "ls -A; echo new >f", cwd="/workspace")[:2] == (0, b"")
    assert (root / "one" / "f").read_bytes() == b"new\n"
    assert containers.status("one").running


# What killed processes left


def test_a_start_removes_what_a_killed_process_left(
    engine: Engine, root: Path, containers: Containers, events: Events
) -> None:
    leave(engine, root, "one", "two")
    assert containers.known() == ["one", "two"]
    start(root, engine.address, events)
    assert containers.known() == []
    assert locks(root) == []
    assert len(events.named("session.container.removed")) == 2


def test_a_start_leaves_what_somebody_uses_and_asks_no_engine(
    root: Path, containers: Containers, events: Events
) -> None:
    use(containers, "one")
    start(root, str(NOWHERE.address), events)
    assert containers.status("one").running
    assert events.all == []


def test_a_manager_that_is_made_asks_no_engine(
    engine: Engine, root: Path, containers: Containers, events: Events
) -> None:
    leave(engine, root, "one")
    WorkspaceManager(root, containers=NOWHERE, logger=SandboxLogger(events)).close()
    assert events.all == []
    assert containers.known() == ["one"]


def test_a_sweep_removes_what_a_killed_process_left(
    manager: WorkspaceManager, engine: Engine, containers: Containers, root: Path
) -> None:
    make(manager, "one", "two")
    use(containers, "two")
    leave(engine, root, "one")
    result = manager.sweep()
    assert (result.deleted, result.containers) == ([], 1)
    assert containers.known() == ["two"]


def test_a_sweep_removes_the_container_of_a_session_that_is_gone(
    manager: WorkspaceManager, containers: Containers, root: Path
) -> None:
    use(containers, "gone")
    assert manager.sweep().containers == 1
    assert containers.known() == []
    assert not (root / "gone").exists()


def test_a_sweep_clears_the_turns_of_sessions_that_are_gone(manager: WorkspaceManager, root: Path) -> None:
    make(manager, "one")
    locks_dir(root).mkdir(parents=True)
    for name in ("one.turn", "gone.turn"):
        (locks_dir(root) / name).touch()
    manager.sweep()
    assert locks(root) == ["one.turn"]


def test_room_that_is_made_for_a_new_session_takes_containers_along(
    root: Path, settings: ContainerSettings, clock: SetClock, containers: Containers
) -> None:
    with WorkspaceManager(root, containers=settings, clock=clock, max_sessions=1) as manager:
        make(manager, "one")
        use(containers, "one")
        clock.advance(25 * HOUR)
        make(manager, "two")
        assert manager.list_workspaces() == ["two"]
    assert containers.known() == []


def test_a_lock_without_a_container_is_cleared(manager: WorkspaceManager, root: Path) -> None:
    locks_dir(root).mkdir(parents=True)
    (locks_dir(root) / "one.lock").touch()
    (locks_dir(root) / "not a session.lock").touch()
    assert manager.sweep().containers == 0
    assert locks(root) == ["not a session.lock"]


def test_who_uses_a_session_that_was_deleted_and_made_again_is_seen_by_others(
    manager: WorkspaceManager, containers: Containers
) -> None:
    make(manager, "one")
    use(containers, "one")
    manager.delete_workspace("one")
    make(manager, "one")
    containers.ensure("one")
    assert manager.sweep().containers == 0
    assert containers.status("one").running


# The engine does not answer


def test_a_session_is_deleted_without_the_engine_and_its_container_later(
    manager: WorkspaceManager, engine: Engine, containers: Containers, root: Path, events: Events
) -> None:
    make(manager, "one")
    leave(engine, root, "one")
    with WorkspaceManager(root, containers=NOWHERE, logger=SandboxLogger(events)) as cut_off:
        assert cut_off.delete_workspace("one")
        assert cut_off.list_workspaces() == []
        assert cut_off.sweep().containers == 0
    (first, *rest) = events.named("session.container.left")
    assert first["code"] == "engine.missing"
    assert len(rest) == 1  # of a deletion and a sweep
    assert locks(root) == ["one.lock"]
    assert containers.known() == ["one"]
    assert manager.sweep().containers == 1
    assert containers.known() == []
    assert locks(root) == []


def test_a_container_that_could_not_be_let_go_of_is_found_later(
    engine: Engine, root: Path, containers: Containers, manager: WorkspaceManager
) -> None:
    make(manager, "one")
    keeper = Containers(engine, locks_dir(root))
    use(keeper, "one")
    with Engine(APIClient("tcp://127.0.0.1:9", version="1.41"), "tcp://127.0.0.1:9") as nowhere:
        keeper.engine = nowhere
        keeper.close()
    assert locks(root) == ["one.lock"]
    assert manager.sweep().containers == 1


# Who has no containers


def test_without_containers_nothing_of_docker_is_loaded(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", WEIGH, str(tmp_path / "sessions")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    loaded = set(done.stdout.split())
    assert "carrel.sessions.containers" in loaded
    heavy = {"docker", "requests", "urllib3"} | {name for name in loaded if "carrel.containers" in name}
    assert not loaded & heavy


def test_the_command_line_tells_how_many_were_removed(
    engine: Engine, root: Path, containers: Containers
) -> None:
    use(containers, "gone")
    argv = [sys.executable, "-m", "carrel", "--sessions-dir", str(root), "session", "sweep"]
    environ = {**os.environ, "CARREL_CONTAINER_ENGINE": engine.address}
    (root / ".carrel").chmod(0o700)
    root.chmod(0o700)
    done = subprocess.run([*argv, "--json"], env=environ, capture_output=True, timeout=60, check=True)
    assert json.loads(done.stdout)["containers"] == 1
    done = subprocess.run(argv, env=environ, capture_output=True, timeout=60, check=True)
    assert done.stdout == b"Pruned 0 sessions, reclaimed 0 B\n"
