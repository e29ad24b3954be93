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
"""Time limit for the next message of a client."""
PIECE_BYTES = 2**14
"""Maximum size of the output of a command or of code in one message."""

T = TypeVar("T")


async def next_message(messages: AsyncIterator[T]) -> T | None:
    """Return the next message of a client; `None` at the end.

    Raises:
        LimitError: It does not arrive in time.
    """
    try:
        async with asyncio.timeout(STALLED_SECONDS):
            return await anext(messages, None)
    except TimeoutError:
        raise LimitError(
            "time",
            limit=STALLED_SECONDS,
            asked=None,
            message=f"no message arrived for {STALLED_SECONDS} s; nothing was changed",
        ) from None


def slices(data: bytes, size: int) -> Iterator[bytes]:
    """Split *data* into pieces of at most *size* bytes."""
    return (data[start : start + size] for start in range(0, len(data), size))


@asynccontextmanager
async def closing_stream(items: AsyncIterator[T]) -> AsyncIterator[AsyncIterator[T]]:
    """Iterate over *items*, and close them when the block ends."""
    try:
        yield items
    finally:
        generator: Any = items  # all of them are generators, which their types do not say
        await generator.aclose()


Result = TypeVar("Result")


class UploadStream:
    """The messages of an upload: a start, data, and an end.

    A broken connection can look like a finished stream, so the end is a message of its own.
    """

    def __init__(self, requests: AsyncIterator[Any]) -> None:  # Any: messages with such parts
        self._requests = requests
        self._loop = asyncio.get_running_loop()
        self._reading: asyncio.Task[Any] | None = None
        self._is_stopped = False

    async def start(self) -> Any:  # Any: what the first message holds
        """Return the start in the first message.

        Raises:
            RequestError: The first message is not a start.
        """
        request = await self._next()
        if request.WhichOneof("part") != "start":
            raise RequestError("the first message of the stream must hold its start")
        return request.start

    async def into(
        self, call: RpcCall, session: CallerSession, work: Callable[[Iterator[bytes]], Result]
    ) -> Result:
        """Run *work* on the data in a thread and return its result; if the call is cancelled, it fails."""
        service = call.service
        running = asyncio.ensure_future(
            service.run_in_thread(session, lambda: work(self._pieces()), threads=service.waiting_threads)
        )
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            self._stop()
            running.cancel()
            # Wait until it has removed what it was about to create.
            await asyncio.wait([running])
            raise

    def _stop(self) -> None:
        """Wake the thread, which may be waiting for a silent client."""
        self._is_stopped = True
        if self._reading is not None:
            self._reading.cancel()

    def _pieces(self) -> Iterator[bytes]:
        """Yield the data, in the thread."""
        while (piece := self._wait_for_piece()) is not None:
            yield piece

    def _wait_for_piece(self) -> bytes | None:
        with blocking():
            return asyncio.run_coroutine_threadsafe(self._piece(), self._loop).result()

    async def _piece(self) -> bytes | None:
        """Return the next data; `None` at the end."""
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
            raise RequestError("the stream ended without an end message; nothing was changed")
        if isinstance(request, CarrelError):
            raise request
        return request
