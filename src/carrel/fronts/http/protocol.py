"""The bytes of HTTP: uvicorn's protocol, which a client cannot keep waiting or fill up."""

from __future__ import annotations

import asyncio
from functools import partial
from http import HTTPStatus
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from carrel.errors import RequestError
from carrel.fronts.http.app import Application
from carrel.fronts.http.call import Answer, Call, Receive, Scope, Send, encode
from carrel.remote.forms import render_error

HEAD_SECONDS = 30
"""How long a client may take to connect and send the head of a request."""
HEAD_BYTES = 2**16
"""Most that is taken before a body, after it or between its parts."""
STALLED_SECONDS = 60
"""How long a client may take nothing of what is sent."""
TAKEN_BYTES = 2**16
"""Less than this in that time is nothing."""
SAFE_HEADERS = (
    b"x-content-type-options: nosniff\r\n"
    b"content-security-policy: default-src 'none'; frame-ancestors 'none'; sandbox\r\n"
    b"referrer-policy: no-referrer\r\n"
    b"cross-origin-resource-policy: same-origin\r\n"
)
"""In every answer: whatever a browser is shown, it runs nothing of it and tells nobody."""
_LINES = {
    int(status): b"HTTP/1.1 %d %s\r\n" % (status, status.phrase.encode("ascii")) for status in HTTPStatus
}


class JoinedTransport:
    """Sends the head of an answer together with the beginning of its body, as one packet."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._head = b""
        self._timer: asyncio.TimerHandle | None = None

    def write(self, data: bytes) -> None:
        """Send *data*, or keep it for a moment if it is a head."""
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(b"HTTP/1.1 ") and not data.startswith(b"HTTP/1.1 1"):
            line, end, rest = data.partition(b"\r\n")
            self._head = line + end + SAFE_HEADERS + rest
            # The body may take its time, and the client is to know that it comes.
            self._loop.call_soon(self._flush)
            return
        self._transport.write(data)

    def write_whole(self, data: bytes) -> None:
        """Send a whole answer."""
        self._transport.write(data)

    def _flush(self) -> None:
        if self._head:
            head, self._head = self._head, b""
            self._transport.write(head)

    def close(self) -> None:
        """Send what was kept, and close; a client that does not take it is not waited for."""
        self._flush()
        self._transport.close()
        self.begin_watch()

    def begin_watch(self) -> None:
        """End the connection if the client takes nothing."""
        self.end_watch()
        if size := self._transport.get_write_buffer_size():
            self._timer = self._loop.call_later(STALLED_SECONDS, self._look, size)

    def end_watch(self) -> None:
        """Let the client take its time."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, before: int) -> None:
        if self._transport.get_write_buffer_size() > before - TAKEN_BYTES:
            self._transport.abort()
        else:
            self.begin_watch()

    def __getattr__(self, name: str) -> Any:  # Any: whatever a transport has
        return getattr(self._transport, name)


class Protocol(HttpToolsProtocol):
    """One connection."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # Any: those of uvicorn
        super().__init__(*args, **kwargs)
        self._head_timer: asyncio.TimerHandle | None = None
        self._is_in_head = False
        self._loose_bytes = 0
        """What came since the last piece of a body, or the last request."""
        self._answered: RequestResponseCycle | None = None
        """The request that is being answered; others may have been sent after it already."""
        self._application: Application = self.config.app  # type: ignore[assignment]  # what it serves
        self._joined: JoinedTransport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn
        self._joined = JoinedTransport(transport, self.loop)
        super().connection_made(self._joined)  # type: ignore[arg-type]  # is enough
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)
        self._joined.end_watch()
        if self._answered is not None:
            # Uvicorn tells the last request alone that nobody waits any more.
            self._answered.disconnected = True
            self._answered.message_event.set()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._joined.begin_watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._joined.end_watch()

    def data_received(self, data: bytes) -> None:
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
        one = self._answered
        is_done = one is not None and one.response_complete
        return is_done and not self.pipeline and self.timeout_keep_alive_task is None

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True

    def on_header(self, name: bytes, value: bytes) -> None:
        # What comes after the body is no header: a proxy lets it pass that would let no such header pass.
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._stop_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._loose_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._loose_bytes = 0
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "this is no request that can be read here: not HTTP, or no method that is known")

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:  # Any: that of uvicorn
        """Answer a request at once if nothing has to be waited for, otherwise by a task."""
        self._answered = cycle
        call = self._application.begin(cast("Scope", cycle.scope))
        if isinstance(call.step, Answer) and self._can_take(cycle):
            cycle.response_started = cycle.response_complete = True
            self._joined.write_whole(self._whole(call, call.step))
            self._application.done(call)
            self.on_response_complete()
        else:
            super()._start_asgi_task(cycle, partial(_go_on, call))

    def _can_take(self, cycle: RequestResponseCycle) -> bool:
        """Whether the client takes an answer as it is, and nothing follows from it but the next request."""
        is_reading = cycle.scope["method"] in ("GET", "HEAD")
        return is_reading and cycle.keep_alive and not self.flow.write_paused and not self.pipeline

    def _whole(self, call: Call, answer: Answer) -> bytes:
        call.status = answer.status
        body = b"" if call.is_head else answer.body
        call.sent_bytes = len(body)
        lines = [
            b"%s: %s\r\n" % header
            for header in (*self.server_state.default_headers, *call.more_headers, *answer.headers)
        ]
        return b"".join((_LINES[answer.status], SAFE_HEADERS, *lines, b"\r\n", body))

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, status: int, problem: str) -> None:
        """Answer what never became a request, and end the connection; not in the midst of another answer."""
        self._stop_waiting()
        if self.transport.is_closing():
            return
        if self._is_answering_another:
            self.transport.close()
            return
        body = encode({"error": render_error(RequestError(problem), retry=False)})
        reason = {400: b"Bad Request", 431: b"Request Header Fields Too Large"}[status]
        head = [b"HTTP/1.1 %d %s" % (status, reason), b"content-type: application/json", b"connection: close"]
        head.append(b"content-length: %d" % len(body))
        self.transport.write(b"\r\n".join(head) + b"\r\n\r\n" + body)
        self.transport.close()

    @property
    def _is_answering_another(self) -> bool:
        one = self._answered
        return (
            one is not None and not one.response_complete and (one.response_started or one is not self.cycle)
        )


async def _go_on(call: Call, scope: Scope, receive: Receive, send: Send) -> None:
    """The rest of a call, as the application of its request."""
    await call.app.go_on(call, receive, send)
