"""`Application`: the ASGI application with routing, authentication, limits and errors."""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
import time
from functools import lru_cache
from importlib.metadata import version

from carrel.errors import CarrelError, StoppingError, UnknownRequestError
from carrel.fronts.event_loop import with_timeout
from carrel.fronts.http.access_log import AccessLog
from carrel.fronts.http.metrics import Metrics
from carrel.fronts.http.openapi import describe
from carrel.fronts.http.request import (
    CLIENT_CLOSED_REQUEST,
    ClientDisconnected,
    PendingResponse,
    Receive,
    Request,
    Response,
    Scope,
    Send,
    encode,
    error_response,
)
from carrel.fronts.http.router import Route, Router
from carrel.fronts.http.routes import ROUTES
from carrel.fronts.http.traces import Traces
from carrel.fronts.listener import mark_authenticated
from carrel.service.authentication.authenticator import Authenticator
from carrel.service.principal import Principal
from carrel.service.rate_limit import RateLimiter
from carrel.service.service import Service
from carrel.service.thread_pools import set_current_tenant

UNLIMITED_GROUP = "service"
"""The group of routes that are answered however busy the service is."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
IDENTITY_FREE_HEADERS = frozenset(
    (
        b"accept",
        b"accept-encoding",
        b"accept-language",
        b"carrel-role",
        b"connection",
        b"content-length",
        b"content-type",
        b"host",
        b"if-match",
        b"if-none-match",
        b"range",
        b"user-agent",
        b"x-request-id",
    )
)
"""Headers that have no influence on whether a request is local, except for the value of `host`."""
_EXPOSED_HEADERS = b"Accept-Ranges, Carrel-Info, Content-Range, ETag, Location, Retry-After, X-Request-Id"
_STOPPING = "the service is stopping"


class Application:
    """Answers all HTTP requests to one service."""

    def __init__(
        self,
        service: Service,
        authenticator: Authenticator,
        rates: RateLimiter,
        *,
        more_routes: tuple[Route, ...] = (),
    ) -> None:
        """Serve *service*, which must stay open while this is used."""
        self.service = service
        self.settings = service.settings.serve
        self.version = version("carrel")
        self.stopping = asyncio.Event()
        """Set when the service begins to shut down."""
        self.metrics = Metrics(service)
        self.router = Router((*ROUTES, *more_routes))
        self.openapi = encode(describe(ROUTES, self.version))
        self._authenticator = authenticator
        # Needed for nearly every request, nearly always with the same arguments.
        self._is_local_host = lru_cache(256)(
            lambda peer, host: authenticator.is_local(peer, [] if host is None else [("host", host)])
        )
        self._rates = rates
        self.log = AccessLog()
        self._traces = Traces.of(self.settings)
        self._request_id_prefix = secrets.token_hex(6)
        self._request_numbers = itertools.count()

    async def require_ready(self) -> None:
        """Require that sessions can be used.

        Raises:
            CarrelError: They cannot.
        """
        await asyncio.to_thread(self.service.tenants.own.list_records, None, 1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        request = Request(self, scope, receive, send)
        request.request_id = self._request_id(request)
        request.more_headers.append((b"x-request-id", request.request_id.encode("ascii")))
        self.metrics.running += 1
        try:
            if self._traces is None:
                await self._answer(request)
            else:
                with self._traces.span(request):
                    await self._answer(request)
        finally:
            self._finish(request)
        # After `_finish`, so that a slow client holds no place.
        await request.drain_body()

    def _request_id(self, request: Request) -> str:
        given = request.header(b"x-request-id")
        if given is not None and _REQUEST_ID.fullmatch(given):
            return given
        return f"{self._request_id_prefix}-{next(self._request_numbers):x}"

    async def _answer(self, request: Request) -> None:
        """Answer a request, turning errors into responses."""
        try:
            await request.send_pending(self._route(request))
        except ClientDisconnected:
            request.status = CLIENT_CLOSED_REQUEST
        except CarrelError as error:
            await self._send_error(request, error_response(error))
        except asyncio.CancelledError:
            if not self.stopping.is_set():
                raise
            await self._send_error(request, error_response(StoppingError(_STOPPING)))
        except Exception as error:
            await self._send_error(request, self._internal_error(request, error))

    def _internal_error(self, request: Request, error: Exception) -> Response:
        """Log an unexpected error, and return a response that names the log entry."""
        route = request.route.path if request.route else None
        self.service.logger.log_failure("http.failed", error, request_id=request.request_id, route=route)
        return error_response(
            CarrelError(f"the service failed; its log has the details of request {request.request_id}")
        )

    async def _send_error(self, request: Request, response: Response) -> None:
        # A response that has begun ends here, incomplete, and the connection with it.
        if not request.is_response_started:
            await request.send_response(response)

    def _finish(self, request: Request) -> None:
        """Count and log a request that was answered, and release its place."""
        self.metrics.running -= 1
        if request.ticket is not None:
            request.ticket.release()
        seconds = time.perf_counter() - request.started
        path = request.route.path if request.route else "none"
        status = request.status or CLIENT_CLOSED_REQUEST
        self.metrics.observe(path, request.scope["method"], status, seconds, request.sent_bytes)
        self.log.write(request, seconds)

    # Routing and admission

    def _route(self, request: Request) -> PendingResponse:
        methods, request.path_values = self.router.find(request.scope["raw_path"])
        if self.settings.cors_origins:
            self._add_cors_headers(request)
        method = request.scope["method"]
        if method == "OPTIONS" and (response := self._preflight(request, methods)) is not None:
            return response
        route = methods.get("GET" if method == "HEAD" else method)
        if route is None:
            return _no_route_response(methods)
        request.route = route
        if route.group != UNLIMITED_GROUP:
            if self.stopping.is_set():
                raise StoppingError(_STOPPING)
            request.ticket = self.service.admission.admit()
        if route.is_open:
            return self._handle(route, request)
        authorization = self._authorization(request)
        caller = self._authenticator.authenticate_cached(
            authorization=authorization, peer_is_local=authorization is None and self._is_local(request)
        )
        if caller is None:
            return self._authenticate_and_handle(route, request)
        return self._handle_for(caller, route, request)

    async def _authenticate_and_handle(self, route: Route, request: Request) -> None:
        await request.send_pending(self._handle_for(await self.authenticate(request), route, request))

    def _handle_for(self, caller: Principal, route: Route, request: Request) -> PendingResponse:
        """Handle the request of an authenticated caller, within its limits."""
        request.caller = caller
        mark_authenticated(request.scope)
        self._rates.take(caller)
        if request.ticket is not None:
            request.ticket.assign(caller)
        # Each request has a task of its own.
        set_current_tenant(caller)
        return self._handle(route, request)

    def _handle(self, route: Route, request: Request) -> PendingResponse:
        pending = route.handler(request)
        if route.is_lasting or isinstance(pending, Response):
            return pending
        return with_timeout(pending, self.settings.timeout_seconds)

    async def authenticate(self, request: Request) -> Principal:
        """Authenticate the caller of a request; again, to find out whether its credentials are still valid.

        Raises:
            UnauthenticatedError: The credentials are missing or wrong.
        """
        authorization = self._authorization(request)
        return await self._authenticator.authenticate(
            authorization=authorization, peer_is_local=authorization is None and self._is_local(request)
        )

    def _authorization(self, request: Request) -> str | None:
        # Of several headers, a proxy may have checked another one, so none counts.
        return "" if request.repeats(b"authorization") else request.header(b"authorization")

    def _is_local(self, request: Request) -> bool:
        """Whether a request without credentials may be the operator's."""
        if request.has_only(IDENTITY_FREE_HEADERS):
            return self._is_local_host(request.peer, request.header(b"host"))
        return self._authenticator.is_local(request.peer, request.headers)

    # CORS

    def _add_cors_headers(self, request: Request) -> None:
        request.more_headers.append((b"vary", b"Origin"))
        origin = request.header(b"origin")
        if origin is not None and origin.lower() in self.settings.cors_origins:
            request.more_headers += [
                (b"access-control-allow-origin", origin.encode("latin-1")),
                (b"access-control-expose-headers", _EXPOSED_HEADERS),
            ]

    def _preflight(self, request: Request, methods: dict[str, Route]) -> Response | None:
        """Answer a CORS preflight request of an allowed origin; `None` for any other request."""
        origin = request.header(b"origin")
        if origin is None or origin.lower() not in self.settings.cors_origins or not methods:
            return None
        requested = request.header(b"access-control-request-headers") or ""
        return Response(
            204,
            (
                (b"access-control-allow-methods", ", ".join(methods).encode("ascii")),
                (b"access-control-allow-headers", requested.encode("latin-1")),
                (b"access-control-max-age", b"600"),
            ),
        )


def _no_route_response(methods: dict[str, Route]) -> Response:
    """Return 405 for a wrong method.

    Raises:
        UnknownRequestError: There is no resource at the path.
    """
    if not methods:
        raise UnknownRequestError("there is no resource at this path")
    allowed = [*methods, "HEAD"] if "GET" in methods else list(methods)
    error = UnknownRequestError(f"the method must be one of: {', '.join(allowed)}")
    return error_response(error, status=405, headers=[(b"allow", ", ".join(allowed).encode("ascii"))])
