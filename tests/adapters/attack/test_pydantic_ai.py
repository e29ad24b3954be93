"""Paths of the table through the workspace of Pydantic AI: nothing outside is touched or told.

Behind it is the gate, of which every path is asked with every operation; here one in six is tried.
"""

from __future__ import annotations

import asyncio
import concurrent.futures.thread  # noqa: F401  # imported late by asyncio, perhaps as a user who may not read it
import inspect
import posixpath
from collections.abc import Callable, Coroutine

import pytest
from pydantic_ai.workspaces import (
    CommandResult,
    SupportsCommands,
    SupportsFilesystem,
    SupportsRealpath,
    WorkspaceError,
)

from carrel.adapters.pydantic_ai import CarrelWorkspace
from carrel.errors import CarrelError
from carrel.sessions.manager import WorkspaceManager
from carrel.shell.budget import Budget
from carrel.shell.command.table import COMMANDS
from tests.attack.operations import prepare
from tests.attack.privilege import acting_as
from tests.attack.test_every_operation import SHALLOW
from tests.attack.test_tools import REFUSALS
from tests.attack.world import RESOLVERS, MakeWorld, Outcome, World, split
from tests.depth import IS_THOROUGH

pytestmark = pytest.mark.attack

STRIDE = 1 if IS_THOROUGH else 6

OPERATIONS: dict[str, Callable[[CarrelWorkspace, str], Coroutine[object, object, object]]] = {
    "read_bytes": CarrelWorkspace.read_bytes,
    "write_bytes": lambda backend, path: backend.write_bytes(path, b"new"),
    "write_bytes below": lambda backend, path: backend.write_bytes(f"{path}/new/newer", b"new"),
    "stat": CarrelWorkspace.stat,
    "list_dir": CarrelWorkspace.list_dir,
    "make_dir": CarrelWorkspace.make_dir,
    "remove": CarrelWorkspace.remove,
    "exists": CarrelWorkspace.exists,
    "realpath": CarrelWorkspace.realpath,
    "run": lambda backend, path: backend.run(["cat", "--", path]),
    "run by sh": lambda backend, path: backend.run(["sh", "-c", 'cp -r mine "$1"', "sh", path]),
    "run with a variable": lambda backend, path: backend.run('ls -la "$P"', shell=True, env={"P": path}),
}
DIRECT = frozenset(OPERATIONS) - {"write_bytes below", "realpath", "run by sh"}
"""Those that must fail where the gate refuses the path itself."""

# All are imported late, perhaps as a user who may not read them.
for _command in COMMANDS.values():
    _command.load()


def test_every_operation_of_the_protocols_is_tried() -> None:
    named = {
        name
        for protocol in (SupportsCommands, SupportsFilesystem, SupportsRealpath)
        for name, _ in inspect.getmembers(protocol, inspect.iscoroutinefunction)
    }
    assert named == {name.partition(" ")[0] for name in OPERATIONS}


@pytest.mark.parametrize("place", SHALLOW[::STRIDE])
def test_no_operation_of_the_adapter_reaches_out(place: tuple[str, str], world: MakeWorld) -> None:
    layout, path = place
    with world(layout, RESOLVERS[len(layout + path) % 2]) as here, asyncio.Runner() as runner:
        _attack(here, runner, here.fill(path))


def _attack(here: World, runner: asyncio.Runner, path: str) -> None:
    """Try *path* as it is and beneath the mount, with every operation."""
    with acting_as(here.variant.user):
        manager = WorkspaceManager(here.parent, confinement=here.variant.resolver)
        backend = CarrelWorkspace("ROOT", manager=manager, budget=Budget(seconds=0.5))
    with manager, backend:
        with acting_as(here.variant.user):
            # The first change and the first refusal open the ledger and the journal.
            runner.run(backend.run("touch new; rm new; cat ..", shell=True))
            prepare(here.workspace)
        here.settle()
        for spelled in (path, f"/workspace/{path}"):
            _try_all(here, runner, backend, spelled)


def _try_all(here: World, runner: asyncio.Runner, backend: CarrelWorkspace, path: str) -> None:
    before = here.contents()
    with acting_as(here.variant.user):
        is_refused = _refuses(here, path)
    for name, operation in OPERATIONS.items():
        try:
            outcome = here.attempt(lambda _, act=operation: _called(runner, act(backend, path)), path)  # type: ignore[misc]
            assert not (is_refused and name in DIRECT and _worked(outcome)), f"not refused: {outcome}"
            _require_silence(here, outcome.value, path)
        except (AssertionError, pytest.fail.Exception) as error:
            error.add_note(f"{name} of {path[:80]!r}")
            raise
        if here.contents() != before:
            here.start_over()
            with acting_as(here.variant.user):
                prepare(here.workspace)


def _called(runner: asyncio.Runner, call: Coroutine[object, object, object]) -> object:
    """What comes of a call, or what an error of the framework says."""
    try:
        return runner.run(call)
    except WorkspaceError as error:
        return CommandResult(exit_code=1, stdout="", stderr=str(error))


def _worked(outcome: Outcome) -> bool:
    value = outcome.value
    is_failure = isinstance(value, CommandResult) and value.exit_code != 0
    return outcome.ok and value is not False and not is_failure


def _refuses(here: World, path: str) -> bool:
    """Whether *path* itself, be it a link or not, is not in the workspace."""
    try:
        here.workspace.stat(path, follow_symlinks=False)
    except CarrelError as error:
        return error.code in REFUSALS
    return False


def _require_silence(here: World, value: object, asked: str) -> None:
    """Fail if the answer names a place of the host, but for what was asked and what links say."""
    text = repr(value)
    links = [here.fill(line.partition(" => ")[2]) for line in split(here.layout)]
    known = (asked, repr(asked)[1:-1], posixpath.normpath(asked), *filter(None, links))
    # The longest first, as a short one may be a part of it.
    for words in sorted(known, key=len, reverse=True):
        text = text.replace(words, "")
    assert str(here.base) not in text, f"tells too much: {text}"
