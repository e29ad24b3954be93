"""uvicorn's HTTP protocol with limits for slow clients and oversized requests."""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from carrel.errors import RequestError
from carrel.fronts.http.request import JSON, encode
from carrel.fronts.listener import INTRODUCE, STRANGER_BYTES, Strangers, allow_much
from carrel.remote.json_codec import render_error

HEAD_SECONDS = 30
"""How long a client may take to connect and send the head of a request."""
HEAD_BYTES = 2**15
"""Most that is taken before a body, after it or between its parts."""
HEAD_FIELDS = 128
"""Most header fields of a request: each takes far more memory than it has bytes."""
END = b"\r\n\r\n"
"""The end of a head, and of a body in chunks."""
AHEAD = 4
"""Requests that are read before the first of them is answered; what follows stays as the bytes that it is."""
WRITE_BYTES = 2**16
"""Most that is held of an answer before the client has taken some of it; of a stranger less."""
STALLED_SECONDS = 60
"""How long a client may take nothing of what is sent."""
TAKEN_BYTES = 2**16
"""Less than this in that time is nothing."""
SECURITY_HEADERS = [
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'; sandbox"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
]
"""In every answer, by uvicorn: whatever a browser is shown, it runs nothing of it and tells nobody."""


class _TooManyFieldsError(Exception):
    """A head has more fields than one may have."""


class HttpProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, strangers: Strangers, **kwargs: Any) -> None:  # Any: those of uvicorn
        super().__init__(*args, **kwargs)
        self._strangers = strangers
        self._is_known = False
        self._unparsed = b""
        self._position = 0
        """Where in that the rest begins that was not parsed."""
        self._body_left = 0
        """How much of a body is still to come, if its length is known."""
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: asyncio.TimerHandle | None = None
        self._is_in_head = False
        self._loose_bytes = 0
        """What came since the last piece of a body, or the last request."""
        self._unanswered: deque[RequestResponseCycle] = deque()
        """The request that is being answered, and those that were sent after it already."""
        self._application = self.app
        self.app = self._answer

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:  # Any: those of uvicorn
        await self._application(scope, receive, send)
        # What is not answered in full, uvicorn closes when this returns.
        self.loop.call_soon(self._watch_closing)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn
        super().connection_made(transport)
        self._strangers.add(self, transport.abort)
        transport.set_write_buffer_limits(STRANGER_BYTES)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._strangers.discard(self)
        self._stop_waiting()
        self._end_watch()
        super().connection_lost(exc)
        # Uvicorn tells the last request alone that nobody waits any more.
        for cycle in self._unanswered:
            cycle.disconnected = True
            cycle.message_event.set()
        self._unset_keepalive_if_required()
        self._let_go()

    def _let_go(self) -> None:
        """Break reference cycles: the garbage collector comes late, and TLS holds much memory."""
        self.app = self._application
        self.cycle = self.scope = None  # type: ignore[assignment]  # as before the first request
        self._unanswered.clear()
        self.pipeline.clear()

    # Clients that take nothing

    def pause_writing(self) -> None:
        super().pause_writing()
        self._begin_watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._end_watch()

    def shutdown(self) -> None:
        super().shutdown()
        self._watch_closing()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._watch_closing()

    def _close(self) -> None:
        self.transport.close()
        self._watch_closing()

    def _watch_closing(self) -> None:
        """End a connection that is closed as soon as its client takes no more of what was written."""
        if self.transport.is_closing():
            self._begin_watch()
            if self.scheme == "https":
                self._stop_reading()

    def _stop_reading(self) -> None:
        """Close without waiting until the client ends TLS too: one that is idle never does."""
        with suppress(OSError):
            number = os.dup(self.transport.get_extra_info("socket").fileno())
            with socket.socket(fileno=number) as connection:
                connection.shutdown(socket.SHUT_RD)

    def _begin_watch(self) -> None:
        self._end_watch()
        if size := self.transport.get_write_buffer_size():
            self._stall_timer = self.loop.call_later(STALLED_SECONDS, self._look, size)

    def _end_watch(self) -> None:
        if self._stall_timer is not None:
            self._stall_timer.cancel()
            self._stall_timer = None

    def _look(self, before: int) -> None:
        if self.transport.get_write_buffer_size() > before - TAKEN_BYTES:
            self.transport.abort()
        else:
            self._begin_watch()

    # Requests

    def data_received(self, data: bytes) -> None:
        self._unparsed = self._unparsed[self._position :] + data
        self._position = 0
        self._parse()

    def _parse(self) -> None:
        """Parse what was read, but not many requests before they are answered: the client waits meanwhile."""
        while self._position < len(self._unparsed) and not self.transport.is_closing():
            if len(self._unanswered) >= AHEAD and not self._is_reading:
                break
            begin, self._position = self._position, self._end_of_part()
            self._parse_part(self._unparsed[begin : self._position])
        else:
            self._unparsed, self._position = b"", 0
        if self._unparsed or (self._is_reading and self._unanswered[-1].body):
            # Whoever takes that part of a body resumes it.
            self.flow.pause_reading()

    @property
    def _is_reading(self) -> bool:
        """Whether the rest of a body is still to come."""
        return bool(self._unanswered) and self._unanswered[-1].more_body

    def _end_of_part(self) -> int:
        """Where a part ends that is of one request alone."""
        if self._body_left:
            return min(self._position + self._body_left, len(self._unparsed))
        found = self._unparsed.find(END, self._position)
        return len(self._unparsed) if found < 0 else found + len(END)

    def _parse_part(self, data: bytes) -> None:
        self._loose_bytes += len(data)
        super().data_received(data)
        if self._loose_bytes > HEAD_BYTES:
            self._refuse(431, f"the head of the request is larger than {HEAD_BYTES} bytes")
        elif self._head_timer is None and (self._is_in_head or self._is_idle):
            self._await_head()

    @property
    def _is_idle(self) -> bool:
        """Whether nothing is being answered, and nobody looks how long the connection stays so.

        It was no request that came last then, but may become one.
        """
        return not self._unanswered and self.timeout_keep_alive_task is None

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        # What comes after the body is no header: a proxy lets it pass that would let no such header pass.
        if self._is_in_head:
            if len(self.headers) == HEAD_FIELDS:
                raise _TooManyFieldsError
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._stop_waiting()
        self.scope[INTRODUCE] = self._introduce  # type: ignore[literal-required]  # ours
        super().on_headers_complete()
        self._unanswered.append(self.cycle)
        self._body_left = next((int(value) for name, value in self.headers if name == b"content-length"), 0)

    def _introduce(self) -> None:
        """Called when it is known who sent a request."""
        self._strangers.discard(self)
        if not self._is_known:
            self._is_known = True
            self.transport.set_write_buffer_limits(WRITE_BYTES)
            allow_much(self.transport.get_extra_info("socket"))

    def on_body(self, body: bytes) -> None:
        self._loose_bytes = 0
        self._body_left = max(0, self._body_left - len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._loose_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._unanswered:
            self._unanswered.popleft()
        super().on_response_complete()
        if self._unparsed:
            self._parse()

    def send_400_response(self, msg: str) -> None:
        if self._is_in_head and len(self.headers) == HEAD_FIELDS:
            self._refuse(431, f"the head of the request has more than {HEAD_FIELDS} fields")
            return
        self._refuse(400, "this is no request that can be read here: not HTTP, or no method that is known")

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._close)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, status: int, problem: str) -> None:
        """Answer what never became a request, and end the connection; not in the midst of another answer."""
        self._stop_waiting()
        if self.transport.is_closing():
            return
        if not self._is_answering_another:
            self._write(status, encode({"error": render_error(RequestError(problem), retry=False)}))
        self._close()

    def _write(self, status: int, body: bytes) -> None:
        headers = [
            *self.server_state.default_headers,
            (b"content-type", JSON),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        head = b"".join(b"%s: %s\r\n" % header for header in headers)
        self.transport.write(b"%s%s\r\n%s" % (STATUS_LINE[status], head, body))

    @property
    def _is_answering_another(self) -> bool:
        one = self._unanswered[0] if self._unanswered else None
        return one is not None and (one.response_started or one is not self.cycle)
