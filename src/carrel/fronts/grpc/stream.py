"""What comes or goes in pieces."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

T = TypeVar("T")


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
