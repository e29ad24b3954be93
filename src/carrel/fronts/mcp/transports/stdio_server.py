"""Serve one client over standard input and output."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from functools import partial
from threading import Thread
from typing import Any

from mcp.server.stdio import stdio_server

from carrel.fronts import event_loop
from carrel.fronts.mcp.client_context import ClientContext
from carrel.fronts.mcp.server import make_server
from carrel.fronts.mcp.subscriptions import Subscriptions
from carrel.fronts.mcp.tool_calls import ToolCalls
from carrel.fronts.mcp.transports.fast_path import FastPath, StartCall
from carrel.fronts.mcp.transports.line_buffer import LineBuffer
from carrel.fronts.mcp.transports.stdio_transport import MAX_LINE_BYTES, RequestReader, ResponseWriter
from carrel.service.service import Service

_IN, _OUT, _ERROR = 0, 1, 2
READ_BYTES = 2**16
"""Most bytes read from a file or a terminal at once."""


def serve(service: Service, client: ClientContext) -> None:
    """Serve *client* until standard input ends, or a signal arrives.

    Raises:
        KeyboardInterrupt: It was SIGINT.
    """
    with suppress(asyncio.CancelledError):
        event_loop.run(_serve(service, client))


async def _serve(service: Service, client: ClientContext) -> None:
    calls = ToolCalls(service)
    server = make_server(service, lambda _: client, calls, Subscriptions(service))
    task = asyncio.current_task()
    assert task is not None  # noqa: S101  # this one
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    # Only the SDK records traces.
    start = None if service.settings.serve.traces else partial(calls.start, client)
    async with service, _streams(start, service.settings.serve.shutdown_seconds) as (requests, responses):
        await server.run(requests, responses, server.create_initialization_options())


Streams = tuple[Any, Any]  # Any: the types of the SDK are narrower than what it accepts


def _streams(start: StartCall | None, seconds: float) -> AbstractAsyncContextManager[Streams]:
    """Return the streams of requests and responses: our own for pipes, the SDK's for anything else.

    Plain calls on pipes are run by *start*, if given. Calls that still run when the requests end are given
    *seconds* to finish.
    """
    return _pipes(start, seconds) if _are_pipes(os.fstat(_IN), os.fstat(_OUT)) else _others()


def _are_pipes(source: os.stat_result, target: os.stat_result) -> bool:
    """Whether both are pipes or sockets, and not the same one, which the event loop would read back from."""
    return all(
        stat.S_ISFIFO(each.st_mode) or stat.S_ISSOCK(each.st_mode) for each in (source, target)
    ) and not os.path.samestat(source, target)


@asynccontextmanager
async def _others() -> AsyncIterator[Streams]:
    """Open a file or a terminal as streams."""
    with _redirected(_IN, os.open(os.devnull, os.O_RDONLY)) as source:
        lines: Any = _Lines(source)  # Any: the SDK asks for a file, of which it needs only the lines
        async with stdio_server(stdin=lines) as streams:
            yield streams


class _Lines:
    """The lines of a file or a terminal, read in a thread; a task that waits for one can be cancelled."""

    def __init__(self, fd: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes | ValueError | None] = asyncio.Queue(1)
        # A daemon, because a read from a terminal cannot be interrupted.
        Thread(target=self._read, args=(fd,), daemon=True, name="carrel-mcp-input").start()

    def __aiter__(self) -> _Lines:
        return self

    async def __anext__(self) -> bytes | ValueError:
        if (line := await self._queue.get()) is None:
            raise StopAsyncIteration
        return line

    def _read(self, fd: int) -> None:
        buffer = LineBuffer(MAX_LINE_BYTES)
        # Cancelled, or the event loop is closed: nothing waits for lines any more.
        with suppress(CancelledError, RuntimeError):
            while data := _read_available(fd):
                for line in buffer.split(data):
                    self._put(line)
            for line in buffer.end():
                self._put(line)
            self._put(None)

    def _put(self, line: bytes | ValueError | None) -> None:
        asyncio.run_coroutine_threadsafe(self._queue.put(line), self._loop).result()


def _read_available(fd: int) -> bytes:
    """Read what there is; nothing at the end, or if the terminal is gone."""
    try:
        return os.read(fd, READ_BYTES)
    except OSError:
        return b""


@asynccontextmanager
async def _pipes(start: StartCall | None, seconds: float) -> AsyncIterator[Streams]:
    """Open pipes as streams; those of the SDK pass each line to a thread three times."""
    with (
        _redirected(_IN, os.open(os.devnull, os.O_RDONLY)) as source,
        _redirected(_OUT, os.dup(_ERROR)) as target,
    ):
        async with await ResponseWriter.open(target) as responses:
            if start is None:
                async with await RequestReader.open(source, responses) as requests:
                    requests.on_end = partial(_finish, responses, seconds, responses.wait_answered)
                    yield requests, responses
                return
            async with FastPath(start, responses.write) as fast_path:
                responses.on_message = fast_path.observe
                async with await RequestReader.open(source, responses, fast_path.try_handle) as requests:
                    fast_path.on_done = requests.process_next
                    requests.count_others = lambda: fast_path.running
                    requests.on_end = partial(
                        _finish, responses, seconds, responses.wait_answered, fast_path.wait_idle
                    )
                    yield requests, responses


async def _finish(
    responses: ResponseWriter, seconds: float, *waits: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Wait for running calls, but no longer than *seconds*, and only while the client reads responses."""

    async def wait_all() -> None:
        for wait in waits:
            await wait()

    tasks = asyncio.create_task(wait_all()), asyncio.create_task(responses.wait_closed())
    await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()


@contextmanager
def _redirected(fd: int, instead: int) -> Iterator[int]:
    """Return a copy of *fd*, and make *fd* itself refer to *instead*, so that nothing else interferes."""
    copy = os.dup(fd)
    os.dup2(instead, fd, inheritable=True)
    os.close(instead)
    try:
        yield os.dup(copy)
    finally:
        os.dup2(copy, fd, inheritable=True)
        os.close(copy)
