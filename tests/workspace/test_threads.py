"""Output of an awaited call on its way from a thread to the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NoReturn

import pytest

from carrel.values import ToolOutput
from carrel.workspace.threads import pass_output, stream_call

Push = Callable[[str, bytes], None]


def out(data: bytes) -> ToolOutput:
    return ToolOutput(stream="stdout", data=data)


async def printing(push: Push) -> int:
    """A call that prints from two threads, one after the other."""
    for number in range(100):
        await asyncio.to_thread(push, "stdout", b"%d" % number)
    return 100


def test_output_comes_in_order_and_the_result_at_last() -> None:
    async def run() -> list[ToolOutput | int]:
        return [item async for item in stream_call(printing)]

    assert asyncio.run(run()) == [*(out(b"%d" % number) for number in range(100)), 100]


def test_output_is_passed_to_a_function_and_awaited_if_it_is_one_of_coroutines() -> None:
    seen: list[tuple[str, bytes]] = []

    async def remember(stream: str, data: bytes) -> None:
        await asyncio.sleep(0)
        seen.append((stream, data))

    async def run() -> None:
        assert await pass_output(stream_call(printing), lambda *each: seen.append(each)) == 100
        assert seen == [("stdout", b"%d" % number) for number in range(100)]
        seen.clear()
        assert await pass_output(stream_call(printing), remember) == 100
        assert seen == [("stdout", b"%d" % number) for number in range(100)]

    asyncio.run(run())


class Endless:
    """A call that prints once and ends only if it is cancelled, with a step that takes a while."""

    def __init__(self) -> None:
        self.has_ended = False

    async def __call__(self, push: Push) -> NoReturn:
        push("stdout", b"begun")
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(5):
                await asyncio.sleep(0)
            self.has_ended = True
        raise AssertionError


def test_closing_the_iterator_cancels_the_call_and_waits_for_its_end() -> None:
    async def run() -> None:
        call = Endless()
        items = stream_call(call)
        assert await anext(items) == out(b"begun")
        await items.aclose()
        assert call.has_ended

    asyncio.run(run())


def test_a_task_that_is_cancelled_again_and_again_still_waits_for_the_end_of_the_call() -> None:
    async def run() -> None:
        call, begun = Endless(), asyncio.Event()
        task: asyncio.Task[NoReturn] = asyncio.create_task(
            pass_output(stream_call(call), lambda *_: begun.set())
        )
        await begun.wait()
        for _ in range(3):
            task.cancel()
            await asyncio.sleep(0)
            assert not task.done()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert call.has_ended

    asyncio.run(run())


def test_an_error_of_who_takes_the_output_ends_the_call_and_is_passed_on() -> None:
    def refuse(stream: str, data: bytes) -> None:
        raise LookupError(stream)

    async def run() -> None:
        call = Endless()
        with pytest.raises(LookupError, match="stdout"):
            await pass_output(stream_call(call), refuse)
        assert call.has_ended

    asyncio.run(run())


def test_an_error_of_the_call_comes_after_its_output() -> None:
    async def failing(push: Push) -> NoReturn:
        push("stderr", b"last words")
        raise LookupError

    async def run() -> None:
        items = stream_call(failing)
        assert await anext(items) == ToolOutput(stream="stderr", data=b"last words")
        with pytest.raises(LookupError):
            await anext(items)

    asyncio.run(run())
