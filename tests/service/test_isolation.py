"""No process that runs guest code serves two tenants, nor two sessions unless an operator allows it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.config.load import load
from carrel.runtimes.wasm.runtime import PythonRuntime
from carrel.sandbox.engines import make_engine
from carrel.service.execution_request import CodeRequest
from carrel.service.principal import Principal
from carrel.service.service import Service
from carrel.sessions.manager import WorkspaceManager
from tests.service.conftest import STRANGER, WRITER, settings

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def engine(guest_cache: Path) -> Iterator[PythonRuntime]:
    """One process, were it for the number of cores; nothing is ready."""
    python = replace(load({}).python, cache=guest_cache, workers=1, ready=0)
    with closing(make_engine(python)) as made:
        yield made


def _workers() -> int:
    """How many worker processes this process has."""
    children = [path.read_text().split() for path in Path("/proc/self/task").glob("*/children")]
    commands = [Path(f"/proc/{pid}/cmdline").read_bytes() for pids in children for pid in pids]
    return sum(b"carrel.runtimes.wasm.worker.main" in command for command in commands)


async def _run(service: Service, caller: Principal, session_id: str) -> None:
    """Leave an interpreter behind."""
    await service.sessions.ensure(caller, session_id)
    async with service.session_access.open(caller, session_id) as session:
        work = CodeRequest(code="x = 1", stateful=True)
        result = session.run(work, lambda *_: None, lambda _: None)
        assert result.exit_code == 0


@pytest.mark.parametrize(("isolated", "expected"), [(True, [1, 2, 2, 3]), (False, [1, 1, 1, 2])])
def test_processes_are_shared_as_configured(
    tmp_path: Path, engine: PythonRuntime, isolated: bool, expected: list[int]
) -> None:
    before = _workers()

    async def work() -> list[int]:
        found = []
        manager = WorkspaceManager(tmp_path / "sessions")
        chosen = settings(isolate_sessions=isolated)
        async with Service(manager, chosen, engine=lambda _: engine) as service:
            for caller, session_id in ((WRITER, "a"), (WRITER, "b"), (WRITER, "a"), (STRANGER, "a")):
                await _run(service, caller, session_id)
                found.append(_workers() - before)
        return found

    assert asyncio.run(work()) == expected
