"""Workers with a memory limit, and sessions of two tenants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from carrel.sandbox.shell import Shell
from carrel.sandbox.workers.pool import ShellWorkers
from carrel.sandbox.workers.runner import SessionRunner
from carrel.sessions.manager import WorkspaceManager
from carrel.values import MIB

UNMETERED = "tests.sandbox.workers.unmetered"
MEMORY_BYTES = 32 * MIB

MakeShell = Callable[..., Shell]


@pytest.fixture(scope="module")
def workers() -> Iterator[ShellWorkers]:
    """As a service has them."""
    made = ShellWorkers(4, 512 * MIB)
    yield made
    made.close()


@pytest.fixture(scope="module")
def unmetered() -> Iterator[ShellWorkers]:
    """Workers in which no command is charged for anything."""
    made = ShellWorkers(4, MEMORY_BYTES, preload=[UNMETERED])
    yield made
    made.close()


@pytest.fixture
def make_shell(tmp_path: Path) -> Iterator[MakeShell]:
    """Makes a shell on a session of some tenant, whose lines run in some workers, or here."""
    with ExitStack() as stack:

        def make(workers: ShellWorkers | None, tenant: str = "one") -> Shell:
            manager = stack.enter_context(WorkspaceManager(tmp_path / tenant))
            workspace = stack.enter_context(manager.get_workspace("s"))
            runner = None if workers is None else SessionRunner(workers, manager, "s", "host")
            return Shell(workspace, pipelines=True, runner=runner)

        yield make
