"""Server-sent events: render them, and send them until the client disconnects."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from typing import Any

from carrel.fronts.http.request import VARY, ClientDisconnected, Request, encode

MEDIA_TYPE = "text/event-stream"
QUIET_SECONDS = 15
"""After so long without an event a comment is sent, so that nothing on the way takes the line for dead."""
_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
    VARY,
]
_OTHERWISE = "application/json"
_COMMENT = b":\n\n"


def wants_events(call: Request) -> bool:
    """Whether the client prefers events to one JSON document, which is what it gets otherwise."""
    return call.prefers(MEDIA_TYPE, _OTHERWISE)


def render_event(name: str, document: object, number: int | None = None) -> bytes:
    """One event; *number* is what a client gives as `Last-Event-ID` when it comes back."""
    mark = b"" if number is None else b"id: %d\n" % number
    # JSON has no line ends of its own, so one line holds it.
    return mark + b"event: " + name.encode("ascii") + b"\ndata: " + encode(document) + b"\n\n"


def text_or_bytes(data: bytes) -> dict[str, Any]:
    """Output as a text, or where it is none as base64."""
    try:
        return {"text": data.decode("utf-8")}
    except UnicodeDecodeError:
        return {"base64": b64encode(data).decode("ascii")}


async def send_events(call: Request, events: AsyncIterator[bytes], *, have_end: bool) -> None:
    """Send events until there are no more or the client goes away.

    Events that *have_end* are waited for when the service is about to stop, others are not.

    Raises:
        GoneError: The client went away.
    """
    await call.begin(200, _HEADERS)
    if call.is_head:
        await call.finish()
        return
    gone = asyncio.ensure_future(call.gone())
    stopping = asyncio.ensure_future(_never() if have_end else call.app.stopping.wait())
    following = asyncio.ensure_future(_next(events))
    try:
        while True:
            await asyncio.wait(
                (following, gone, stopping), timeout=QUIET_SECONDS, return_when=asyncio.FIRST_COMPLETED
            )
            if gone.done():
                raise ClientDisconnected
            if following.done():
                if not (piece := following.result()):
                    break
                await call.write(piece)
                following = asyncio.ensure_future(_next(events))
            elif stopping.done():
                break
            else:
                await call.write(_COMMENT)
        await call.finish()
    finally:
        for task in (following, gone, stopping):
            task.cancel()
        await asyncio.wait((following, gone, stopping))


async def _never() -> bool:
    return await asyncio.Event().wait()


async def _next(events: AsyncIterator[bytes]) -> bytes:
    return await anext(events, b"")


def last_event_id(call: Request) -> int | None:
    """The number of the last event that a client which comes back has seen."""
    header = call.header(b"last-event-id")
    return int(header) if header is not None and header.isdecimal() and len(header) < 20 else None
