"""The time of an operation: when it is over, the work stops and nothing is half done."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from threading import Event, get_ident

import pytest

from carrel.testing.tree import tree
from carrel.tools.toolbox import Toolbox
from carrel.workspace.workspace import Workspace
from tests.tools.profiles.files.answers import done, refused
from tests.workspace.planting import snapshot

FILES = 200


class Ticks:
    """A clock that goes on by a millisecond whenever it is looked at."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> float:
        self.count += 1
        return self.count / 1000


class Steps:
    """Counts the steps of the work in another thread, and waits at one of them."""

    def __init__(self, stop_at: int) -> None:
        self.count = 0
        self.reached = Event()
        self.may_go_on = Event()
        self._stop_at = stop_at
        self._home = get_ident()

    def __call__(self) -> None:
        if get_ident() == self._home:
            return
        self.count += 1
        if self.count == self._stop_at:
            self.reached.set()
            assert self.may_go_on.wait(30)


@pytest.fixture
def large(directory: Path) -> Path:
    """A directory with many files, some of them deeper."""
    return tree(directory / "large", *(f"{number % 10}/{number}" for number in range(FILES)))


@pytest.fixture
def ticks() -> Ticks:
    return Ticks()


@pytest.fixture
def hurried(workspace: Workspace, ticks: Ticks) -> Iterator[Toolbox]:
    """Operations that have 50 steps."""
    with Toolbox(workspace, profile="files", timeout_ms=50, clock=ticks) as toolbox:
        yield toolbox


def test_a_recursive_listing_stops(hurried: Toolbox, large: Path, ticks: Ticks) -> None:
    answer = refused(hurried, "list_directory", "limit.time", path="large", recursive=True)
    assert answer.error == "Operation timed out after 0.05s. Ask for less at once, or for more time."
    assert answer.metadata["limit"] == 50
    assert 50 < ticks.count < 60


def test_a_recursive_deletion_stops_before_anything_is_deleted(
    hurried: Toolbox, directory: Path, large: Path, ticks: Ticks
) -> None:
    before = snapshot(directory)
    answer = refused(hurried, "delete", "limit.time", path="large", recursive=True)
    assert "changes" not in answer.metadata
    assert snapshot(directory) == before
    assert 50 < ticks.count < 60


def test_with_enough_time_both_come_to_their_end(workspace: Workspace, large: Path) -> None:
    with Toolbox(workspace, profile="files", timeout_ms=10_000, clock=Ticks()) as toolbox:
        listed = done(toolbox, "list_directory", path="large", recursive=True)
        assert listed.metadata["item_count"] == FILES + 10
        deleted = done(toolbox, "delete", path="large", recursive=True)
        assert deleted.metadata["item_count"] == FILES + 11
    assert not large.exists()


def test_each_call_has_the_whole_time(hurried: Toolbox, directory: Path, ticks: Ticks) -> None:
    tree(directory, "f")
    for _ in range(50):
        done(hurried, "read_file", path="f")
    assert ticks.count >= 100


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_file", {}),
        ("write_file", {"content": "new"}),
        ("list_directory", {}),
        ("create_directory", {}),
        ("delete", {}),
        ("delete", {"force": True, "recursive": True}),
        ("exists", {}),
        ("file_info", {}),
    ],
)
def test_no_operation_begins_when_its_time_is_over(
    workspace: Workspace, directory: Path, name: str, arguments: dict[str, object]
) -> None:
    tree(directory, "d/f")
    before = snapshot(directory)
    minutes = iter(range(0, 6000, 60))
    with Toolbox(workspace, profile="files", clock=lambda: next(minutes)) as toolbox:
        for path in ("d", "d/f", "d/new"):
            refused(toolbox, name, "limit.time", path=path, **arguments)
    assert snapshot(directory) == before


def test_a_cancelled_task_stops_its_listing_and_deletes_nothing(
    workspace: Workspace, directory: Path, large: Path
) -> None:
    before = snapshot(directory)

    async def cancel(name: str) -> int:
        steps = Steps(20)
        with Toolbox(workspace.narrowed(check=steps), profile="files") as toolbox:
            task = asyncio.create_task(toolbox.acall(name, {"path": "large", "recursive": True}))
            await asyncio.to_thread(steps.reached.wait, 30)
            task.cancel()
            await asyncio.sleep(0)
            steps.may_go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task
        return steps.count

    for name in ("list_directory", "delete"):
        assert asyncio.run(cancel(name)) == 20
    assert snapshot(directory) == before


def test_every_operation_can_be_awaited(workspace: Workspace) -> None:
    async def use() -> None:
        with Toolbox(workspace, profile="files") as toolbox:
            calls: list[tuple[str, dict[str, object], object]] = [
                ("create_directory", {"path": "d"}, {"path": "/workspace/d", "created": True}),
                (
                    "write_file",
                    {"path": "d/f", "content": "x"},
                    {"path": "/workspace/d/f", "bytesWritten": 1},
                ),
                ("read_file", {"path": "d/f"}, {"content": "x", "encoding": "utf-8"}),
                ("exists", {"path": "d/f"}, {"exists": True, "type": "file"}),
                (
                    "list_directory",
                    {"path": "d"},
                    {
                        "path": "/workspace/d",
                        "entries": [{"name": "f", "type": "file", "size": 1, "path": "/workspace/d/f"}],
                    },
                ),
                ("delete", {"path": "d", "recursive": True}, {"path": "/workspace/d", "deleted": True}),
            ]
            for name, arguments, expected in calls:
                result = await toolbox.acall(name, arguments)
                assert (result.success, result.data) == (True, expected)
            info = await toolbox.acall("file_info", {"path": "d"})
            assert info.code == "path.missing"

    asyncio.run(use())


def test_a_large_file_is_read_without_holding_up_the_others(workspace: Workspace, directory: Path) -> None:
    (directory / "large").write_bytes(b"x" * 2**20)
    steps = Steps(1)

    async def use() -> None:
        with Toolbox(workspace.narrowed(check=steps), profile="files") as toolbox:
            reading = asyncio.create_task(toolbox.acall("read_file", {"path": "large"}))
            await asyncio.to_thread(steps.reached.wait, 30)
            assert not reading.done()
            steps.may_go_on.set()
            assert len((await reading).data["content"]) == 2**20

    asyncio.run(use())
