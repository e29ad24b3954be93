"""`Upload`: iterate the body of a request in a worker thread."""

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
PIECE_BYTES = 2**18
"""So much is handed over at a time, if it is there."""


class Upload:
    """Pieces that come in an event loop, iterated in a thread.

    Whatever ends the request ends the iteration with `ClientDisconnected`, which discards what was written.
    """

    def __init__(self, pieces: AsyncIterator[bytes], threads: Executor) -> None:
        """Read *pieces* in one of *threads*, which a client that stalls may hold for long."""
        self._pieces = pieces
        self._threads = threads
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.Task[bytes] | None = None
        self._is_over = False

    async def through(self, work: Callable[[Iterator[bytes]], T]) -> T:
        """What *work*, run in a thread, makes of the pieces."""
        call = partial(copy_context().run, lambda: work(iter(self)))
        running = self._loop.run_in_executor(self._threads, call)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self._is_over = True
            if self._waiting is not None:
                self._waiting.cancel()
            # Until it has let go of what it was about to make.
            await asyncio.wait([running])
            if not running.cancelled():
                running.exception()
            raise

    def __iter__(self) -> Iterator[bytes]:
        while piece := self._awaited():
            yield piece

    def _awaited(self) -> bytes:
        with blocking():
            return asyncio.run_coroutine_threadsafe(self._next(), self._loop).result()

    async def _next(self) -> bytes:
        """The next piece, empty at the end."""
        if self._is_over:
            raise ClientDisconnected
        self._waiting = asyncio.ensure_future(self._gathered())
        try:
            return await self._waiting
        except asyncio.CancelledError:
            raise ClientDisconnected from None

    async def _gathered(self) -> bytes:
        pieces: list[bytes] = []
        size = 0
        async for piece in self._pieces:
            pieces.append(piece)
            size += len(piece)
            if size >= PIECE_BYTES:
                break
        return b"".join(pieces)
