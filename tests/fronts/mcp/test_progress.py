"""What a client that waits is told."""

from __future__ import annotations

import asyncio
import os
import sys
from itertools import count
from pathlib import Path

import pytest

from carrel.config.load import load
from carrel.fronts.mcp.client_context import ClientContext
from carrel.fronts.mcp.progress import compilation_messages, with_progress
from carrel.fronts.mcp.tool_calls import ToolCalls
from carrel.runtimes.wasm.build import compiled
from carrel.runtimes.wasm.build.compiled import FOLDER, CompiledGuest, Progress
from carrel.runtimes.wasm.pool import Pool
from carrel.runtimes.wasm.runtime import PythonRuntime
from carrel.sandbox import sandbox
from carrel.service.principal import Principal
from carrel.service.service import Service
from carrel.sessions.manager import WorkspaceManager


def test_it_is_told_until_the_work_is_done() -> None:
    heard: list[tuple[float, str]] = []
    enough = asyncio.Event()

    async def report(done: float, _: None, says: str) -> None:
        heard.append((done, says))
        if len(heard) == 3:
            enough.set()

    async def work() -> str:
        await enough.wait()
        return "done"

    clock = map(float, count())
    answer = asyncio.run(
        with_progress(work(), report, lambda: "busy", interval_seconds=0.001, clock=lambda: next(clock))
    )
    assert answer == "done"
    assert heard[:3] == [(1, "busy"), (2, "busy"), (3, "busy")]


def test_work_that_is_done_at_once_tells_nothing() -> None:
    async def report(*_: object) -> None:
        raise AssertionError

    async def work() -> int:
        return 1

    assert asyncio.run(with_progress(work(), report, str)) == 1


def test_what_goes_wrong_goes_on_to_the_caller() -> None:
    async def report(*_: object) -> None:
        return

    async def work() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(with_progress(work(), report, str))


def test_who_does_not_want_it_any_more_waits_for_its_end() -> None:
    ends: list[str] = []

    async def report(*_: object) -> None:
        return

    async def main() -> None:
        begun = asyncio.Event()

        async def work() -> None:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                ends.append("stopped")

        waiting = asyncio.create_task(with_progress(work(), report, str))
        await begun.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        ends.append("told")

    asyncio.run(main())
    assert ends == ["stopped", "told"]


# While the guest compiles

COMPILER = """
import sys
from pathlib import Path
from carrel.runtimes.wasm.build.manifest import mark_compiling
mark_compiling(Path(sys.argv[1]))
open(sys.argv[2]).read()
sys.exit(3)
"""
"""Fails as soon as the client was told."""


@pytest.mark.parametrize("tool", ["python_executor", "execute_code", "bash"])
def test_a_client_is_told_that_its_call_waits_for_the_guest(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "_POLL_SECONDS", 0.001)
    heard = tmp_path / "heard"
    os.mkfifo(heard)
    compiler = [sys.executable, "-c", COMPILER, str(tmp_path / "cache" / FOLDER), str(heard)]
    guest = CompiledGuest(tmp_path / "cache", command=compiler)
    engine = PythonRuntime(guest, Pool(str(guest.directory)))
    client = ClientContext(caller=Principal(name="someone", role="developer", session="s1"))
    arguments = {"command": "python -c 1"} if tool == "bash" else {"code": "1"}
    messages: list[str] = []

    async def report(_: float, __: None, message: str) -> None:
        if not messages and "compiling the guest" in message:
            messages.append(message)
            await asyncio.to_thread(heard.write_text, "heard")

    async def main() -> None:
        manager = WorkspaceManager(tmp_path / "sessions")
        async with Service(manager, load(os.environ), engine=lambda _: engine) as service:
            calls = ToolCalls(service, progress_seconds=0.001)
            await calls.call(client, tool, arguments, report)

    asyncio.run(main())
    (message,) = messages
    assert "this is done once" in message


def test_the_progress_of_compiling_is_told_once_each_and_in_its_own_context() -> None:
    done = Progress(elapsed_seconds=7, expected_seconds=90)
    waiting = Progress(elapsed_seconds=8, expected_seconds=90, waiting=True)
    with compilation_messages() as take:
        watch = sandbox._COMPILATION.get()
        assert watch is not None
        assert take() is None
        watch(done)
        assert take() == "compiling the guest, 7 s of about 90 s; this is done once"
        assert take() is None
        watch(waiting)
        assert take() == "waiting for another process to compile the guest, 8 s"
    assert sandbox._COMPILATION.get() is None
