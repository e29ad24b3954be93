"""One container for each name, however many want it, and none that nobody wants."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from carrel.containers.engine import Engine
from carrel.containers.manager import Containers
from carrel.containers.spec import ContainerSpec, Volume
from carrel.containers.usage_lock import UsageLock, exclusive_usage_lock
from carrel.containers.volume import remove_volume
from carrel.errors import ContainerError, SessionIdError
from tests.containers.test_container import run
from tests.engines import BUSYBOX
from tests.requirements import requirement

SPEC = ContainerSpec(image=BUSYBOX)
HOLDER = """
import sys
from pathlib import Path
from carrel.containers.engine import Engine
from carrel.containers.manager import Containers
from carrel.containers.spec import ContainerSpec

containers = Containers(Engine.connect(sys.argv[1]), Path(sys.argv[2]))
containers.register("one", ContainerSpec(image=sys.argv[3]))
print(containers.ensure("one").id, flush=True)
sys.stdin.read()
containers.close()
"""


Begin = Callable[[], subprocess.Popen[str]]


@pytest.fixture
def begin(engine: Engine, tmp_path: Path) -> Iterator[Begin]:
    """Begins another process that has the container `one` until its input ends."""
    with ExitStack() as stack:

        def begin() -> subprocess.Popen[str]:
            argv = [sys.executable, "-c", HOLDER, engine.address, os.fspath(tmp_path / "holds"), BUSYBOX]
            process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            return stack.enter_context(process)

        yield begin


def told(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> None:
    process.communicate(timeout=60)


@requirement("CT-1")
def test_what_is_not_registered_is_an_error_that_says_so(containers: Containers) -> None:
    with pytest.raises(ContainerError, match="'unknown' is not registered: register it first") as caught:
        containers.ensure("unknown")
    assert caught.value.code == "container.unregistered"


@pytest.mark.parametrize("key", ["../up", "", "a/b", ".hidden", "a b"])
def test_a_key_is_spelled_like_the_id_of_a_session(containers: Containers, key: str) -> None:
    with pytest.raises(SessionIdError):
        containers.register(key, SPEC)


@requirement("CT-3")
def test_many_threads_get_one_container(containers: Containers) -> None:
    containers.register("one", SPEC)
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: containers.ensure("one").id, range(16)))
    assert len(set(found)) == 1
    assert containers.known() == ["one"]


def test_many_keepers_at_once_get_one_container(
    engine: Engine, containers: Containers, tmp_path: Path
) -> None:
    keepers = [Containers(engine, tmp_path / "holds") for _ in range(8)]
    for each in keepers:
        each.register("one", SPEC)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda each: each.ensure("one").id, keepers))
    assert len(set(found)) == 1
    for each in keepers:
        each.close()
    assert containers.known() == []


def test_processes_get_the_same_container(containers: Containers, begin: Begin) -> None:
    processes = [begin() for _ in range(3)]
    containers.register("one", SPEC)
    mine = containers.ensure("one").id
    assert {told(each) for each in processes} == {mine}
    for each in processes:
        end(each)
    assert containers.ensure("one").id == mine


def test_different_keys_get_different_containers(containers: Containers) -> None:
    for key in ("one", "two"):
        containers.register(key, SPEC)
    assert containers.ensure("one").id != containers.ensure("two").id


@requirement("CT-2")
def test_a_container_that_died_is_started_again(containers: Containers) -> None:
    containers.register("one", SPEC)
    before = containers.ensure("one")
    before.kill()
    assert not containers.status("one").running
    assert containers.ensure("one").id == before.id
    assert containers.status("one").running


def test_a_container_that_was_taken_away_is_made_again(containers: Containers) -> None:
    containers.register("one", SPEC)
    before = containers.ensure("one")
    before.remove()
    assert containers.ensure("one").id != before.id


def test_a_paused_container_goes_on(containers: Containers) -> None:
    containers.register("one", SPEC)
    containers.ensure("one").pause()
    assert not containers.ensure("one").state().paused


@requirement("CT-10", "CT-11")
def test_its_status_is_told_at_every_stage(containers: Containers) -> None:
    def stage() -> tuple[bool, bool, bool, bool]:
        found = containers.status("one")
        return found.registered, found.exists, found.running, found.docker_id is not None

    assert stage() == (False, False, False, False)
    containers.register("one", SPEC)
    assert stage() == (True, False, False, False)
    containers.start("one")
    assert stage() == (True, True, True, True)
    assert containers.stop("one")
    assert stage() == (True, True, False, True)
    assert not containers.stop("one")
    assert containers.remove("one")
    assert stage() == (True, False, False, False)
    assert not containers.remove("one")
    assert not containers.stop("one")


def test_other_settings_make_another_container(containers: Containers) -> None:
    containers.register("one", SPEC)
    before = containers.ensure("one")
    containers.register("one", ContainerSpec(image=BUSYBOX, pids=20))
    assert containers.ensure("one").id != before.id
    assert containers.known() == ["one"]


def test_other_settings_wait_for_those_who_use_the_container(containers: Containers, begin: Begin) -> None:
    other = begin()
    theirs = told(other)
    containers.register("one", ContainerSpec(image=BUSYBOX, pids=20))
    with pytest.raises(ContainerError) as caught:
        containers.ensure("one")
    assert caught.value.code == "container.in_use"
    assert containers.status("one").docker_id == theirs
    end(other)
    assert containers.ensure("one").id != theirs


@requirement("CT-4")
def test_a_missing_image_is_named_and_nothing_is_left(containers: Containers) -> None:
    containers.register(
        "one", ContainerSpec(image="carrel-test-nothing", mount=Volume(name="carrel-test-left"))
    )
    with pytest.raises(ContainerError, match="'carrel-test-nothing'") as caught:
        containers.ensure("one")
    assert caught.value.code == "container.image"
    assert containers.known() == []
    assert not remove_volume(containers.engine, "carrel-test-left")


@requirement("CT-12")
def test_closing_removes_what_nobody_else_uses(containers: Containers, begin: Begin, tmp_path: Path) -> None:
    containers.register("mine", SPEC)
    containers.register("one", SPEC)
    containers.ensure("mine")
    other = begin()
    assert told(other) == containers.ensure("one").id
    containers.close()
    assert containers.known() == ["one"]
    end(other)
    assert containers.known() == []
    assert list((tmp_path / "holds").iterdir()) == []


def test_a_sweep_leaves_what_is_used_and_removes_what_a_killed_process_left(
    containers: Containers, begin: Begin
) -> None:
    other = begin()
    theirs = told(other)
    assert containers.sweep() == []
    assert containers.status("one").docker_id == theirs
    other.kill()
    other.wait()
    assert containers.status("one").running
    assert containers.sweep() == ["one"]
    assert containers.known() == []


def test_a_container_that_was_removed_by_another_keeper_is_held_again(
    engine: Engine, containers: Containers, tmp_path: Path
) -> None:
    other = Containers(engine, tmp_path / "holds")
    containers.register("one", SPEC)
    containers.ensure("one")
    assert other.remove("one")
    containers.ensure("one")
    assert other.sweep() == []
    assert containers.status("one").running


def test_a_sweep_forgets_who_used_a_container_that_is_gone(containers: Containers, tmp_path: Path) -> None:
    UsageLock.share(tmp_path / "holds" / "killed.lock").release()
    assert containers.sweep() == []
    assert list((tmp_path / "holds").iterdir()) == []


def test_another_directory_is_not_swept(engine: Engine, containers: Containers, tmp_path: Path) -> None:
    containers.register("one", SPEC)
    containers.ensure("one")
    assert Containers(engine, tmp_path / "elsewhere").sweep() == []
    assert containers.status("one").running


def test_a_volume_stays_when_its_container_goes(containers: Containers) -> None:
    name = "carrel-test-stays"
    containers.register("one", ContainerSpec(image=BUSYBOX, mount=Volume(name=name)))
    try:
        run(containers.ensure("one"), "sh", "-c", "echo kept >/workspace/file")
        containers.remove("one")
        assert run(containers.ensure("one"), "cat", "/workspace/file")[1] == b"kept\n"
    finally:
        assert remove_volume(containers.engine, name)
    assert not remove_volume(containers.engine, name)
    assert not containers.status("one").exists


def test_a_volume_that_somebody_else_uses_is_not_removed(containers: Containers) -> None:
    name, api = "carrel-test-others", containers.engine.api
    theirs = api.create_container_from_config(
        ContainerSpec(image=BUSYBOX, mount=Volume(name=name)).to_engine({})
    )
    try:
        with pytest.raises(ContainerError) as caught:
            remove_volume(containers.engine, name)
        assert caught.value.code == "container.conflict"
    finally:
        api.remove_container(theirs["Id"], force=True)
    assert remove_volume(containers.engine, name)


def test_a_volume_in_memory_holds_exactly_what_it_may(containers: Containers) -> None:
    volume = Volume(name="carrel-test-memory", memory_bytes=2**20, entries=10)
    containers.register("one", ContainerSpec(image=BUSYBOX, mount=volume))
    try:
        container = containers.ensure("one")
        code, _, err = run(container, "dd", "if=/dev/zero", "of=/workspace/big", "bs=1024", "count=1025")
        assert code == 1
        assert b"No space left on device" in err
        assert run(container, "stat", "-c", "%s", "/workspace/big")[1] == b"1048576\n"
        many = "rm big; i=0; while touch $i 2>/dev/null; do i=$((i+1)); done; ls | wc -l"
        assert run(container, "sh", "-c", many, cwd="/workspace")[1] == b"10\n"
    finally:
        containers.remove("one")
        remove_volume(containers.engine, volume.name)


def test_a_hold_is_shared_by_all_and_alone_only_by_the_last(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "one.lock"
    first, second = UsageLock.share(file), UsageLock.share(file)
    assert not first.try_exclusive()
    with exclusive_usage_lock(file) as nobody:
        assert nobody is None
    second.release()
    assert first.try_exclusive()
    first.make_shared()
    third = UsageLock.share(file)
    third.release()
    first.release(remove_file=first.try_exclusive())
    assert not file.exists()
    with exclusive_usage_lock(file) as mine:
        assert mine is not None
    assert not file.exists()


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "one.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        UsageLock.share(tmp_path / "one.lock")
    assert not (tmp_path / "elsewhere").exists()
