"""Threads for awaited calls that may block: their pool, separate from the event loop's, and their output."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from threading import RLock
from typing import Any, TypeVar

from carrel.process import PROCESS
from carrel.values import ToolOutput

Result = TypeVar("Result")
OnOutput = Callable[[str, bytes], object]
"""Called with `stdout` or `stderr`, and the bytes; what it returns is awaited if it can be."""

MAX_THREADS = 256
"""Maximum number of awaited calls that block at the same time."""


class CallThreads:
    """The thread pool of this process, created on first use."""

    def __init__(self) -> None:
        self._lock = RLock()  # a signal handler may interrupt its own thread
        self._pool: ThreadPoolExecutor | None = None

    @property
    def pool(self) -> ThreadPoolExecutor:
        """The threads."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="carrel-call")
            return self._pool

    def close(self) -> None:
        """Let the threads end once their calls have returned."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False)

    def abandon(self) -> None:
        """Start empty in a forked child, which has none of its parent's threads."""
        self._lock, self._pool = RLock(), None


def call_threads() -> ThreadPoolExecutor:
    """Return the thread pool of this process for awaited calls that may block."""
    return PROCESS.get(CallThreads).pool


async def stream_call(
    start: Callable[[Callable[[str, bytes], None]], Coroutine[Any, Any, Result]],  # Any: what asyncio sends
) -> AsyncGenerator[ToolOutput | Result]:
    """Start a call, and yield its output as it arrives and at last its result.

    *start* receives the function that takes the output, from any thread. If the iterator is closed, the call
    is cancelled, and its end is waited for.
    """
    loop = asyncio.get_running_loop()
    arrived: asyncio.Queue[ToolOutput | None] = asyncio.Queue()

    def on_output(stream: str, data: bytes) -> None:
        loop.call_soon_threadsafe(arrived.put_nowait, ToolOutput(stream=stream, data=data))

    call = loop.create_task(start(on_output))
    call.add_done_callback(lambda _: arrived.put_nowait(None))
    try:
        while (output := await arrived.get()) is not None:
            yield output
        yield call.result()
    finally:
        call.cancel()
        await wait_for_end(call)


async def pass_output(items: AsyncGenerator[ToolOutput | Result], on_output: OnOutput) -> Result:
    """Call *on_output* with all output among *items*, and return the result; an error of it ends the call."""
    async with aclosing(items):
        while isinstance(item := await anext(items), ToolOutput):
            answer = on_output(item.stream, item.data)
            if inspect.isawaitable(answer):
                await answer
        return item


async def wait_for_end(future: asyncio.Future[Any]) -> None:  # Any: its result is not looked at
    """Wait for a call that was asked to stop, even if the waiting task is cancelled again."""
    while not future.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([future])
    if not future.cancelled():
        future.exception()  # retrieved, so that asyncio does not warn about it
