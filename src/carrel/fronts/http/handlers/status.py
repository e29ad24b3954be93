"""Health, readiness, metrics and the OpenAPI document."""

from __future__ import annotations

from msgspec import Struct

from carrel.errors import StoppingError, UnknownRequestError
from carrel.fronts.http.request import Request

PIECE_BYTES = 2**14
"""How much of the description is sent at once."""


class Status(Struct, frozen=True, kw_only=True):
    """How the service is."""

    status: str
    version: str


async def healthy(call: Request) -> None:
    """Say that the service runs."""
    await call.json(200, Status(status="ok", version=call.app.version))


async def ready(call: Request) -> None:
    """Say that the service takes calls, or why it does not."""
    if call.app.stopping.is_set():
        raise StoppingError("the service is about to end")
    await call.app.require_ready()
    await call.json(200, Status(status="ready", version=call.app.version))


async def metrics(call: Request) -> None:
    """What was done so far, as Prometheus reads it."""
    if not call.app.settings.metrics:
        raise UnknownRequestError("metrics are switched off")
    call.who.require_metrics()
    body = call.app.metrics.render()
    await call.answer(
        200,
        body,
        [
            (b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),
            (b"cache-control", b"no-store"),
        ],
    )


async def openapi(call: Request) -> None:
    """What can be asked and what is answered, as OpenAPI says it."""
    document = call.app.openapi
    headers = [
        (b"content-type", b"application/json"),
        (b"cache-control", b"no-cache"),
        (b"content-length", b"%d" % len(document)),
    ]
    await call.begin(200, headers)
    # Anybody may ask for it and take nothing: no more of it is held than a piece.
    for begin in range(0, len(document), PIECE_BYTES):
        await call.write(document[begin : begin + PIECE_BYTES])
    await call.finish()
