"""The table through the session file functions and through `AsyncWorkspace`."""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401  # asyncio imports it late, perhaps as a user who may not read it
from collections.abc import Callable

import pytest

from carrel.errors import AbsoluteError
from carrel.sessions.functions import (
    delete_session_path,
    list_session_files,
    read_session_file,
    write_session_file,
)
from carrel.workspace.aio import AsyncWorkspace
from tests.attack.more import MORE
from tests.attack.operations import NEW, names
from tests.attack.privilege import USERS, User
from tests.attack.row import Row
from tests.attack.special import marks
from tests.attack.table import ROWS
from tests.attack.world import DOORS, RESOLVERS, Door, MakeWorld, Variant
from tests.requirements import requirement

pytestmark = pytest.mark.attack


ALL = [(row, row.request.operation, marks(row.layout)) for row in (*ROWS, *MORE)]

FUNCTIONS: dict[str, Callable[..., object]] = {
    "read": lambda root, path: read_session_file("ROOT", path, root),
    "write": lambda root, path, **options: write_session_file("ROOT", path, NEW, root, **options),
    "unlink": lambda root, path: delete_session_path("ROOT", path, root),
    "rmdir": lambda root, path: delete_session_path("ROOT", path, root),
    "rmtree": lambda root, path: delete_session_path("ROOT", path, root, recursive=True),
}


@requirement("P-05", "P-06", "P-09", "P-12", "P-14", "R-06", "W-09", "D-07", "D-08", "I-12")
@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize(
    "row", [row for row in (*ROWS, *MORE) if row.request.operation in FUNCTIONS], ids=str
)
def test_every_row_ends_as_required_by_the_session_functions(row: Row, user: User, world: MakeWorld) -> None:
    operation, arguments, options = row.request
    with world(row.layout, Variant("kernel", user, Door.SESSION)) as here:
        before = here.contents()
        paths = tuple(here.fill(path) for path in arguments)
        outcome = here.attempt(lambda _: FUNCTIONS[operation](here.parent, *paths, **options), *paths)
        assert outcome.names & row.endings, f"{row.call} must end in {row.required}, not {outcome}"
        if not outcome.ok:
            assert here.contents() == before
        elif row.leaves is not None:
            assert here.contents() == here.expected(row.leaves)


@requirement("P-06", "W-15", "I-12")
@pytest.mark.parametrize("operation", FUNCTIONS)
@pytest.mark.parametrize(
    "path", ["/etc/passwd", "/workspace/f", "/", "$WS/f", "\\etc\\passwd", "C:\\f", "//f"]
)
def test_the_session_functions_take_no_absolute_path(operation: str, path: str, world: MakeWorld) -> None:
    with world("f; d/f", RESOLVERS[0]) as here:
        asked = here.fill(path)
        outcome = here.attempt(lambda _: FUNCTIONS[operation](here.parent, asked), asked)
        assert isinstance(outcome.error, AbsoluteError), str(outcome)
        assert here.contents() == here.expected("f; d/f")


@requirement("P-11", "L-21")
def test_listing_the_files_of_a_session_tells_nothing_of_links(world: MakeWorld) -> None:
    layout = "f; d/f; out => $OUT; file => $OUT/secret; none => $OUT/none; inside => f; up => ..; dir => d"
    with world(layout, RESOLVERS[0]) as here:
        outcome = here.attempt(lambda _: list_session_files("ROOT", here.parent))
        assert outcome.value == ["d/f", "f"]


async def _names(workspace: AsyncWorkspace, path: str) -> tuple[str, ...]:
    return names(await workspace.list(path))


async def _walk(workspace: AsyncWorkspace) -> tuple[str, ...]:
    return tuple([info.path async for info in workspace.walk()])


async def _matches(workspace: AsyncWorkspace, path: str) -> object:
    return (await workspace.search("in", path)).matches


ASYNC: dict[str, Callable[..., object]] = {
    "read": AsyncWorkspace.read,
    "write": lambda workspace, path, **options: workspace.write(path, NEW, **options),
    "append": lambda workspace, path: workspace.append(path, NEW),
    "stat": AsyncWorkspace.stat,
    "lstat": lambda workspace, path: workspace.stat(path, follow_symlinks=False),
    "listdir": _names,
    "walk": _walk,
    "mkdir": lambda workspace, path, **options: workspace.mkdir(path, parents=False, **options),
    "mkdir_all": lambda workspace, path: workspace.mkdir(path, exist_ok=True),
    "unlink": AsyncWorkspace.remove,
    "rmdir": AsyncWorkspace.remove,
    "rmtree": lambda workspace, path: workspace.remove(path, recursive=True),
    "rename": AsyncWorkspace.move,
    "copy": AsyncWorkspace.copy,
    "copy_all": lambda workspace, path, target: workspace.copy(path, target, recursive=True),
    "search": _matches,
}


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize(
    "row", [pytest.param(row, id=str(row), marks=mark) for row, name, mark in ALL if name in ASYNC]
)
def test_every_row_ends_as_required_when_it_is_awaited(row: Row, variant: Variant, world: MakeWorld) -> None:
    operation, arguments, options = row.request

    async def call(workspace: AsyncWorkspace, *paths: str) -> object:
        return await ASYNC[operation](workspace, *paths, **options)  # type: ignore[misc]  # each is awaitable

    with world(row.layout, variant) as here:
        before = here.contents()
        paths = tuple(here.fill(path) for path in arguments)
        outcome = here.attempt(lambda workspace: asyncio.run(call(AsyncWorkspace(workspace), *paths)), *paths)
        assert outcome.names & row.endings, f"{row.call} must end in {row.required}, not {outcome}"
        if not outcome.ok:
            assert here.contents() == before
        elif row.leaves is not None:
            assert here.contents() == here.expected(row.leaves)


@pytest.mark.parametrize("path", ["../secret", "out/secret", "fifo", "no", "/etc/passwd"])
def test_awaited_chunks_give_nothing_of_the_outside(path: str, world: MakeWorld) -> None:
    async def call(workspace: AsyncWorkspace) -> list[bytes]:
        return [chunk async for chunk in workspace.read_chunks(path)]

    with world("f; out => $OUT", DOORS[0]) as here:
        outcome = here.attempt(lambda workspace: asyncio.run(call(AsyncWorkspace(workspace))), path)
        assert outcome.error is not None
