"""Operations that are tried without waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from carrel import AsyncWorkspace, Limits, Workspace
from carrel.errors import EscapeError
from carrel.fs.nonblocking import WouldBlock, blocking, releasing, run_nonblocking
from carrel.sessions.manager import WorkspaceManager
from tests.storage.holding import held
from tests.storage.ledgers import state

CALLS: dict[str, Callable[[Workspace], Any]] = {
    "append": lambda workspace: workspace.append("f", "more"),
    "mkdir": lambda workspace: workspace.mkdir("d/e"),
    "touch": lambda workspace: workspace.touch("f"),
    "touch, new": lambda workspace: workspace.touch("new"),
    "write": lambda workspace: workspace.write("f", "other"),
}


@pytest.fixture
def sessions(tmp_path: Path) -> WorkspaceManager:
    return WorkspaceManager(tmp_path / "sessions")


@pytest.mark.parametrize("name", CALLS)
def test_what_another_process_holds_is_not_waited_for_and_nothing_is_changed(
    sessions: WorkspaceManager, name: str
) -> None:
    with sessions.create("s") as workspace:
        workspace.write("f", "text")
        before = list(workspace.changes())
        with held(sessions.root, "s"):
            with pytest.raises(WouldBlock):
                run_nonblocking(lambda: CALLS[name](workspace))
            assert workspace.list_files() == ["f"]
            assert workspace.read("f") == b"text"
        assert list(workspace.changes()) == before
        run_nonblocking(lambda: CALLS[name](workspace))
        assert len(list(workspace.changes())) > len(before)


def test_a_refusal_is_answered_and_recorded_while_the_session_is_locked(sessions: WorkspaceManager) -> None:
    with sessions.create("s") as workspace:
        with held(sessions.root, "s"), pytest.raises(EscapeError):
            run_nonblocking(lambda: workspace.stat("../x"))
        assert [event.operation for event in workspace.changes() if event.error] == ["stat"]


def test_what_another_thread_does_is_not_waited_for(sessions: WorkspaceManager) -> None:
    with sessions.create("s") as workspace, workspace.gate.ledger:
        seen: list[str] = []

        def attempt() -> None:
            try:
                run_nonblocking(lambda: workspace.touch("f"))
            except WouldBlock:
                seen.append("would wait")

        thread = Thread(target=attempt)
        thread.start()
        thread.join()
    assert seen == ["would wait"]


@pytest.mark.parametrize("content", [b"", None], ids=["nothing known", "killed in a change"])
def test_a_session_that_must_be_counted_first_is_left_to_a_thread(
    sessions: WorkspaceManager, content: bytes | None
) -> None:
    with sessions.create("s") as workspace:
        workspace.write("f", "text")
        ledger = state(sessions, "s") / "ledger"
        page = ledger.read_bytes()
        # After eight bytes that say what it is comes the mark of a change that has not ended.
        ledger.write_bytes(page[:8] + b"\1" + page[9:] if content is None else content)
        with pytest.raises(WouldBlock):
            run_nonblocking(lambda: workspace.touch("f"))
        workspace.touch("f")
        run_nonblocking(lambda: workspace.touch("f"))
        assert workspace.usage().disk_bytes == 4


def test_a_directory_that_must_be_counted_first_is_left_to_a_thread(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, limits=Limits()) as workspace:
        with pytest.raises(WouldBlock):
            run_nonblocking(lambda: workspace.mkdir("d"))
        workspace.mkdir("d")
        run_nonblocking(lambda: workspace.mkdir("e"))


def test_a_loop_goes_on_while_an_awaited_operation_waits(sessions: WorkspaceManager) -> None:
    async def work(workspace: AsyncWorkspace) -> None:
        await workspace.write("f", "text")
        with held(sessions.root, "s") as release:
            refused = asyncio.create_task(workspace.stat("../x"))
            made = asyncio.create_task(workspace.mkdir("d"))
            read = asyncio.create_task(workspace.read("../x"))
            assert await workspace.read("f") == b"text"
            await asyncio.sleep(0)
            # They have begun by now, so that only a loop that is free gets here.
            release()
            await made
            for each in (refused, read):
                with pytest.raises(EscapeError):
                    await each
        assert (await workspace.stat("d")).is_directory

    async def main() -> None:
        async with AsyncWorkspace(sessions.create("s")) as workspace:
            await work(workspace)

    asyncio.run(main())


class Blocked:
    """Notes when a thread blocks."""

    def __init__(self) -> None:
        self.began, self.ended = Event(), Event()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        self.began.set()
        yield
        self.ended.set()

    def touch(self, workspace: Workspace) -> Thread:
        """Touch a file in another thread."""

        def run() -> None:
            with releasing(self):
                workspace.touch("f")

        thread = Thread(target=run)
        thread.start()
        return thread


def test_a_wait_for_another_process_is_marked_as_blocking(sessions: WorkspaceManager) -> None:
    blocked = Blocked()
    with sessions.create("s") as workspace, held(sessions.root, "s") as release:
        thread = blocked.touch(workspace)
        blocked.began.wait()
        assert not blocked.ended.is_set()
        release()
        thread.join()
        assert blocked.ended.is_set()


def test_a_wait_for_another_thread_is_marked_as_blocking(sessions: WorkspaceManager) -> None:
    blocked = Blocked()
    with sessions.create("s") as workspace:
        with workspace.gate.ledger:
            thread = blocked.touch(workspace)
            blocked.began.wait()
            assert not blocked.ended.is_set()
        thread.join()
        assert blocked.ended.is_set()


def test_a_lock_that_is_free_does_not_block(sessions: WorkspaceManager) -> None:
    blocked = Blocked()
    with sessions.create("s") as workspace:
        blocked.touch(workspace).join()
    assert not blocked.began.is_set()


def test_a_blocking_wait_within_another_is_marked_once() -> None:
    blocked = Blocked()
    with releasing(blocked), blocking():
        blocked.began.clear()
        with blocking():
            pass
        assert not blocked.began.is_set()
        assert not blocked.ended.is_set()
    assert blocked.ended.is_set()
