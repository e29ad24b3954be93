"""Progress notifications for a call that takes long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import anyio

T = TypeVar("T")
Report = Callable[[float, None, str], Awaitable[None]]
"""Sends one notification: progress, total and message."""

INTERVAL_SECONDS = 1.0


async def with_progress(
    work: Coroutine[Any, Any, T],  # Any: what asyncio itself sends
    report: Report,
    message: Callable[[], str],
    *,
    interval_seconds: float = INTERVAL_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """Return the result of *work*; until then, report the elapsed seconds and *message* at an interval.

    On cancellation, the work is stopped first.
    """
    started = clock()
    task = asyncio.create_task(work)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=interval_seconds)
            if not task.done():
                await report(round(clock() - started, 3), None, message())
    finally:
        if task.cancel():
            # anyio repeats the cancellation until this returns, which must not interrupt the work's cleanup.
            with anyio.CancelScope(shield=True):
                await asyncio.wait([task])
    return task.result()
