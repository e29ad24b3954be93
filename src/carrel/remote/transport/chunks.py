"""Content to and from a service, in chunks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import BinaryIO, TypeVar

Item = TypeVar("Item")

CHUNK_BYTES = 2**18
"""Size of a chunk of an upload."""


async def rechunk(source: AsyncGenerator[bytes], chunk_bytes: int) -> AsyncGenerator[bytes]:
    """Split a stream into chunks of *chunk_bytes*; the last one may be shorter."""
    buffer = bytearray()
    async for chunk in source:
        buffer += chunk
        while len(buffer) >= chunk_bytes:
            yield bytes(buffer[:chunk_bytes])
            del buffer[:chunk_bytes]
    if buffer:
        yield bytes(buffer)


def iter_chunks(source: BinaryIO | Iterable[bytes] | bytes) -> Iterable[bytes]:
    """The bytes of an open file, an iterable or a buffer, in chunks."""
    if isinstance(source, bytes | bytearray | memoryview):
        return _split(bytes(source))
    read = getattr(source, "read", None)
    return require_bytes(source) if read is None else iter(lambda: bytes(read(CHUNK_BYTES)), b"")


def require_bytes(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks, and reject others than bytes: a transport might skip one, or stop there.

    Raises:
        TypeError: A chunk is not bytes.
    """
    for chunk in chunks:
        if not isinstance(chunk, bytes | bytearray | memoryview):
            raise TypeError(f"chunks must be bytes, not {type(chunk).__name__}")
        yield bytes(chunk)


def _split(data: bytes) -> Iterator[bytes]:
    for begin in range(0, len(data), CHUNK_BYTES):
        yield data[begin : begin + CHUNK_BYTES]


async def iterate_in_thread(source: Iterable[Item]) -> AsyncGenerator[Item]:
    """Iterate *source*, computing each item in a worker thread."""
    items = iter(source)
    while (item := await asyncio.to_thread(next, items, None)) is not None:
        yield item
