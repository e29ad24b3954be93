"""Command lines of a service run in worker processes, and a bad one is the trouble of its caller alone."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.config.load import load
from carrel.sandbox.workers import runner
from carrel.sandbox.workers.pool import ShellWorkers
from carrel.service.execution_request import CommandRequest
from carrel.service.principal import Principal
from carrel.service.service import Service
from carrel.sessions.manager import WorkspaceManager
from carrel.shell.result import ShellResult
from tests.sandbox.workers.conftest import MEMORY_BYTES, UNMETERED
from tests.service.conftest import READER, STRANGER, WRITER, Work

pytestmark = pytest.mark.attack


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[ShellWorkers]:
    """Workers in which nothing is charged."""
    monkeypatch.setattr(runner, "GRACE_SECONDS", 0.2)
    monkeypatch.setenv("CARREL_SHELL_PIPELINES", "1")
    made = ShellWorkers(8, MEMORY_BYTES, preload=[UNMETERED])
    yield made
    made.close()


def serve(root: Path, workers: ShellWorkers, work: Work[None]) -> None:
    async def main() -> None:
        settings = load(os.environ)
        async with Service(WorkspaceManager(root), settings, shell_workers=workers) as service:
            await work(service)

    asyncio.run(main())


async def run(service: Service, caller: Principal, command: str) -> ShellResult:
    execution = await service.start(caller, "s", CommandRequest(command=command), create=True)
    result = await execution.result()
    assert isinstance(result, ShellResult)
    return result


def test_a_service_answers_on_while_bad_lines_are_ended(tmp_path: Path, workers: ShellWorkers) -> None:
    async def work(service: Service) -> None:
        bad = [asyncio.create_task(run(service, WRITER, line)) for line in ("hog", "crash SIGSEGV")]
        for _ in range(5):
            assert (await run(service, STRANGER, "echo here")).stdout == b"here\n"
        assert [(await each).error_code for each in bad] == ["limit.memory_bytes", "runtime.failed"]
        told = await service.call_tool(WRITER, "s", "bash", {"command": "echo x > f; hog"})
        assert told.error is not None
        assert told.metadata["changes"] == [{"action": "created", "path": "/workspace/f", "size_bytes": 2}]

    serve(tmp_path, workers, work)


def test_tenants_have_workers_of_their_own_and_none_outlives_the_service(
    tmp_path: Path, workers: ShellWorkers
) -> None:
    pids: set[bytes] = set()

    async def work(service: Service) -> None:
        lines = [run(service, caller, "process") for caller in (WRITER, STRANGER) for _ in range(3)]
        seen = [(await each).stdout for each in lines]
        assert not set(seen[:3]) & set(seen[3:])
        assert str(os.getpid()).encode() + b"\n" not in seen
        told = await service.call_tool(WRITER, "s", "bash", {"command": "process"})
        assert told.output["stdout"].encode() in seen[:3]
        pids.update(seen)

    serve(tmp_path, workers, work)
    assert pids
    assert not any(Path(f"/proc/{pid.decode().strip()}").exists() for pid in pids)


def test_the_role_of_the_caller_holds_in_a_worker(tmp_path: Path, workers: ShellWorkers) -> None:
    async def work(service: Service) -> None:
        await run(service, WRITER, "echo x > f")
        assert (await run(service, READER, "cat f")).stdout == b"x\n"
        assert b"read-only" in (await run(service, READER, "rm f")).stderr
        assert (await run(service, READER, "python -c 1")).exit_code == 127

    serve(tmp_path, workers, work)


def test_what_nobody_waits_for_is_ended(tmp_path: Path, workers: ShellWorkers) -> None:
    async def work(service: Service) -> None:
        execution = await service.start(WRITER, "s", CommandRequest(command="hang"), create=True)
        async for _ in execution.events():
            execution.cancel()
        result = await execution.result()
        assert isinstance(result, ShellResult)
        assert (result.stdout, result.error_code) == (b"begun\n", "shell.cancelled")
        call = asyncio.create_task(service.call_tool(WRITER, "s", "bash", {"command": "hang"}))
        while not len(service.executions):
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not len(service.executions)

    serve(tmp_path, workers, work)
