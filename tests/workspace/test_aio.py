"""The same gate, awaited."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from carrel import AsyncWorkspace, Limits, Workspace
from carrel.errors import ChangedError, ClosedError, LimitError
from carrel.workspace.aio import open_in_thread
from tests.workspace.archives import file, tar
from tests.workspace.planting import plant, snapshot

Result = TypeVar("Result")


def within(
    directory: Path, work: Callable[[AsyncWorkspace], Awaitable[Result]], limits: Limits | None = None
) -> Result:
    """What *work* returns in an open workspace."""

    async def run() -> Result:
        async with await AsyncWorkspace.open(
            directory, session_id="s", limits=limits or Limits()
        ) as workspace:
            return await work(workspace)

    return asyncio.run(run())


async def all_of(items: AsyncIterator[Result]) -> list[Result]:
    """Everything an asynchronous iterator gives."""
    return [item async for item in items]


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_every_public_name_of_a_workspace_is_there_too() -> None:
    assert public(Workspace) - public(AsyncWorkspace) <= {"gate"}


@pytest.mark.parametrize(
    "name",
    sorted(
        name
        for name in public(Workspace) - {"open", "close", "narrowed"}
        if inspect.isfunction(getattr(Workspace, name))
    ),
)
def test_an_operation_takes_the_same_arguments_and_is_awaited_or_iterated(name: str) -> None:
    plain = inspect.signature(getattr(Workspace, name))
    awaited = inspect.signature(getattr(AsyncWorkspace, name))
    assert list(awaited.parameters.values()) == list(plain.parameters.values())
    method = getattr(AsyncWorkspace, name)
    iterated = inspect.isasyncgenfunction(method) or "AsyncIterator" in str(awaited.return_annotation)
    assert iterated == (name in ("walk", "read_chunks", "read_tree", "archive", "changes"))
    assert iterated or inspect.iscoroutinefunction(method)
    assert method.__doc__


def test_every_reading_operation_works(directory: Path) -> None:
    plant(directory, "f = one\ntwo\n", "sub/g = two")

    async def work(workspace: AsyncWorkspace) -> None:
        assert await workspace.read("f") == b"one\ntwo\n"
        assert await workspace.read("f", offset=4, length=3) == b"two"
        info, content = await workspace.read_with_info("f", offset=4)
        assert (info, content) == (await workspace.stat("f"), b"two\n")
        assert await workspace.read_text("f") == "one\ntwo\n"
        assert (await workspace.read_lines("f", start=2)).text == "two\n"
        assert await all_of(workspace.read_chunks("f", chunk_bytes=5)) == [b"one\nt", b"wo\n"]
        assert [each.path for each in await all_of(workspace.read_tree())] == ["f", "sub/g"]
        assert b"".join(await all_of(workspace.archive("sub"))) == b"".join(
            workspace.workspace.archive("sub")
        )
        assert (await workspace.stat("f")).size_bytes == 8
        assert await workspace.exists("f")
        assert not await workspace.exists("missing")
        assert [info.path for info in await workspace.list()] == ["f", "sub"]
        assert [info.path async for info in workspace.walk()] == ["f", "sub", "sub/g"]
        assert await workspace.glob("*") == ["f", "sub", "sub/g"]
        assert await workspace.list_files() == ["f", "sub/g"]
        assert len((await workspace.search("two")).matches) == 2
        assert (await workspace.usage()).entries == 3
        assert (await workspace.explain("f")).allowed
        assert await workspace.host_path("f") == directory / "f"
        assert await all_of(workspace.changes()) == []

    within(directory, work)


def test_every_writing_operation_works(directory: Path) -> None:
    async def work(workspace: AsyncWorkspace) -> list[str]:
        await workspace.mkdir("d")
        await workspace.write("d/f", "text")
        info = await workspace.append("d/f", "!")
        for refused in (
            workspace.append("d/f", "?", if_version="1-1-1"),
            workspace.remove("d/f", if_version="1-1-1"),
            workspace.move("d/f", "g", if_version="1-1-1"),
        ):
            with pytest.raises(ChangedError) as caught:
                await refused
            assert caught.value.version == info.version
        assert (await workspace.edit("d/f", "text", "words")).replacements == 1
        await workspace.write_chunks("d/g", [b"a", b"b"])
        await workspace.copy("d/f", "copy")
        await workspace.move("d/g", "moved")
        await workspace.remove("d", recursive=True)
        assert (await workspace.extract(tar(file("in/f")))).files == 1
        return [event.operation async for event in workspace.changes()]

    done = within(directory, work)
    assert snapshot(directory) == {"copy": b"words!", "moved": b"ab", "in": None, "in/f": b"in"}
    assert done == ["mkdir", "write", "append", "edit", "write", "copy", "move", "remove", "mkdir", "write"]


def test_a_large_file_is_read_whole(directory: Path) -> None:
    content = os.urandom(2**17)
    (directory / "large").write_bytes(content)

    async def work(workspace: AsyncWorkspace) -> bytes:
        pieces = await all_of(workspace.read_chunks("large", chunk_bytes=1000))
        assert b"".join(pieces) == content
        assert await workspace.read_text("large", encoding="latin-1") == content.decode("latin-1")
        assert (await workspace.read_with_info("large"))[1] == content
        return await workspace.read("large")

    assert within(directory, work) == content


def test_a_walk_of_many_entries_keeps_its_order(directory: Path) -> None:
    names = [f"{number:04}" for number in range(600)]
    plant(directory, *names)
    assert [info.path for info in within(directory, lambda workspace: all_of(workspace.walk()))] == names


def test_errors_are_the_same(directory: Path) -> None:
    async def work(workspace: AsyncWorkspace) -> None:
        with pytest.raises(FileNotFoundError):
            await workspace.read("missing")
        with pytest.raises(FileNotFoundError):
            await all_of(workspace.read_chunks("missing"))
        with pytest.raises(FileNotFoundError):
            await all_of(workspace.walk("missing"))
        with pytest.raises(FileNotFoundError):
            await all_of(workspace.archive("missing"))
        with pytest.raises(ValueError, match="escapes session workspace"):
            await workspace.write("../evil", b"")
        with pytest.raises(ValueError, match="cannot be negative"):
            await workspace.read("missing", offset=-1)

    within(directory, work)
    assert snapshot(directory) == {}


def test_a_limit_met_on_a_walk_comes_after_what_was_found(directory: Path) -> None:
    plant(directory, "1", "2", "3")

    async def work(workspace: AsyncWorkspace) -> list[str]:
        seen: list[str] = []

        async def collect() -> None:
            async for info in workspace.walk():
                seen.append(info.path)

        with pytest.raises(LimitError):
            await collect()
        return seen

    assert within(directory, work, Limits(walk_entries=2)) == ["1", "2"]


def test_a_refusal_is_recorded_once_and_under_its_own_name(directory: Path) -> None:
    async def work(workspace: AsyncWorkspace) -> list[tuple[str, str]]:
        attempts = ((workspace.read, "../x"), (workspace.read_text, "../y"), (workspace.stat, "../z"))
        for attempt, path in attempts:
            with pytest.raises(ValueError, match="escapes"):
                await attempt(path)
        return [(event.operation, event.path) async for event in workspace.changes()]

    assert within(directory, work) == [("read", "../x"), ("read", "../y"), ("stat", "../z")]


def test_operations_run_side_by_side(directory: Path) -> None:
    async def work(workspace: AsyncWorkspace) -> list[bytes]:
        await asyncio.gather(*(workspace.write(f"f{number}", str(number)) for number in range(20)))
        return await asyncio.gather(*(workspace.read(f"f{number}") for number in range(20)))

    assert within(directory, work) == [str(number).encode() for number in range(20)]


def test_leaving_the_block_closes(directory: Path) -> None:
    async def run() -> None:
        async with await AsyncWorkspace.open(directory) as workspace:
            pass
        with pytest.raises(ClosedError):
            await workspace.list()
        await workspace.close()

    asyncio.run(run())


def test_a_plain_workspace_can_be_wrapped(workspace: Workspace) -> None:
    wrapped = AsyncWorkspace(workspace)
    asyncio.run(wrapped.write("f", b"in"))
    assert workspace.read("f") == b"in"
    assert (wrapped.session_id, wrapped.limits) == (workspace.session_id, workspace.limits)
    assert (wrapped.policy, wrapped.confinement) == (workspace.policy, workspace.confinement)


class Door:
    """Something that a thread opens, when it is allowed to."""

    def __init__(self) -> None:
        self.begun, self.may_open, self.is_closed = threading.Event(), threading.Event(), threading.Event()

    def open(self) -> Door:
        self.begun.set()
        self.may_open.wait()
        return self

    def close(self) -> None:
        self.is_closed.set()


def test_what_a_cancelled_task_was_opening_is_closed() -> None:
    door = Door()

    async def run() -> None:
        opening = asyncio.create_task(open_in_thread(door.open))
        await asyncio.to_thread(door.begun.wait)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        assert not door.is_closed.is_set()
        door.may_open.set()
        await asyncio.to_thread(door.is_closed.wait, 60)

    asyncio.run(run())
    assert door.is_closed.is_set()
