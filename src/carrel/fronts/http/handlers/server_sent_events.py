"""Server-sent events: render them, and send them until the client disconnects."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any

from carrel.fronts.http.request import VARY, ClientDisconnected, Request, encode

MEDIA_TYPE = "text/event-stream"
QUIET_SECONDS = 15
"""Interval without events after which a comment is sent, so that proxies keep the connection open."""
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    VARY,
]
_ALTERNATIVE = "application/json"
_COMMENT = b":\n\n"


def wants_events(request: Request) -> bool:
    """Whether the client prefers an event stream to the default JSON document."""
    return request.prefers(MEDIA_TYPE, _ALTERNATIVE)


def render_event(name: str, document: object, event_id: int | None = None) -> bytes:
    """Render one event; a client that reconnects sends its *event_id* as `Last-Event-ID`."""
    id_line = b"" if event_id is None else b"id: %d\n" % event_id
    # Encoded JSON contains no line breaks.
    return id_line + b"event: " + name.encode("ascii") + b"\ndata: " + encode(document) + b"\n\n"


def text_or_bytes(data: bytes) -> dict[str, Any]:
    """Render output as text, or as base64 if it is not UTF-8."""
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode("ascii")}


async def send_events(request: Request, events: AsyncIterator[bytes], *, is_finite: bool) -> None:
    """Send events until they end or the client disconnects.

    When the service stops, a stream that *is_finite* continues to its end; others end at once.

    Raises:
        ClientDisconnected: The client disconnected.
    """
    await request.start_response(200, _HEADERS)
    if request.is_head:
        await request.end_response()
        return
    disconnected = asyncio.ensure_future(request.wait_disconnected())
    stopping = asyncio.ensure_future(_never() if is_finite else request.app.stopping.wait())
    following = asyncio.ensure_future(_next(events))
    try:
        while True:
            await asyncio.wait(
                (following, disconnected, stopping),
                timeout=QUIET_SECONDS,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if disconnected.done():
                raise ClientDisconnected
            if following.done():
                if not (event := following.result()):
                    break
                await request.write(event)
                following = asyncio.ensure_future(_next(events))
            elif stopping.done():
                break
            else:
                await request.write(_COMMENT)
        await request.end_response()
    finally:
        for task in (following, disconnected, stopping):
            task.cancel()
        await asyncio.wait((following, disconnected, stopping))


async def _never() -> bool:
    return await asyncio.Event().wait()


async def _next(events: AsyncIterator[bytes]) -> bytes:
    return await anext(events, b"")


def last_event_id(request: Request) -> int | None:
    """Return the id of the last event that a reconnecting client has seen."""
    header = request.header(b"last-event-id")
    return int(header) if header is not None and header.isdecimal() and len(header) < 20 else None
