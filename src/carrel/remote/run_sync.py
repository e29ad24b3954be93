"""Run coroutines that never suspend, without an event loop.

What a client does is written once, as coroutines over a line to the service. A line that blocks does its work
inside its coroutines without ever handing over to an event loop, so those end in their first step, in the
thread of the caller and without any loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

Result = TypeVar("Result")
Item = TypeVar("Item")
Coro = Coroutine[Any, Any, Result]  # Any: what an event loop would send


def run_sync(coroutine: Coro[Result]) -> Result:
    """What *coroutine* returns, over a line that blocks."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: Result = done.value
        return result
    coroutine.close()
    raise RuntimeError("a line that blocks must not wait for an event loop")


def iterate_sync(source: AsyncIterator[Item]) -> Iterator[Item]:
    """What *source* gives, over a line that blocks; leaving early ends it."""
    try:
        while True:
            try:
                item = run_sync(_next(source))
            except StopAsyncIteration:
                return
            yield item
    finally:
        run_sync(_end(source))


async def _next(source: AsyncIterator[Item]) -> Item:
    return await source.__anext__()


async def _end(source: AsyncIterator[Item]) -> None:
    close = getattr(source, "aclose", None)
    if close is not None:
        await close()
