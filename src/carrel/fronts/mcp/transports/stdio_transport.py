"""JSON messages, one per line, read from one pipe and written to another."""

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
"""Maximum size of a line, and of the unread responses at which writing pauses."""
_LISTEN, _CANCEL = "subscriptions/listen", "notifications/cancelled"
"""A request that is not answered before the client disconnects, and the cancellation of a request."""
WAITING_BYTES = 2**10
"""Minimum size that a waiting line counts for."""
MAX_UNANSWERED = 16
"""Maximum number of unanswered requests; others wait until one is answered or cancelled."""
CLOSE_SECONDS = 1.0
"""How long a client may take to read the last responses."""

TryHandle = Callable[[bytes], bool]
OnMessage = Callable[[JSONRPCMessage], None]
LineItem = bytes | ValueError | None
"""A line, an error in place of one that is too long, or `None` at the end."""


class ResponseWriter(asyncio.BaseProtocol):
    """Writes messages to the client."""

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self.on_message: OnMessage | None = None
        """Called with each message of the SDK before it is written."""
        self.on_room: Callable[[], None] | None = None
        """Called when a request was answered, or the client has read most of the unread responses."""
        self._transport: asyncio.WriteTransport | None = None
        self._room = asyncio.Event()
        self._room.set()
        self._closed = asyncio.Event()
        self._unanswered: Counter[int | str] = Counter()
        """Number of unanswered requests by id."""
        self._all_answered = asyncio.Event()
        self._all_answered.set()

    @classmethod
    async def open(cls, fd: int, max_bytes: int = MAX_LINE_BYTES) -> ResponseWriter:
        """Take ownership of *fd* and write to it; the client may leave *max_bytes* unread."""
        loop = asyncio.get_running_loop()
        _, writer = await loop.connect_write_pipe(lambda: cls(max_bytes), os.fdopen(fd, "wb", 0))
        return writer

    @property
    def is_open(self) -> bool:
        """Whether the client can still read."""
        return not self._closed.is_set()

    @property
    def is_full(self) -> bool:
        """Whether the client has left too much unread."""
        return not self._room.is_set()

    @property
    def unanswered(self) -> int:
        """Number of unanswered requests."""
        return self._unanswered.total()

    def expect_response(self, message: JSONRPCMessage) -> None:
        """Count a request that is passed to the SDK, or a cancellation."""
        if isinstance(message, JSONRPCRequest) and message.method != _LISTEN:
            self._unanswered[message.id] += 1
            self._all_answered.clear()
        elif isinstance(message, JSONRPCNotification) and message.method == _CANCEL:
            self._discount((message.params or {}).get("requestId"))

    def _discount(self, request_id: object) -> None:
        # A client can send anything as the id.
        if isinstance(request_id, int | str) and request_id in self._unanswered:
            self._unanswered[request_id] -= 1
            if not self._unanswered[request_id]:
                del self._unanswered[request_id]
        if not self._unanswered:
            self._all_answered.set()
        if self.on_room is not None:
            self.on_room()

    async def wait_answered(self) -> None:
        """Wait until all requests are answered."""
        await self._all_answered.wait()

    async def wait_closed(self) -> None:
        """Wait until the client can no longer read."""
        await self._closed.wait()

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message, and wait while too much is unread.

        Raises:
            BrokenResourceError: The client has closed its end.
        """
        if not self.is_open:
            raise anyio.BrokenResourceError
        if self.on_message is not None:
            self.on_message(item.message)
        self.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode())
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._discount(item.message.id)
        await self._room.wait()

    def write(self, message: bytes) -> None:
        """Write an encoded message without waiting; dropped if the client has closed its end."""
        if self._transport is not None and self.is_open:
            self._transport.write(message + b"\n")

    async def aclose(self) -> None:
        """Close, after the client has read everything or `CLOSE_SECONDS` have passed."""
        if self._transport is None or not self.is_open:
            return
        self._transport.close()
        try:
            await asyncio.wait_for(self._closed.wait(), CLOSE_SECONDS)
        except TimeoutError:
            self._transport.abort()
            await self._closed.wait()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    # asyncio.BaseProtocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set up the transport."""
        self._transport = cast(asyncio.WriteTransport, transport)  # the transport of a pipe for writing
        self._transport.set_write_buffer_limits(high=self._max_bytes)

    def pause_writing(self) -> None:
        """Pause: too much is unread."""
        self._room.clear()

    def resume_writing(self) -> None:
        """Continue: most of it has been read."""
        self._room.set()
        if self.on_room is not None:
            self.on_room()

    def connection_lost(self, error: Exception | None) -> None:
        """Note that the pipe is closed."""
        self._closed.set()
        self.resume_writing()


class RequestReader(asyncio.Protocol):
    """Reads messages from the client, and answers malformed lines.

    Each line is first offered to *try_handle*: in the same iteration of the event loop if it arrives alone,
    and in one of its own if there are several. Reading pauses while lines wait to be processed.

    Requests wait while too many are unanswered, or too many responses unread. Notifications and responses
    overtake them, so that requests can be cancelled; they are read while no more than `MAX_LINE_BYTES` of
    requests wait.
    """

    def __init__(self, responses: ResponseWriter, try_handle: TryHandle | None) -> None:
        self._responses = responses
        self._try_handle = try_handle
        self.on_end: Callable[[], Awaitable[None]] | None = None
        """Awaited before the end of the stream is reported."""
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.ReadTransport | None = None
        self._line_buffer = LineBuffer(MAX_LINE_BYTES)
        self._lines: deque[LineItem] = deque()
        self._waiting = 0
        """Number of lines at the front that are known to wait."""
        self._waiting_bytes = 0
        self.count_others: Callable[[], int] = int
        """Returns the number of unanswered requests that *try_handle* has handled."""
        self._unhandled: asyncio.Queue[LineItem] = asyncio.Queue()
        """The next line for the SDK, at most one."""
        responses.on_room = self.process_next

    @classmethod
    async def open(
        cls, fd: int, responses: ResponseWriter, try_handle: TryHandle | None = None
    ) -> RequestReader:
        """Take ownership of *fd* and read from it, leaving out lines that *try_handle* handles."""
        loop = asyncio.get_running_loop()
        _, reader = await loop.connect_read_pipe(lambda: cls(responses, try_handle), os.fdopen(fd, "rb", 0))
        return reader

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        while (item := await self._unhandled.get()) is not None:
            self._loop.call_soon(self.process_next)
            if isinstance(item, ValueError):
                self._responses.write(render_error_line(INVALID_REQUEST, TOO_LONG))
                continue
            try:
                message = jsonrpc_message_adapter.validate_json(item, by_name=False)
                self._responses.expect_response(message)
                return SessionMessage(message)
            except ValueError:
                # The SDK would ignore it silently.
                if (error := error_for_malformed_line(item)) is not None:
                    self._responses.write(error)
        self._unhandled.put_nowait(None)
        if self.on_end is not None:
            await self.on_end()
        raise StopAsyncIteration

    async def receive(self) -> SessionMessage:
        """Return the next message.

        Raises:
            EndOfStream: The stream has ended.
        """
        try:
            return await anext(self)
        except StopAsyncIteration:
            raise anyio.EndOfStream from None

    async def aclose(self) -> None:
        """Stop reading."""
        if self._transport is not None:
            self._transport.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set up the transport."""
        self._transport = cast(asyncio.ReadTransport, transport)  # the transport of a pipe for reading

    def data_received(self, data: bytes) -> None:
        """Split data into lines."""
        self._lines += self._line_buffer.split(data)
        self.process_next()

    def connection_lost(self, error: Exception | None) -> None:
        """Process the remaining lines, then end the stream."""
        self._transport = None
        self._lines += [*self._line_buffer.end(), None]
        self.process_next()

    def process_next(self) -> None:
        """Process the next line, unless it has to wait."""
        if self._lines and self._unhandled.empty() and (index := self._find_next()) is not None:
            line = self._pop(index)
            if not isinstance(line, bytes) or self._try_handle is None or not self._try_handle(line):
                self._unhandled.put_nowait(line)
            elif self._lines:
                self._loop.call_soon(self.process_next)
        self._set_reading(len(self._lines) == self._waiting and self._waiting_bytes <= MAX_LINE_BYTES)

    def _find_next(self) -> int | None:
        """Return the index of the next line to process; `None` if all have to wait."""
        if not self._responses.is_full and self._responses.unanswered + self.count_others() < MAX_UNANSWERED:
            return 0
        while self._waiting < len(self._lines):
            line = self._lines[self._waiting]
            if isinstance(line, bytes) and expects_no_response(line):
                self._drop_waiting(parse_cancelled_id(line))
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

    def _drop_waiting(self, request_id: int | str | None) -> None:
        """Drop a waiting request that was cancelled."""
        for index in range(self._waiting if request_id is not None else 0):
            line = self._lines[index]
            if isinstance(line, bytes) and parse_request_id(line) == request_id:
                self._pop(index)
                return

    def _set_reading(self, is_wanted: bool) -> None:
        if self._transport is None or is_wanted is self._transport.is_reading():
            return
        if is_wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()


def _weight(line: LineItem) -> int:
    """Return the size that a waiting line counts for."""
    return WAITING_BYTES + (len(line) if isinstance(line, bytes) else 0)
