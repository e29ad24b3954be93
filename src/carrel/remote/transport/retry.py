"""`Retrier`: repeat requests that the service rejected with a time to retry after."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

from carrel.errors import CarrelError

Result = TypeVar("Result")
Item = TypeVar("Item")

MAX_RETRY_SECONDS = 30.0
"""A service that says to come back later than this is not waited for."""


class Retrier:
    """Asks again where a service says when it may be asked again: it has not begun what it refused so.

    A connection that broke is another matter, since nobody knows what was done by then.
    """

    def __init__(self, retries: int, pause: Callable[[float], Awaitable[None]]) -> None:
        """Ask again up to *retries* times, waiting by *pause*."""
        self._retries = retries
        self._pause = pause

    async def ask(self, question: Callable[[], Awaitable[Result]]) -> Result:
        """The answer to *question*."""
        left = self._retries
        while True:
            try:
                return await question()
            except CarrelError as error:
                seconds = _seconds(error, left)
            left -= 1
            await self._pause(seconds)

    async def stream(self, begin: Callable[[], AsyncGenerator[Item]]) -> AsyncGenerator[Item]:
        """The items of what *begin* begins, as long as it has given none yet."""
        left = self._retries
        while True:
            try:
                async with aclosing(begin()) as items:
                    async for item in items:
                        left = 0
                        yield item
                return
            except CarrelError as error:
                seconds = _seconds(error, left)
            left -= 1
            await self._pause(seconds)


def _seconds(error: CarrelError, left: int) -> float:
    """How long to wait before asking again; raises *error* if there is no use in that."""
    seconds: object = getattr(error, "retry_after_seconds", None)
    if not left or not isinstance(seconds, int | float) or not 0 <= seconds <= MAX_RETRY_SECONDS:
        raise error
    return seconds
