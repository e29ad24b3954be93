"""What a client that waits is told."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest

from carrel.fronts.mcp.progress import with_progress


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
