"""Health, readiness, metrics and the OpenAPI document."""

from __future__ import annotations

from msgspec import Struct

from carrel.errors import StoppingError, UnknownRequestError
from carrel.fronts.http.request import Request, whole_response

CHUNK_BYTES = 2**14
"""Size of the chunks in which the OpenAPI document is sent."""


class Status(Struct, frozen=True, kw_only=True):
    """The state and version of the service."""

    status: str
    version: str


async def healthy(request: Request) -> None:
    """Report that the service runs."""
    await request.send_json(200, Status(status="ok", version=request.app.version))


async def ready(request: Request) -> None:
    """Report whether the service accepts requests."""
    if request.app.stopping.is_set():
        raise StoppingError("the service is stopping")
    await request.app.require_ready()
    await request.send_json(200, Status(status="ready", version=request.app.version))


async def metrics(request: Request) -> None:
    """Return the metrics in the text format of Prometheus."""
    if not request.app.settings.metrics:
        raise UnknownRequestError("metrics are disabled: set serve.metrics to enable them")
    request.acting.require_metrics()
    body = request.app.metrics.render()
    headers = (
        (b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),
        (b"cache-control", b"no-store"),
    )
    await request.send_response(whole_response(200, body, headers))


async def openapi(request: Request) -> None:
    """Return the OpenAPI document."""
    document = request.app.openapi
    headers = [
        (b"content-type", b"application/json"),
        (b"cache-control", b"no-cache"),
        (b"content-length", b"%d" % len(document)),
    ]
    await request.start_response(200, headers)
    # Sent in chunks, so that a client that does not read it occupies little memory.
    for start in range(0, len(document), CHUNK_BYTES):
        await request.write(document[start : start + CHUNK_BYTES])
    await request.end_response()
