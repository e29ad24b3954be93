"""Run coroutines that never suspend, without an event loop.

A client is written once, as coroutines over a connection. The coroutines of a blocking connection never
suspend, so they finish in their first step, in the caller's thread and without an event loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

Result = TypeVar("Result")
Item = TypeVar("Item")
Coro = Coroutine[Any, Any, Result]  # Any: what an event loop would send


def run_sync(coroutine: Coro[Result]) -> Result:
    """Run a coroutine over a blocking connection and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: Result = done.value
        return result
    coroutine.close()
    raise RuntimeError("a blocking connection must not wait for an event loop")


def iterate_sync(source: AsyncIterator[Item]) -> Iterator[Item]:
    """Iterate *source* over a blocking connection; closing the iterator closes *source*."""
    try:
        while True:
            try:
                item = run_sync(_next(source))
            except StopAsyncIteration:
                return
            yield item
    finally:
        run_sync(_close(source))


async def _next(source: AsyncIterator[Item]) -> Item:
    return await source.__anext__()


async def _close(source: AsyncIterator[Item]) -> None:
    close = getattr(source, "aclose", None)
    if close is not None:
        await close()
