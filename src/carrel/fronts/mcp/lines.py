"""Messages as lines of JSON, read from one pipe and written to another."""

from __future__ import annotations

import asyncio
import os
from collections import deque
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

from carrel.fronts.mcp.malformed import TOO_LONG, complaint, refused
from carrel.fronts.mcp.splitter import Splitter
from carrel.values import MIB

MOST_BYTES = 32 * MIB
"""Of one line, and of what a client has not read yet when it is answered no more."""
_LISTEN, _CANCEL = "subscriptions/listen", "notifications/cancelled"
"""What has no answer as long as the client is there, and what says that none is wanted."""
LAST_SECONDS = 1.0
"""So long a client may take to read its last answers."""

Took = Callable[[bytes], bool]
Learn = Callable[[JSONRPCMessage], None]
Item = bytes | ValueError | None
"""A line; that it is too long; or that there is none any more."""


class Answers(asyncio.BaseProtocol):
    """What a client is sent."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self.learn: Learn | None = None
        """Is shown every message before it is written."""
        self.on_room: Callable[[], None] | None = None
        """Is called when the client, which had left too much unread, has read most of it."""
        self._transport: asyncio.WriteTransport | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._end = asyncio.Event()
        self._awaited: set[int | str] = set()
        self._settled = asyncio.Event()
        self._settled.set()

    @classmethod
    async def open(cls, fd: int, most_bytes: int = MOST_BYTES) -> Answers:
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

    def expect(self, message: JSONRPCMessage) -> None:
        """Know of a message that the client has sent, to which there may be an answer."""
        if isinstance(message, JSONRPCRequest) and message.method != _LISTEN:
            self._awaited.add(message.id)
            self._settled.clear()
        elif isinstance(message, JSONRPCNotification) and message.method == _CANCEL:
            self._settle((message.params or {}).get("requestId"))

    def _settle(self, number: object) -> None:
        self._awaited.discard(number)
        if not self._awaited:
            self._settled.set()

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


class Requests(asyncio.Protocol):
    """What a client sends, message by message; a line that is none is answered here.

    Each line is first shown to somebody who may take it, as soon as it is read: in the same turn of the event
    loop if it comes alone. Of several each has a turn of its own, so that everything else goes on between.
    No more is read while lines wait, be it for their turn, for the reader of the messages before them, or for
    a client that leaves its answers unread.
    """

    def __init__(self, answers: Answers, took: Took | None) -> None:
        self._answers = answers
        self._took = took
        self.finish: Callable[[], Awaitable[None]] | None = None
        """Is awaited before the end is told."""
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.ReadTransport | None = None
        self._splitter = Splitter(MOST_BYTES)
        self._lines: deque[Item] = deque()
        self._left: asyncio.Queue[Item] = asyncio.Queue()
        """What nobody took: one at most."""
        answers.on_room = self._turn

    @classmethod
    async def open(cls, fd: int, answers: Answers, took: Took | None = None) -> Requests:
        """Read from *fd*, which this takes over; what somebody *took* is left out."""
        loop = asyncio.get_running_loop()
        _, requests = await loop.connect_read_pipe(lambda: cls(answers, took), os.fdopen(fd, "rb", 0))
        return requests

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        while (item := await self._left.get()) is not None:
            self._loop.call_soon(self._turn)
            if isinstance(item, ValueError):
                self._answers.write(refused(INVALID_REQUEST, TOO_LONG))
                continue
            try:
                message = jsonrpc_message_adapter.validate_json(item, by_name=False)
                self._answers.expect(message)
                return SessionMessage(message)
            except ValueError:
                # The SDK would drop it without a word.
                if (told := complaint(item)) is not None:
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
        self._turn()

    def connection_lost(self, error: Exception | None) -> None:
        """Give what was read, and then no more."""
        self._transport = None
        self._lines += [*self._splitter.end(), None]
        self._turn()

    def _turn(self) -> None:
        """Look at one line, if nothing is in the way."""
        if self._lines and self._left.empty() and not self._answers.is_full:
            line = self._lines.popleft()
            if not isinstance(line, bytes) or self._took is None or not self._took(line):
                self._left.put_nowait(line)
            elif self._lines:
                self._loop.call_soon(self._turn)
        self._read_on(not self._lines)

    def _read_on(self, wanted: bool) -> None:
        if self._transport is None or wanted is self._transport.is_reading():
            return
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()
