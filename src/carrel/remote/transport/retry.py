"""`Retrier`: repeat requests that the service rejected with a time to retry after."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

from carrel.errors import CarrelError

Result = TypeVar("Result")
Item = TypeVar("Item")

MAX_RETRY_SECONDS = 30.0
"""Longest wait before a retry; if the service asks for more, its error is raised."""


class Retrier:
    """Retries requests that the service rejected with a time to retry after: it has not begun them.

    A request whose connection broke is not retried, since it may have been executed.
    """

    def __init__(self, retries: int, pause: Callable[[float], Awaitable[None]]) -> None:
        """Retry up to *retries* times, waiting with *pause*."""
        self._retries = retries
        self._pause = pause

    async def call(self, send: Callable[[], Awaitable[Result]]) -> Result:
        """Return the result of *send*."""
        left = self._retries
        while True:
            try:
                return await send()
            except CarrelError as error:
                seconds = _retry_seconds(error, left)
            left -= 1
            await self._pause(seconds)

    async def stream(self, begin: Callable[[], AsyncGenerator[Item]]) -> AsyncGenerator[Item]:
        """Yield the items of the stream from *begin*; it is retried only before its first item."""
        left = self._retries
        while True:
            try:
                async with aclosing(begin()) as items:
                    async for item in items:
                        left = 0
                        yield item
                return
            except CarrelError as error:
                seconds = _retry_seconds(error, left)
            left -= 1
            await self._pause(seconds)


def _retry_seconds(error: CarrelError, left: int) -> float:
    """The time to wait before a retry; raises *error* if it should not be retried."""
    seconds: object = getattr(error, "retry_after_seconds", None)
    if not left or not isinstance(seconds, int | float) or not 0 <= seconds <= MAX_RETRY_SECONDS:
        raise error
    return seconds
