"""The event loop of the service, and the timeout of a request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from importlib.util import find_spec
from typing import Any, TypeVar

from carrel.config.serve_keys import TIMEOUT_SECONDS
from carrel.errors import LimitError

T = TypeVar("T")


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run *main* to completion, on uvloop if it is installed."""
    factory = None
    if find_spec("uvloop"):
        import uvloop

        factory = uvloop.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(main)


async def with_timeout(work: Awaitable[T], seconds: int) -> T:
    """Await *work* for at most *seconds*, those of `serve.timeout_seconds`, and return its result.

    Raises:
        LimitError: It took longer than *seconds*.
    """
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await work
    except TimeoutError:
        if not deadline.expired():
            raise
        raise LimitError(
            "time",
            limit=seconds,
            asked=None,
            message=f"it took longer than {seconds} seconds ({TIMEOUT_SECONDS.name})",
        ) from None
