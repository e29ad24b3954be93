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
from carrel.fronts.listener import (
    MARK_AUTHENTICATED,
    UNAUTHENTICATED_BYTES,
    StallTimer,
    UnauthenticatedConnections,
    raise_buffer_limits,
)
from carrel.remote.json_codec import render_error

HEAD_SECONDS = 30
"""How long a client may take to connect and send the head of a request."""
HEAD_BYTES = 2**15
"""Maximum number of bytes before a body, after it and between its chunks."""
HEAD_FIELDS = 128
"""Maximum number of header fields of a request: each takes far more memory than its bytes."""
END = b"\r\n\r\n"
"""The end of a head, and of a chunked body."""
AHEAD = 4
"""Maximum number of pipelined requests that are parsed before the first is answered; the rest stays bytes."""
WRITE_BYTES = 2**16
"""Size of the write buffer at which a response waits for the client; smaller until it has authenticated."""
SECURITY_HEADERS = [
    ("x-content-type-options", "nosniff"),
    ("content-security-policy", "default-src 'none'; frame-ancestors 'none'; sandbox"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
]
"""Headers of every response, added by uvicorn: a browser runs no content, and sends no referrer."""


class _TooManyFieldsError(Exception):
    """A head has more than `HEAD_FIELDS` fields."""


class HttpProtocol(HttpToolsProtocol):
    """One connection."""

    def __init__(
        self, *args: Any, unauthenticated: UnauthenticatedConnections, **kwargs: Any
    ) -> None:  # Any: those of uvicorn
        super().__init__(*args, **kwargs)
        self._unauthenticated = unauthenticated
        self._is_known = False
        self._unparsed = b""
        self._position = 0
        """Offset in `_unparsed` up to which it is parsed."""
        self._body_left = 0
        """How many bytes of a body with a known length are missing."""
        self._head_timer: asyncio.TimerHandle | None = None
        self._stall_timer: StallTimer
        self._is_in_head = False
        self._overhead_bytes = 0
        """Bytes received since the last chunk of a body, or the last request."""
        self._unanswered: deque[RequestResponseCycle] = deque()
        """The request that is being answered, and those pipelined after it."""
        self._application = self.app
        self.app = self._run_application

    async def _run_application(self, scope: Any, receive: Any, send: Any) -> None:  # Any: those of uvicorn
        await self._application(scope, receive, send)
        # When this returns, uvicorn closes the connection of an incomplete response.
        if self._unanswered or self.transport.is_closing():
            self.loop.call_soon(self._watch_closing)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn
        super().connection_made(transport)
        self._stall_timer = StallTimer(transport)
        self._unauthenticated.add(self, transport.abort)
        transport.set_write_buffer_limits(UNAUTHENTICATED_BYTES)
        self._start_head_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unauthenticated.discard(self)
        self._stop_head_timer()
        self._stall_timer.stop()
        super().connection_lost(exc)
        # Uvicorn notifies only the last request.
        for cycle in self._unanswered:
            cycle.disconnected = True
            cycle.message_event.set()
        self._unset_keepalive_if_required()
        self._break_cycles()

    def _break_cycles(self) -> None:
        """Break reference cycles: the garbage collector runs late, and TLS holds much memory."""
        self.app = self._application
        self.cycle = self.scope = None  # type: ignore[assignment]  # as before the first request
        self._unanswered.clear()
        self.pipeline.clear()

    # Clients that do not read their responses

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall_timer.start()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._stall_timer.stop()

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
        """Abort a closing connection whose client stalls, and do not wait for a TLS client to close too."""
        if self.transport.is_closing() and self in self.connections:  # it is not lost yet
            self._stall_timer.start()
            if self.scheme == "https":
                self._stop_reading()

    def _stop_reading(self) -> None:
        """Shut down the receiving side, as the TLS close of an idle client would never arrive."""
        with suppress(OSError):
            number = os.dup(self.transport.get_extra_info("socket").fileno())
            with socket.socket(fileno=number) as connection:
                connection.shutdown(socket.SHUT_RD)

    # Requests

    def data_received(self, data: bytes) -> None:
        self._unparsed = self._unparsed[self._position :] + data
        self._position = 0
        self._parse()

    def _parse(self) -> None:
        """Parse what was received, up to `AHEAD` unanswered requests; until then, stop reading."""
        while self._position < len(self._unparsed) and not self.transport.is_closing():
            if len(self._unanswered) >= AHEAD and not self._is_reading_body:
                break
            start, self._position = self._position, self._end_of_part()
            self._parse_part(self._unparsed[start : self._position])
        else:
            self._unparsed, self._position = b"", 0
        if self._unparsed or (self._is_reading_body and self._unanswered[-1].body):
            # Resumed when the application receives that part of the body.
            self.flow.pause_reading()

    @property
    def _is_reading_body(self) -> bool:
        """Whether the rest of a body is missing."""
        return bool(self._unanswered) and self._unanswered[-1].more_body

    def _end_of_part(self) -> int:
        """Return the end of the next part that belongs to one request only."""
        if self._body_left:
            return min(self._position + self._body_left, len(self._unparsed))
        found = self._unparsed.find(END, self._position)
        return len(self._unparsed) if found < 0 else found + len(END)

    def _parse_part(self, data: bytes) -> None:
        self._overhead_bytes += len(data)
        super().data_received(data)
        if self._overhead_bytes > HEAD_BYTES:
            self._reject(431, f"the head of the request is larger than {HEAD_BYTES} bytes")
        elif self._head_timer is None and (self._is_in_head or self._is_idle):
            self._start_head_timer()

    @property
    def _is_idle(self) -> bool:
        """Whether there is no request, and no keep-alive timer runs: the data may be the start of a head."""
        return not self._unanswered and self.timeout_keep_alive_task is None

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        # Trailers are ignored: a proxy that filters headers may let them through.
        if self._is_in_head:
            if len(self.headers) == HEAD_FIELDS:
                raise _TooManyFieldsError
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._stop_head_timer()
        self.scope[MARK_AUTHENTICATED] = self._mark_authenticated  # type: ignore[literal-required]  # ours
        super().on_headers_complete()
        self._unanswered.append(self.cycle)
        self._body_left = next((int(value) for name, value in self.headers if name == b"content-length"), 0)

    def _mark_authenticated(self) -> None:
        """Raise the limits of the connection; called when the client has authenticated."""
        self._unauthenticated.discard(self)
        if not self._is_known and not self.transport.is_closing():
            self._is_known = True
            self.transport.set_write_buffer_limits(WRITE_BYTES)
            raise_buffer_limits(self.transport.get_extra_info("socket"))

    def on_body(self, body: bytes) -> None:
        self._overhead_bytes = 0
        self._body_left = max(0, self._body_left - len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._overhead_bytes = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self._unanswered:
            self._unanswered.popleft()
        super().on_response_complete()
        if self._unparsed:
            self._parse()

    def send_400_response(self, msg: str) -> None:
        if self._is_in_head and len(self.headers) == HEAD_FIELDS:
            self._reject(431, f"the head of the request has more than {HEAD_FIELDS} fields")
            return
        self._reject(400, "the request cannot be parsed: it is not HTTP, or its method is unknown")

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self._close)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _reject(self, status: int, problem: str) -> None:
        """Answer data that is no request with an error, unless a response is in progress, and close."""
        self._stop_head_timer()
        if self.transport.is_closing():
            return
        if not self._is_answering_another:
            self._write_response(status, encode({"error": render_error(RequestError(problem), retry=False)}))
        self._close()

    def _write_response(self, status: int, body: bytes) -> None:
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
        first = self._unanswered[0] if self._unanswered else None
        return first is not None and (first.response_started or first is not self.cycle)
