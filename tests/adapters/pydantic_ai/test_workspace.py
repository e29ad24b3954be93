"""`CarrelWorkspace` keeps what Pydantic AI asks of a workspace, where its own suite does not reach."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path

import pytest
from pydantic_ai.workspaces import (
    SupportsCommands,
    SupportsFilesystem,
    SupportsRealpath,
    WorkspaceBackend,
    WorkspaceOutputLimitError,
    WorkspaceReadOnlyError,
    WorkspaceRef,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)

from carrel.adapters.pydantic_ai import CarrelWorkspace
from carrel.errors import EscapeError, LoopError, QuotaError, SessionIdError
from carrel.sessions.manager import WorkspaceManager
from carrel.shell.budget import Budget
from carrel.testing import tree
from carrel.values import Limits


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[WorkspaceManager]:
    with WorkspaceManager(tmp_path / "sessions") as manager:
        yield manager


@pytest.fixture
def backend(manager: WorkspaceManager) -> Iterator[CarrelWorkspace]:
    with CarrelWorkspace(manager=manager) as backend:
        yield backend


def host_directory(backend: CarrelWorkspace) -> Path:
    return Path(backend.open().host_path("."))


def test_it_is_all_that_a_backend_can_be(backend: CarrelWorkspace) -> None:
    for kind in (WorkspaceBackend, SupportsCommands, SupportsFilesystem, SupportsRealpath):
        assert isinstance(backend, kind)


def test_nothing_is_made_before_the_first_operation(tmp_path: Path) -> None:
    backend = CarrelWorkspace(workspace_root=tmp_path / "sessions")
    before = backend.ref
    assert (before, list(tmp_path.iterdir())) == (None, [])
    with backend:
        asyncio.run(backend.write_bytes("a", b"1"))
        assert backend.ref is not None
        assert (tmp_path / "sessions" / backend.ref.id / "a").read_bytes() == b"1"


def test_another_process_reopens_the_session_by_its_reference(tmp_path: Path) -> None:
    with CarrelWorkspace(workspace_root=tmp_path / "sessions") as backend:
        asyncio.run(backend.write_bytes("a", b"kept"))
        assert backend.ref is not None
        told = json.dumps({"provider": backend.ref.provider, "id": backend.ref.id})
    code = """
import asyncio, json, sys
from pydantic_ai.workspaces import WorkspaceRef
from carrel.adapters.pydantic_ai import CarrelWorkspace
with CarrelWorkspace(WorkspaceRef(**json.loads(sys.argv[1])), workspace_root=sys.argv[2]) as backend:
    print(asyncio.run(backend.read_bytes("a")).decode())
"""
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, told, str(tmp_path / "sessions")],
        capture_output=True,
        check=False,
        text=True,
    )
    assert (answer.stdout, answer.stderr) == ("kept\n", "")


def test_a_session_is_named_by_its_id_and_one_that_is_gone_is_not_made_anew(
    manager: WorkspaceManager,
) -> None:
    manager.create("mine").close()
    with CarrelWorkspace("mine", manager=manager) as backend:
        assert asyncio.run(backend.working_dir()) == "/workspace"
    gone = CarrelWorkspace("gone", manager=manager)
    with pytest.raises(WorkspaceUnavailableError):
        asyncio.run(gone.working_dir())
    assert not (manager.root / "gone").exists()


def test_a_reference_of_somebody_else_is_refused() -> None:
    with pytest.raises(ValueError, match="not one of 'local'"):
        CarrelWorkspace(WorkspaceRef(provider="local", id="/etc"))


@pytest.mark.attack
@pytest.mark.parametrize("session_id", ["../outside", "a/../..", "/etc", ".carrel", "", "a\nb"])
def test_an_id_that_leads_elsewhere_is_refused(manager: WorkspaceManager, session_id: str) -> None:
    backend = CarrelWorkspace(WorkspaceRef(provider="carrel", id=session_id), manager=manager)
    with pytest.raises(SessionIdError):
        asyncio.run(backend.working_dir())


def test_closing_leaves_the_session_and_says_so_afterwards(manager: WorkspaceManager) -> None:
    backend = CarrelWorkspace(manager=manager)
    asyncio.run(backend.write_bytes("a", b"1"))
    backend.close()
    for call in (lambda: backend.read_bytes("a"), lambda: backend.run(["ls"]), backend.working_dir):
        with pytest.raises(WorkspaceUnavailableError):
            asyncio.run(call())
    assert backend.ref is not None
    with CarrelWorkspace(backend.ref, manager=manager) as again:
        assert asyncio.run(again.read_bytes("a")) == b"1"


def test_limits_hold_and_belong_to_the_session(manager: WorkspaceManager) -> None:
    with CarrelWorkspace(manager=manager, limits=Limits(disk_bytes=10)) as backend:
        with pytest.raises(QuotaError):
            asyncio.run(backend.write_bytes("a", b"x" * 11))
        result = asyncio.run(backend.run("printf 12345678901 > b", shell=True))
    assert result.exit_code == 1
    assert "quota exceeded" in result.stderr


# Links and special files, which no command of the shell makes


def test_links_are_followed_in_listings_and_by_realpath(backend: CarrelWorkspace) -> None:
    root = host_directory(backend)
    tree(root, "target/", "target/f", "link => target", "nowhere => gone", "loop => loop", "out => /etc")
    entries = {entry.name: entry for entry in asyncio.run(backend.list_dir("/workspace"))}
    assert {name: entry.is_dir for name, entry in entries.items()} == {
        "link": True,
        "loop": False,
        "nowhere": False,
        "out": False,
        "target": True,
    }
    assert entries["link"].path == "/workspace/link"
    assert entries["out"].size is None
    assert asyncio.run(backend.stat("/workspace/link")).is_dir
    real = backend.realpath
    assert asyncio.run(real("/workspace/link/missing")) == "/workspace/target/missing"
    assert asyncio.run(real("/workspace/link/..")) == "/workspace"
    assert asyncio.run(real("link")) == "/workspace/target"
    assert asyncio.run(real("/workspace/a\nb '*'")) == "/workspace/a\nb '*'"
    # What is elsewhere is not looked at.
    assert asyncio.run(real("/etc/mtab")) == "/etc/mtab"
    for path, kind in (("loop/q", LoopError), ("out/passwd", EscapeError), ("../..", EscapeError)):
        with pytest.raises(kind):
            asyncio.run(real(path))


def test_a_write_goes_through_a_link_and_a_removal_takes_the_link(backend: CarrelWorkspace) -> None:
    root = host_directory(backend)
    tree(root, "target", "link => target", "directory/", "directory/f", "way => directory")
    asyncio.run(backend.write_bytes("/workspace/link", b"new"))
    assert (root / "target").read_bytes() == b"new"
    asyncio.run(backend.remove("/workspace/way"))
    assert (root / "directory" / "f").exists()


def test_a_fifo_is_an_error_at_once(backend: CarrelWorkspace) -> None:
    os.mkfifo(host_directory(backend) / "fifo")
    with pytest.raises(OSError, match="regular"):
        asyncio.run(backend.read_bytes("/workspace/fifo"))


# Commands


def test_input_is_empty_and_much_output_is_complete(backend: CarrelWorkspace) -> None:
    assert asyncio.run(backend.run(["cat"])).stdout == ""
    result = asyncio.run(backend.run("seq 100000; seq 100000 >&2", shell=True))
    assert result.stdout == result.stderr == "".join(f"{number}\n" for number in range(1, 100_001))


def test_commands_and_files_are_the_same(backend: CarrelWorkspace) -> None:
    asyncio.run(backend.write_bytes("/workspace/a", b"in\n"))
    result = asyncio.run(backend.run("cat a && printf out > a", shell=True))
    assert (result.exit_code, result.stdout) == (0, "in\n")
    assert asyncio.run(backend.read_bytes("/workspace/a")) == b"out"


def test_each_command_begins_anew(backend: CarrelWorkspace) -> None:
    asyncio.run(backend.run("mkdir d; cd d; export V=1", shell=True))
    assert asyncio.run(backend.run('pwd; printf "$V"', shell=True)).stdout == "/workspace\n"


def test_variables_of_a_call_go_before_those_of_all_calls(manager: WorkspaceManager) -> None:
    with CarrelWorkspace(manager=manager, env={"A": "1", "B": "2"}) as backend:
        result = asyncio.run(backend.run('printf "$A$B"', shell=True, env={"B": "3"}))
        assert result.stdout == "13"
        with pytest.raises(ValueError, match="valid variable name"):
            asyncio.run(backend.run(["ls"], env={"A=B": "1"}))


def test_too_much_output_is_an_error_with_its_beginning(manager: WorkspaceManager) -> None:
    with (
        CarrelWorkspace(manager=manager, budget=Budget(output_bytes=10)) as backend,
        pytest.raises(WorkspaceOutputLimitError) as caught,
    ):
        asyncio.run(backend.run(["seq", "100"]))
    assert caught.value.limit == 10
    assert caught.value.stdout.startswith("1\n2\n")


def test_a_timeout_tells_what_was_printed_before(backend: CarrelWorkspace) -> None:
    with pytest.raises(WorkspaceTimeoutError) as caught:
        asyncio.run(backend.run("printf early; sleep 3600", shell=True, timeout=0.2))
    assert caught.value.stdout == "early"


@pytest.mark.parametrize("timeout", [0, -1, float("inf"), float("nan")])
def test_a_timeout_is_a_number_above_zero(backend: CarrelWorkspace, timeout: float) -> None:
    with pytest.raises(ValueError, match="timeout"):
        asyncio.run(backend.run(["ls"], timeout=timeout))
    assert backend.ref is None


def test_no_words_are_no_command(backend: CarrelWorkspace) -> None:
    with pytest.raises(ValueError, match="at least one word"):
        asyncio.run(backend.run([]))
    with pytest.raises(TypeError, match="must be strings"):
        asyncio.run(backend.run(["ls", 1]))  # type: ignore[list-item]  # that it is wrong is the point


def test_a_budget_of_the_workspace_goes_before_a_longer_timeout(manager: WorkspaceManager) -> None:
    with (
        CarrelWorkspace(manager=manager, budget=Budget(seconds=0.1)) as backend,
        pytest.raises(WorkspaceTimeoutError),
    ):
        asyncio.run(backend.run(["sleep", "3600"], timeout=3600))


def test_the_event_loop_goes_on_while_commands_run_and_a_cancelled_one_stops(
    backend: CarrelWorkspace,
) -> None:
    async def main() -> None:
        # More than the threads that the event loop has for everything else.
        running = [asyncio.create_task(backend.run(["sleep", "3600"])) for _ in range(50)]
        await backend.write_bytes("a", b"1")
        assert (await backend.run(["cat", "a"])).stdout == "1"
        for task in running:
            task.cancel()
        ended = await asyncio.gather(*running, return_exceptions=True)
        assert {type(one) for one in ended} == {asyncio.CancelledError}

    asyncio.run(main())
    changes = [event.error for event in backend.open().changes() if event.error]
    assert changes == ["shell.cancelled"] * len(changes)


def test_a_workspace_that_nobody_has_any_more_keeps_no_session_in_use(manager: WorkspaceManager) -> None:
    backend = CarrelWorkspace(manager=manager)
    asyncio.run(backend.write_bytes("a", b"1"))
    assert backend.ref is not None
    session_id = backend.ref.id
    assert manager.status(session_id).in_use
    del backend
    gc.collect()
    assert not manager.status(session_id).in_use


def test_python_runs_in_the_guest_until_it_is_stopped(
    backend: CarrelWorkspace, guest_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_CACHE", str(guest_cache))

    async def main() -> None:
        await backend.write_bytes("a", b"in")
        result = await backend.run(
            ["python", "-c", "import sys; print(sys.argv[1], open('a').read())", "x y"]
        )
        assert (result.exit_code, result.stdout) == (0, "x y in\n")
        with pytest.raises(WorkspaceTimeoutError) as caught:
            await backend.run(["python", "-c", "print('early')\nwhile True: pass"], timeout=1)
        assert caught.value.stdout == "early\n"
        code = "open('begun', 'w').close()\nwhile True: pass"
        running = asyncio.create_task(backend.run(["python", "-c", code]))
        while not await backend.exists("begun"):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())


def test_a_session_that_is_deleted_is_told_by_every_operation(manager: WorkspaceManager) -> None:
    with CarrelWorkspace(manager=manager) as backend:
        asyncio.run(backend.write_bytes("a", b"1"))
        assert backend.ref is not None
        manager.delete_workspace(backend.ref.id)
        calls: tuple[Callable[[], Coroutine[object, object, object]], ...] = (
            lambda: backend.read_bytes("a"),
            lambda: backend.write_bytes("a", b"2"),
            lambda: backend.stat("a"),
            lambda: backend.list_dir("."),
            lambda: backend.make_dir("d"),
            lambda: backend.remove("a"),
            lambda: backend.exists("a"),
            lambda: backend.realpath("a"),
            lambda: backend.run(["true"]),
            backend.working_dir,
        )
        for call in calls:
            with pytest.raises(WorkspaceUnavailableError):
                asyncio.run(call())


def test_a_session_that_is_deleted_during_a_command_is_unavailable(manager: WorkspaceManager) -> None:
    with CarrelWorkspace(manager=manager) as backend:

        async def main() -> None:
            await backend.working_dir()
            running = asyncio.create_task(backend.run("touch begun; sleep 0.5", shell=True, timeout=60))
            while not await backend.exists("begun"):
                await asyncio.sleep(0)
            assert backend.ref is not None
            await asyncio.to_thread(manager.delete_workspace, backend.ref.id)
            with pytest.raises(WorkspaceUnavailableError):
                await running

        asyncio.run(main())


def test_read_only_refuses_every_change(manager: WorkspaceManager) -> None:
    manager.create("mine").close()
    with CarrelWorkspace("mine", manager=manager, mode="ro") as backend:
        assert asyncio.run(backend.list_dir("/workspace")) == []
        calls: tuple[Callable[[], Coroutine[object, object, None]], ...] = (
            lambda: backend.write_bytes("a", b"1"),
            lambda: backend.make_dir("d"),
            lambda: backend.remove("a"),
        )
        for call in calls:
            with pytest.raises(WorkspaceReadOnlyError, match="read-only workspace"):
                asyncio.run(call())
        result = asyncio.run(backend.run("touch a", shell=True))
        assert (result.exit_code, "read-only workspace" in result.stderr) == (1, True)


def test_what_leads_out_is_refused_and_nothing_is_told_of_the_host(backend: CarrelWorkspace) -> None:
    for path in ("../x", "/etc/passwd", "/workspace/../x"):
        with pytest.raises(EscapeError) as caught:
            asyncio.run(backend.read_bytes(path))
        assert str(backend.open().host_path(".")) not in str(caught.value)
