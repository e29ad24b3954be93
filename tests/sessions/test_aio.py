"""The sessions of a directory, awaited."""

from __future__ import annotations

import asyncio
import inspect
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from carrel import AsyncWorkspace, AsyncWorkspaceManager, Limits, WorkspaceManager
from carrel.config.load import load
from carrel.errors import (
    ClosedError,
    ConfigError,
    SessionExistsError,
    SessionMissingError,
    UnavailableError,
)
from carrel.sessions.aio import ManagerOptions
from carrel.storage.local.store import Store
from tests.sessions.children import paused
from tests.sessions.stand_ins import HOUR, SetClock

NOT_AWAITED = {
    "description": "returns values without waiting; a service passes them to its own processes",
    "from_description": "the other end of `description`, in a process that has no event loop",
    "journal": "returns a file of records that blocks; `AsyncWorkspace.changes` iterates over them",
    "shown": "filters records of `journal`",
}
"""Methods that the awaited manager does not have, with the reason; its `manager` has them."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_every_public_method_of_a_manager_is_there_too() -> None:
    assert public(WorkspaceManager) - public(AsyncWorkspaceManager) == set(NOT_AWAITED)


@pytest.mark.parametrize("name", sorted(public(WorkspaceManager) - set(NOT_AWAITED)))
def test_a_method_takes_the_same_arguments_and_is_awaited(name: str) -> None:
    wanted = inspect.signature(getattr(WorkspaceManager, name)).parameters
    assert inspect.signature(getattr(AsyncWorkspaceManager, name)).parameters == wanted
    assert inspect.iscoroutinefunction(getattr(AsyncWorkspaceManager, name))


def test_the_options_are_those_of_a_manager() -> None:
    wanted = inspect.signature(WorkspaceManager).parameters
    assert ["root", *ManagerOptions.__annotations__] == list(wanted)


def test_a_session_is_created_used_and_deleted(root: Path) -> None:
    clock = SetClock()

    async def run() -> None:
        async with AsyncWorkspaceManager(root, limits=Limits(disk_bytes=1000), clock=clock) as manager:
            assert (manager.root, manager.limits, manager.ttl_seconds) == (
                root,
                Limits(disk_bytes=1000),
                24 * HOUR,
            )
            async with await manager.create("s", ttl_seconds=HOUR) as workspace:
                assert isinstance(workspace, AsyncWorkspace)
                await workspace.write("f", "text")
                assert (await manager.status("s")).in_use
            with pytest.raises(SessionExistsError):
                await manager.create("s")
            async with await manager.open("s") as workspace:
                assert await workspace.read_text("f") == "text"
            assert await manager.get_workspace_size("s") == 4
            assert (await manager.verify("s")).is_whole
            assert (await manager.extend("s", 2 * HOUR)).ttl_seconds == 2 * HOUR
            await (await manager.get_workspace("other")).close()
            assert await manager.list_workspaces() == ["other", "s"]
            assert [record.session_id for record in await manager.list_records("other")] == ["s"]
            clock.advance(3 * HOUR)
            assert (await manager.sweep()).deleted == ["s"]
            assert await manager.reset_workspace("s") is False
            assert await manager.delete_workspace("other") is True
            with pytest.raises(SessionMissingError):
                await manager.open("other")

    asyncio.run(run())


def test_concurrent_tasks_get_one_session(root: Path) -> None:
    async def run() -> list[bytes]:
        async with AsyncWorkspaceManager(root) as manager:

            async def add(number: int) -> None:
                async with await manager.get_workspace("s") as workspace:
                    await workspace.append("f", f"{number}\n")

            await asyncio.gather(*(add(number) for number in range(20)))
            async with await manager.open("s") as workspace:
                return (await workspace.read("f")).split()

    assert sorted(map(int, asyncio.run(run()))) == list(range(20))


def test_settings_apply_and_invalid_ones_are_refused(tmp_path: Path) -> None:
    environ = {"CARREL_SESSIONS_DIR": str(tmp_path / "configured"), "CARREL_TTL_SECONDS": "60"}

    async def run() -> None:
        async with await AsyncWorkspaceManager.from_env(environ) as manager:
            assert (manager.root, manager.ttl_seconds) == (tmp_path / "configured", 60)
            other = await manager.elsewhere(tmp_path / "elsewhere")
            assert (other.root, other.ttl_seconds) == (tmp_path / "elsewhere", 60)
            await other.close()
        async with await AsyncWorkspaceManager.from_settings(load(environ), root=tmp_path / "b") as manager:
            assert (manager.root, manager.ttl_seconds) == (tmp_path / "b", 60)
        with pytest.raises(ConfigError):
            await AsyncWorkspaceManager.from_env({"CARREL_TTL_SECONDS": "soon"})

    asyncio.run(run())


def test_a_directory_that_cannot_be_used_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(UnavailableError):
        AsyncWorkspaceManager(tmp_path / "link")


def test_a_manager_is_wrapped_with_its_own_options(root: Path) -> None:
    with WorkspaceManager(root) as plain:
        assert AsyncWorkspaceManager(plain).manager is plain
        with pytest.raises(TypeError, match="'ttl_seconds'"):
            AsyncWorkspaceManager(plain, ttl_seconds=5)


def test_a_manager_that_was_closed_is_not_used_any_more_and_its_workspaces_are(root: Path) -> None:
    async def run() -> None:
        async with AsyncWorkspaceManager(root) as manager:
            workspace = await manager.create("s")
        with pytest.raises(ClosedError):
            await manager.create("t")
        await manager.close()
        async with workspace:
            assert await workspace.list() == []

    asyncio.run(run())


def locked(root: Path) -> Callable[[Callable[[], None]], object]:
    """Return what holds the lock of the session `held` until its process is killed."""

    def hold(pause: Callable[[], None]) -> None:
        with Store(root).claim("held"):
            pause()

    return hold


def test_the_loop_runs_on_while_another_process_has_locked_the_session(root: Path) -> None:
    async def run(child: int) -> None:
        async with AsyncWorkspaceManager(root) as manager:
            opening = asyncio.create_task(manager.open("held"))
            extending = asyncio.create_task(manager.extend("held", 60))
            async with await manager.get_workspace("free") as free:
                await free.write("f", "written in the meantime")
            assert not opening.done()
            assert not extending.done()
            os.kill(child, signal.SIGKILL)
            assert (await extending).ttl_seconds == 60
            async with await opening as workspace:
                assert workspace.session_id == "held"

    with WorkspaceManager(root) as manager:
        manager.create("held").close()
    with paused(locked(root)) as child:
        asyncio.run(run(child))
