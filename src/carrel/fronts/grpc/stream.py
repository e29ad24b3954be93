"""What comes or goes in pieces."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from carrel.errors import LimitError

STALLED_SECONDS = 60
"""How long a client may take for the next message."""

T = TypeVar("T")


async def next_of(messages: AsyncIterator[T]) -> T | None:
    """The next message of a client; `None` at the end.

    Raises:
        LimitError: It does not come.
    """
    try:
        async with asyncio.timeout(STALLED_SECONDS):
            return await anext(messages, None)
    except TimeoutError:
        raise LimitError(
            "time",
            limit=STALLED_SECONDS,
            asked=None,
            message=f"nothing came for {STALLED_SECONDS} s; nothing was done",
        ) from None


def slices(data: bytes, size: int) -> Iterator[bytes]:
    """*data* in pieces of at most *size* bytes."""
    return (data[start : start + size] for start in range(0, len(data), size))


@asynccontextmanager
async def ended(items: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Iterate *items*, whose work ends with the block, however that is left."""
    try:
        yield items
    finally:
        generator: Any = items  # all of them are generators, which their types do not say
        await generator.aclose()
