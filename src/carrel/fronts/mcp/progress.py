"""Progress notifications for a call that takes long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import anyio

T = TypeVar("T")
Report = Callable[[float, None, str], Awaitable[None]]
"""Sends one notification: how far it is, of how much, and in words."""

INTERVAL_SECONDS = 1.0


async def with_progress(
    work: Coroutine[Any, Any, T],  # Any: what asyncio itself sends
    report: Report,
    says: Callable[[], str],
    *,
    interval_seconds: float = INTERVAL_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> T:
    """What *work* gives; until then tell now and then how many seconds it took, and what *says* says.

    If the caller does not want it any more, the work is stopped first.
    """
    begun = clock()
    task = asyncio.create_task(work)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=interval_seconds)
            if not task.done():
                await report(round(clock() - begun, 3), None, says())
    finally:
        if task.cancel():
            # Whoever cancels us goes on doing so until we are gone, which must not hurry the work's own end.
            with anyio.CancelScope(shield=True):
                await asyncio.wait([task])
    return task.result()
