"""Progress notifications for a call that takes long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio

from carrel.runtimes.wasm.build.compiled import Progress
from carrel.sandbox.sandbox import watching_compilation

T = TypeVar("T")
Report = Callable[[float, None, str], Awaitable[None]]
"""Sends one notification: progress, total and message."""

INTERVAL_SECONDS = 1.0


@contextmanager
def compilation_messages() -> Iterator[Callable[[], str | None]]:
    """Yield a function that returns the progress of compiling the guest, if work has waited for it lately.

    The work must start in the context of the caller.
    """
    latest: Progress | None = None

    def watch(progress: Progress) -> None:
        nonlocal latest
        latest = progress

    def take() -> str | None:
        nonlocal latest
        progress, latest = latest, None
        if progress is None:
            return None
        if progress.waiting:
            return f"waiting for another process to compile the guest, {progress.elapsed_seconds:.0f} s"
        elapsed, expected = progress.elapsed_seconds, progress.expected_seconds
        return f"compiling the guest, {elapsed:.0f} s of about {expected:.0f} s; this is done once"

    with watching_compilation(watch):
        yield take


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
