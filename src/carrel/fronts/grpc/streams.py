"""Streams of messages: wait for the next one, slice data, and `UploadStream` for worker threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from carrel.errors import CarrelError, LimitError, RequestError
from carrel.fronts.grpc.call import RpcCall
from carrel.fs.nonblocking import blocking
from carrel.service.sessions.caller_session import CallerSession

STALLED_SECONDS = 60
"""How long a client may take for the next message."""

T = TypeVar("T")


async def next_message(messages: AsyncIterator[T]) -> T | None:
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
async def closing_stream(items: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Iterate *items*, whose work ends with the block, however that is left."""
    try:
        yield items
    finally:
        generator: Any = items  # all of them are generators, which their types do not say
        await generator.aclose()


Result = TypeVar("Result")


class UploadStream:
    """The messages of one stream: a start, then data, then the end.

    A connection that breaks can look like a stream that was finished, so the end is a message of its own.
    """

    def __init__(self, requests: AsyncIterator[Any]) -> None:  # Any: messages with such parts
        self._requests = requests
        self._loop = asyncio.get_running_loop()
        self._reading: asyncio.Task[Any] | None = None
        self._is_stopped = False

    async def start(self) -> Any:  # Any: what the first message holds
        """What the first message says.

        Raises:
            RequestError: It is no start.
        """
        request = await self._next()
        if request.WhichOneof("part") != "start":
            raise RequestError("the first message of the stream must hold its start")
        return request.start

    async def into(
        self, call: RpcCall, desk: CallerSession, work: Callable[[Iterator[bytes]], Result]
    ) -> Result:
        """What *work* makes of the data, in a thread; if the call is ended, it fails."""
        service = call.service
        working = service.run_in_thread(desk, lambda: work(self._pieces()), threads=service.waiting_threads)
        running = asyncio.ensure_future(working)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self._stop()
            running.cancel()
            # Until it has let go of what it was about to make.
            await asyncio.wait([running])
            raise

    def _stop(self) -> None:
        """Wake the thread, which may wait for a client that sends nothing."""
        self._is_stopped = True
        if self._reading is not None:
            self._reading.cancel()

    def _pieces(self) -> Iterator[bytes]:
        """The data, for the thread that waits for it."""
        while (piece := self._awaited()) is not None:
            yield piece

    def _awaited(self) -> bytes | None:
        with blocking():
            return asyncio.run_coroutine_threadsafe(self._piece(), self._loop).result()

    async def _piece(self) -> bytes | None:
        """The next data; `None` at the end."""
        self._reading = asyncio.current_task()
        request = await self._next()
        match request.WhichOneof("part"):
            case "data":
                return bytes(request.data)
            case "end" if request.end:
                return None
        raise RequestError("after its start, the stream must hold data and then its end")

    async def _next(self) -> Any:  # Any: messages with such parts
        if self._is_stopped:
            raise asyncio.CancelledError
        request = await next_message(self._requests)
        if request is None:
            raise RequestError("the stream ended without saying so; nothing was done")
        if isinstance(request, CarrelError):
            raise request
        return request
