"""`Upload`: pass the body of a request to a worker thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from carrel.fronts.http.request import ClientDisconnected
from carrel.fs.nonblocking import blocking

T = TypeVar("T")
BATCH_BYTES = 2**18
"""Chunks that are passed to the thread at one time are joined up to this size."""


class Upload:
    """Iterates in a thread over chunks that arrive in the event loop.

    If the request ends early, the iteration raises `ClientDisconnected`, which discards what was written.
    """

    def __init__(self, chunks: AsyncIterator[bytes], threads: Executor) -> None:
        """Read *chunks* in one of *threads*, which a stalled client can occupy for long."""
        self._chunks = chunks
        self._threads = threads
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Task[bytes] | None = None
        self._is_ended = False

    async def run(self, work: Callable[[Iterator[bytes]], T]) -> T:
        """Return the result of *work*, called with the chunks in a thread."""
        call = partial(copy_context().run, lambda: work(iter(self)))
        running = self._loop.run_in_executor(self._threads, call)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self._is_ended = True
            if self._waiting is not None:
                self._waiting.cancel()
            # Until the thread has discarded what it was writing.
            await asyncio.wait([running])
            if not running.cancelled():
                running.exception()
            raise

    def __iter__(self) -> Iterator[bytes]:
        while batch := self._wait_for_batch():
            yield batch

    def _wait_for_batch(self) -> bytes:
        with blocking():
            return asyncio.run_coroutine_threadsafe(self._next(), self._loop).result()

    async def _next(self) -> bytes:
        """Return the next chunks, joined; empty at the end."""
        if self._is_ended:
            raise ClientDisconnected
        self._waiting = asyncio.ensure_future(self._join_chunks())
        try:
            return await self._waiting
        except asyncio.CancelledError:
            raise ClientDisconnected from None

    async def _join_chunks(self) -> bytes:
        chunks: list[bytes] = []
        size = 0
        async for chunk in self._chunks:
            chunks.append(chunk)
            size += len(chunk)
            if size >= BATCH_BYTES:
                break
        return b"".join(chunks)
