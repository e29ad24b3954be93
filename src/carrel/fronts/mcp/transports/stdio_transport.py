"""Messages as lines of JSON, read from one pipe and written to another."""

from __future__ import annotations

import asyncio
import os
from collections import Counter, deque
from collections.abc import Awaitable, Callable
from typing import Self, cast

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)
from mcp_types.jsonrpc import JSONRPCMessage

from carrel.fronts.mcp.transports.jsonrpc import (
    TOO_LONG,
    error_for_malformed_line,
    expects_no_response,
    parse_cancelled_id,
    parse_request_id,
    render_error_line,
)
from carrel.fronts.mcp.transports.line_buffer import LineBuffer
from carrel.values import MIB

MAX_LINE_BYTES = 32 * MIB
"""Of one line, and of what a client has not read yet when it is answered no more."""
_LISTEN, _CANCEL = "subscriptions/listen", "notifications/cancelled"
"""What has no answer as long as the client is there, and what says that none is wanted."""
WAITING_BYTES = 2**10
"""What a line that waits counts for at least."""
RUNNING = 16
"""Most requests at one time that are not answered yet; others wait until one is, or is cancelled."""
LAST_SECONDS = 1.0
"""So long a client may take to read its last answers."""

TryHandle = Callable[[bytes], bool]
OnMessage = Callable[[JSONRPCMessage], None]
LineItem = bytes | ValueError | None
"""A line; that it is too long; or that there is none any more."""


class ResponseWriter(asyncio.BaseProtocol):
    """What a client is sent."""

    def __init__(self, most_bytes: int = MAX_LINE_BYTES) -> None:
        self._most_bytes = most_bytes
        self.learn: OnMessage | None = None
        """Is shown every message before it is written."""
        self.on_room: Callable[[], None] | None = None
        """Is called when a request was answered, or the client has read most of what it had left unread."""
        self._transport: asyncio.WriteTransport | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._end = asyncio.Event()
        self._awaited: Counter[int | str] = Counter()
        """How often an answer to a request of this number is to come."""
        self._settled = asyncio.Event()
        self._settled.set()

    @classmethod
    async def open(cls, fd: int, most_bytes: int = MAX_LINE_BYTES) -> ResponseWriter:
        """Write to *fd*, which this takes over; the client may leave *most_bytes* unread."""
        loop = asyncio.get_running_loop()
        _, answers = await loop.connect_write_pipe(lambda: cls(most_bytes), os.fdopen(fd, "wb", 0))
        return answers

    @property
    def is_open(self) -> bool:
        """Whether the client may read on."""
        return not self._end.is_set()

    @property
    def is_full(self) -> bool:
        """Whether the client has left so much unread that it gets no more."""
        return not self._room.is_set()

    @property
    def awaited(self) -> int:
        """How many requests are not answered yet."""
        return self._awaited.total()

    def expect(self, message: JSONRPCMessage) -> None:
        """Know of a message that the client has sent, to which there may be an answer."""
        if isinstance(message, JSONRPCRequest) and message.method != _LISTEN:
            self._awaited[message.id] += 1
            self._settled.clear()
        elif isinstance(message, JSONRPCNotification) and message.method == _CANCEL:
            self._settle((message.params or {}).get("requestId"))

    def _settle(self, number: object) -> None:
        # Whatever a client sends as the number, which need not be one.
        if isinstance(number, int | str) and number in self._awaited:
            self._awaited[number] -= 1
            if not self._awaited[number]:
                del self._awaited[number]
        if not self._awaited:
            self._settled.set()
        if self.on_room is not None:
            self.on_room()

    async def settled(self) -> None:
        """Wait until everything is answered that the client waits for."""
        await self._settled.wait()

    async def gone(self) -> None:
        """Wait until the client reads no more."""
        await self._end.wait()

    async def send(self, item: SessionMessage, /) -> None:
        """Write one message, and wait while the client is too slow to read.

        Raises:
            BrokenResourceError: It reads no more.
        """
        if not self.is_open:
            raise anyio.BrokenResourceError
        if self.learn is not None:
            self.learn(item.message)
        self.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode())
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._settle(item.message.id)
        await self._room.wait()

    def write(self, message: bytes) -> None:
        """Write a message that is written out; nobody waits for it, and nobody is told if it is not read."""
        if self._transport is not None and self.is_open:
            self._transport.write(message + b"\n")

    async def aclose(self) -> None:
        """Write no more, once all is written that the client reads in time."""
        if self._transport is None or not self.is_open:
            return
        self._transport.close()
        try:
            await asyncio.wait_for(self._end.wait(), LAST_SECONDS)
        except TimeoutError:
            self._transport.abort()
            await self._end.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    # What the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.WriteTransport, transport)  # what a pipe to write has
        self._transport.set_write_buffer_limits(high=self._most_bytes)

    def pause_writing(self) -> None:
        """Too much is unread."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Most of it is read."""
        self._room.set()
        if self.on_room is not None:
            self.on_room()

    def connection_lost(self, error: Exception | None) -> None:
        """Nobody reads any more, or all was written."""
        self._end.set()
        self.resume_writing()


class RequestReader(asyncio.Protocol):
    """What a client sends, message by message; a line that is none is answered here.

    Each line is first shown to somebody who may take it, as soon as it is read: in the same turn of the event
    loop if it comes alone. Of several each has a turn of its own, so that everything else goes on between.
    No more is read while lines wait for their turn or for the reader of the messages before them.

    Requests wait while too many are not answered, or their answers not read. What is no request goes before
    them, so that they can be cancelled; it is read while no more than `MAX_LINE_BYTES` of requests wait.
    """

    def __init__(self, answers: ResponseWriter, took: TryHandle | None) -> None:
        self._answers = answers
        self._took = took
        self.finish: Callable[[], Awaitable[None]] | None = None
        """Is awaited before the end is told."""
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.ReadTransport | None = None
        self._splitter = LineBuffer(MAX_LINE_BYTES)
        self._lines: deque[LineItem] = deque()
        self._waiting = 0
        """So many of them, from the first on, are known to wait."""
        self._waiting_bytes = 0
        self.more_running: Callable[[], int] = int
        """How many of those requests run that somebody took."""
        self._left: asyncio.Queue[LineItem] = asyncio.Queue()
        """What nobody took: one at most."""
        answers.on_room = self.go_on

    @classmethod
    async def open(cls, fd: int, answers: ResponseWriter, took: TryHandle | None = None) -> RequestReader:
        """Read from *fd*, which this takes over; what somebody *took* is left out."""
        loop = asyncio.get_running_loop()
        _, requests = await loop.connect_read_pipe(lambda: cls(answers, took), os.fdopen(fd, "rb", 0))
        return requests

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        while (item := await self._left.get()) is not None:
            self._loop.call_soon(self.go_on)
            if isinstance(item, ValueError):
                self._answers.write(render_error_line(INVALID_REQUEST, TOO_LONG))
                continue
            try:
                message = jsonrpc_message_adapter.validate_json(item, by_name=False)
                self._answers.expect(message)
                return SessionMessage(message)
            except ValueError:
                # The SDK would drop it without a word.
                if (told := error_for_malformed_line(item)) is not None:
                    self._answers.write(told)
        self._left.put_nowait(None)
        if self.finish is not None:
            await self.finish()
        raise StopAsyncIteration

    async def receive(self) -> SessionMessage:
        """The next message.

        Raises:
            EndOfStream: There is none any more.
        """
        try:
            return await anext(self)
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    async def aclose(self) -> None:
        """Read no more."""
        if self._transport is not None:
            self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    # What the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.ReadTransport, transport)  # what a pipe to read has

    def data_received(self, data: bytes) -> None:
        """Take what was read; it may hold many lines, or a part of one."""
        self._lines += self._splitter.split(data)
        self.go_on()

    def connection_lost(self, error: Exception | None) -> None:
        """Give what was read, and then no more."""
        self._transport = None
        self._lines += [*self._splitter.end(), None]
        self.go_on()

    def go_on(self) -> None:
        """Look at the next line, if nothing is in the way."""
        if self._lines and self._left.empty() and (index := self._next()) is not None:
            line = self._pop(index)
            if not isinstance(line, bytes) or self._took is None or not self._took(line):
                self._left.put_nowait(line)
            elif self._lines:
                self._loop.call_soon(self.go_on)
        self._read_on(len(self._lines) == self._waiting and self._waiting_bytes <= MAX_LINE_BYTES)

    def _next(self) -> int | None:
        """Which line has its turn; `None` if all have to wait."""
        if not self._answers.is_full and self._answers.awaited + self.more_running() < RUNNING:
            return 0
        while self._waiting < len(self._lines):
            line = self._lines[self._waiting]
            if isinstance(line, bytes) and expects_no_response(line):
                self._forget(parse_cancelled_id(line))
                return self._waiting
            self._waiting += 1
            self._waiting_bytes += _weight(line)
        return None

    def _pop(self, index: int) -> LineItem:
        line = self._lines[index]
        del self._lines[index]
        if index < self._waiting:
            self._waiting -= 1
            self._waiting_bytes -= _weight(line)
        return line

    def _forget(self, number: int | str | None) -> None:
        """Leave out a request that waits and is not wanted any more."""
        for index in range(self._waiting if number is not None else 0):
            line = self._lines[index]
            if isinstance(line, bytes) and parse_request_id(line) == number:
                self._pop(index)
                return

    def _read_on(self, wanted: bool) -> None:
        if self._transport is None or wanted is self._transport.is_reading():
            return
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()


def _weight(line: LineItem) -> int:
    """What a line that waits counts for."""
    return WAITING_BYTES + (len(line) if isinstance(line, bytes) else 0)
