"""Reads and writes of files over Starlette, with our own admission, authentication, metrics and log."""

from __future__ import annotations

import itertools
import secrets
import time
from functools import lru_cache
from types import SimpleNamespace

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from carrel.errors import CarrelError
from carrel.fronts.http.access_log import AccessLog
from carrel.fronts.http.app import IDENTITY_FREE_HEADERS
from carrel.fronts.http.handlers.files import ReadQuery, WriteQuery
from carrel.fronts.http.media_types import content_type
from carrel.fronts.http.metrics import Metrics
from carrel.fronts.http.query import parse_query
from carrel.fs.nonblocking import run_nonblocking
from carrel.remote.json_codec import render
from carrel.service.authentication.authenticator import Authenticator, single_authorization
from carrel.service.error_status import error_status
from carrel.service.rate_limit import RateLimiter
from carrel.service.service import Service

PATH = "/api/v1/sessions/{session_id}/files/{path:path}"


class Guard:
    """Admits, authenticates, counts and logs every request around the routes."""

    def __init__(
        self, app: ASGIApp, service: Service, callers: Authenticator, rates: RateLimiter, metrics: Metrics
    ) -> None:
        self.app = app
        self.service = service
        self.callers = callers
        self.rates = rates
        self.metrics = metrics
        self.prefix = secrets.token_hex(6)
        self.numbers = itertools.count()
        self.log = AccessLog()
        self.is_local_host = lru_cache(256)(lambda peer, host: callers.is_local(peer, [("host", host)]))

    def _is_local(self, request: Request, peer: str | None) -> bool:
        if IDENTITY_FREE_HEADERS.issuperset(name for name, _ in request.scope["headers"]):
            return self.is_local_host(peer, request.headers["host"])
        return self.callers.is_local(peer, request.headers.items())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        began = time.perf_counter()
        peer = None if request.client is None else request.client.host
        request_id = request.headers.get("x-request-id") or f"{self.prefix}-{next(self.numbers):x}"
        status = sent_bytes = 0

        async def watched(message: Message) -> None:
            nonlocal status, sent_bytes
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"].append((b"x-request-id", request_id.encode("ascii")))
            else:
                sent_bytes += len(message.get("body", b""))
            await send(message)

        self.metrics.running += 1
        ticket = None
        try:
            ticket = self.service.admission.admit()
            caller = await self.callers.authenticate(
                authorization=single_authorization(request.headers.getlist("authorization")),
                peer_is_local=self._is_local(request, peer),
            )
            self.rates.take(caller)
            ticket.assign(caller)
            scope["caller"] = caller
            await self.app(scope, receive, watched)
        except CarrelError as error:
            await Response(error.message, error_status(error.code).http_status)(scope, receive, watched)
        finally:
            self.metrics.running -= 1
            if ticket is not None:
                ticket.release()
            seconds = time.perf_counter() - began
            self.metrics.observe(PATH, scope["method"], status, seconds, sent_bytes)
            record = SimpleNamespace(
                request_id=request_id,
                scope=scope,
                route=SimpleNamespace(path=PATH, has_session=True),
                path_values=list(scope.get("path_params", {"": ""}).values()),
                caller=scope.get("caller"),
                status=status,
                sent_bytes=sent_bytes,
                peer=peer,
            )
            self.log.write(record, seconds)  # type: ignore[arg-type]  # has all that is logged of a request


def application(service: Service, callers: Authenticator, rates: RateLimiter) -> Starlette:
    """The application: two routes behind the guard."""

    async def read(request: Request) -> Response:
        query = parse_query(request.scope["query_string"], ReadQuery)
        path = request.path_params["path"]
        session = service.session_access.get_if_open(
            request.scope["caller"], request.path_params["session_id"]
        )
        if session is None:
            async with service.session_access.open(
                request.scope["caller"], request.path_params["session_id"]
            ) as opened:
                info, data = opened.workspace.read_with_info(path)
        else:
            session.require("file_read")
            info, data = run_nonblocking(lambda: session.workspace.read_with_info(path))
        if request.headers.get("if-none-match") or request.headers.get("range") or query.info:
            raise HTTPException(501)
        headers = {
            "etag": f'"{info.version}"',
            "cache-control": "private, no-cache",
            "vary": "Accept",
            "accept-ranges": "bytes",
            "content-type": content_type(info.name).decode("ascii"),
            "content-disposition": "attachment",
        }
        return Response(data, headers=headers)

    async def write(request: Request) -> Response:
        query = parse_query(request.scope["query_string"], WriteQuery)
        async with service.session_access.open(
            request.scope["caller"], request.path_params["session_id"]
        ) as session:
            session.require("file_write")
            data = await request.body()
            path = request.path_params["path"]
            info = await service.run_inline(
                session,
                lambda: session.workspace.write(path, data, overwrite=query.overwrite, parents=query.parents),
            )
        headers = {"etag": f'"{info.version}"', "cache-control": "no-store"}
        return Response(msgspec.json.encode(render(info)), headers=headers, media_type="application/json")

    return Starlette(
        routes=[Route(PATH, read, methods=["GET"]), Route(PATH, write, methods=["PUT"])],
        middleware=[
            Middleware(Guard, service=service, callers=callers, rates=rates, metrics=Metrics(service)),
        ],
    )
