"""Serve one client over standard input and output."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from functools import partial
from typing import Any

from mcp.server.stdio import stdio_server

from carrel.fronts import event_loop
from carrel.fronts.mcp.client_context import ClientContext
from carrel.fronts.mcp.server import make_server
from carrel.fronts.mcp.subscriptions import Subscriptions
from carrel.fronts.mcp.tool_calls import ToolCalls
from carrel.fronts.mcp.transports.fast_path import FastPath, ToolCaller
from carrel.fronts.mcp.transports.stdio_transport import RequestReader, ResponseWriter
from carrel.service.service import Service

_IN, _OUT, _ERROR = 0, 1, 2


def serve(service: Service, visit: ClientContext) -> None:
    """Answer until standard input ends, or SIGTERM comes; every request is one of *visit*."""
    with suppress(asyncio.CancelledError):
        event_loop.run(_serve(service, visit))


async def _serve(service: Service, visit: ClientContext) -> None:
    calls = ToolCalls(service)
    server = make_server(service, lambda _: visit, calls, Subscriptions(service))
    task = asyncio.current_task()
    assert task is not None  # noqa: S101  # this one
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    tools = None if service.settings.serve.traces else _Tools(calls, visit)
    async with service, _streams(tools, service.settings.serve.shutdown_seconds) as (requests, answers):
        await server.run(requests, answers, server.create_initialization_options())


class _Tools:
    """The tools of one visit."""

    def __init__(self, calls: ToolCalls, visit: ClientContext) -> None:
        self.at_once = partial(calls.at_once, visit)
        self.later = partial(calls.later, visit)


Streams = tuple[Any, Any]  # Any: the types of the SDK are narrower than what it takes


def _streams(tools: ToolCaller | None, seconds: float) -> AbstractAsyncContextManager[Streams]:
    """Where requests come from and answers go: pipes of a client as a rule, anything else as the SDK can.

    Plain calls on pipes are done by *tools*, unless that is `None`: the SDK tells traces of all it does. What
    still runs at the end of the requests has so many *seconds*.
    """
    return _pipes(tools, seconds) if _are_pipes(os.fstat(_IN), os.fstat(_OUT)) else stdio_server()


def _are_pipes(source: os.stat_result, target: os.stat_result) -> bool:
    """Whether both are pipes or sockets, and not one for both: a loop reads also from what it writes to."""
    return all(
        stat.S_ISFIFO(each.st_mode) or stat.S_ISSOCK(each.st_mode) for each in (source, target)
    ) and not os.path.samestat(source, target)


@asynccontextmanager
async def _pipes(tools: ToolCaller | None, seconds: float) -> AsyncIterator[Streams]:
    """The streams of the SDK hand every line to a thread three times, which takes longer than most calls."""
    with _taken(_IN, os.open(os.devnull, os.O_RDONLY)) as source, _taken(_OUT, os.dup(_ERROR)) as target:
        async with await ResponseWriter.open(target) as answers:
            if tools is None:
                async with await RequestReader.open(source, answers) as requests:
                    requests.finish = partial(_finish, answers, seconds, answers.settled)
                    yield requests, answers
                return
            async with FastPath(tools, answers.write) as express:
                answers.learn = express.learn
                async with await RequestReader.open(source, answers, express.took) as requests:
                    express.on_done = requests.go_on
                    requests.more_running = lambda: express.running
                    requests.finish = partial(_finish, answers, seconds, answers.settled, express.settled)
                    yield requests, answers


async def _finish(
    answers: ResponseWriter, seconds: float, *running: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Let what runs come to its end, if the client is there to hear of it and that takes no longer."""

    async def work() -> None:
        for each in running:
            await each()

    waits = asyncio.create_task(work()), asyncio.create_task(answers.gone())
    await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for each in waits:
        each.cancel()


@contextmanager
def _taken(fd: int, instead: int) -> Iterator[int]:
    """Give a copy of *fd*, and let others who use it meanwhile use *instead*: nothing else gets between."""
    copy = os.dup(fd)
    os.dup2(instead, fd, inheritable=True)
    os.close(instead)
    try:
        yield os.dup(copy)
    finally:
        os.dup2(copy, fd, inheritable=True)
        os.close(copy)
