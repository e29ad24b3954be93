"""Content on its way to or from a service, in chunks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import BinaryIO, TypeVar

Item = TypeVar("Item")

CHUNK_BYTES = 2**18
"""What is sent at once."""


async def rechunk(source: AsyncGenerator[bytes], chunk_bytes: int) -> AsyncGenerator[bytes]:
    """The same bytes in chunks of *chunk_bytes*, and what is left over."""
    held = bytearray()
    async for piece in source:
        held += piece
        while len(held) >= chunk_bytes:
            yield bytes(held[:chunk_bytes])
            del held[:chunk_bytes]
    if held:
        yield bytes(held)


def iter_chunks(source: BinaryIO | Iterable[bytes] | bytes) -> Iterable[bytes]:
    """The bytes of an open file, of pieces, or of one whole."""
    if isinstance(source, bytes | bytearray | memoryview):
        return _parts(bytes(source))
    read = getattr(source, "read", None)
    return require_bytes(source) if read is None else iter(lambda: bytes(read(CHUNK_BYTES)), b"")


def require_bytes(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """The same, and an error where one is none: what carries them might leave it out, or end there.

    Raises:
        TypeError: A piece is no bytes.
    """
    for piece in pieces:
        if not isinstance(piece, bytes | bytearray | memoryview):
            raise TypeError(f"pieces must be bytes, not {type(piece).__name__}")
        yield bytes(piece)


def _parts(data: bytes) -> Iterator[bytes]:
    for begin in range(0, len(data), CHUNK_BYTES):
        yield data[begin : begin + CHUNK_BYTES]


async def iterate_in_thread(source: Iterable[Item]) -> AsyncGenerator[Item]:
    """The items of *source*, each asked for in a worker thread."""
    left = iter(source)
    while (item := await asyncio.to_thread(next, left, None)) is not None:
        yield item
