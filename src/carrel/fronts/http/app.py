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
from carrel.fronts.listener import introduce
from carrel.service.authentication.authenticator import Authenticator
from carrel.service.principal import Principal
from carrel.service.rate_limit import RateLimiter
from carrel.service.service import Service
from carrel.service.thread_pools import run_for_tenant

STATUS = "service"
"""The group of those routes that are answered however busy the service is."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
_IDENTITY_FREE_HEADERS = frozenset(
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
"""Headers that say nothing about who calls, but for `host`."""
_EXPOSED_HEADERS = b"Accept-Ranges, Carrel-Info, Content-Range, ETag, Location, Retry-After, X-Request-Id"


class Application:
    """Answers every HTTP request to one service."""

    def __init__(
        self,
        service: Service,
        callers: Authenticator,
        rates: RateLimiter,
        *,
        more_routes: tuple[Route, ...] = (),
    ) -> None:
        """Answer for *service*, which is open for as long as this is used."""
        self.service = service
        self.settings = service.settings.serve
        self.version = version("carrel")
        self.stopping = asyncio.Event()
        """Set when the service is about to end."""
        self.metrics = Metrics(service)
        self.router = Router((*ROUTES, *more_routes))
        self.openapi = encode(describe(ROUTES, self.version))
        self._callers = callers
        # Asked about nearly every request, and nearly always the same.
        self._is_local_host = lru_cache(256)(
            lambda peer, host: callers.is_local(peer, [] if host is None else [("host", host)])
        )
        self._rates = rates
        self.log = AccessLog()
        self._traces = Traces.of(self.settings)
        self._prefix = secrets.token_hex(6)
        self._numbers = itertools.count()

    async def require_ready(self) -> None:
        """Do nothing if sessions can be used.

        Raises:
            CarrelError: They cannot.
        """
        await asyncio.to_thread(self.service.tenants.own.list_records, None, 1)

    def begin(self, scope: Scope) -> Request:
        """Take a request as far as it goes without waiting; `go_on` does the rest, if there is any."""
        call = Request(self, scope)
        call.request_id = self._request_id(call)
        call.more_headers.append((b"x-request-id", call.request_id.encode("ascii")))
        self.metrics.running += 1
        try:
            call.step = self._traced(call) if self._traces.are_on else self._step(call)
        except CarrelError as error:
            call.step = error_response(error)
        except Exception as error:
            call.step = self._failure(call, error)
        return call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http":
            await self.go_on(self.begin(scope), receive, send)

    async def go_on(self, call: Request, receive: Receive, send: Send) -> None:
        """Answer a request that was begun."""
        call.connect(receive, send)
        try:
            with self._traces.span(call):
                await self._answer(call)
        finally:
            self.done(call)
        # It is no request any more, and takes nobody's place.
        await call.leave()

    def done(self, call: Request) -> None:
        """Count and write down a request that was answered."""
        self.metrics.running -= 1
        if call.ticket is not None:
            call.ticket.release()
        seconds = time.perf_counter() - call.began
        name = call.route.path if call.route else "none"
        self.metrics.observe(
            name, call.scope["method"], call.status or CLIENT_CLOSED_REQUEST, seconds, call.sent_bytes
        )
        self.log.write(call, seconds)

    def _request_id(self, call: Request) -> str:
        given = call.header(b"x-request-id")
        if given is not None and _REQUEST_ID.fullmatch(given):
            return given
        return f"{self._prefix}-{next(self._numbers):x}"

    async def _answer(self, call: Request) -> None:
        """Answer, be it with an error."""
        try:
            await call.go_on(call.step)
        except ClientDisconnected:
            call.status = CLIENT_CLOSED_REQUEST
        except CarrelError as error:
            await self._tell(call, error_response(error))
        except asyncio.CancelledError:
            if not self.stopping.is_set():
                raise
            await self._tell(call, error_response(StoppingError("the service is about to end")))
        except Exception as error:
            await self._tell(call, self._failure(call, error))

    def _failure(self, call: Request, error: Exception) -> Response:
        """Tell the log about a mistake of ours, and the client where to look."""
        route = call.route.path if call.route else None
        self.service.logger.log_failure("http.failed", error, request_id=call.request_id, route=route)
        return error_response(CarrelError(f"the service failed; its log tells more of {call.request_id}"))

    async def _tell(self, call: Request, answer: Response) -> None:
        if not call.is_started:
            await call.give(answer)
        # Otherwise the answer ends here, incomplete, and the connection with it.

    def _step(self, call: Request) -> PendingResponse:
        methods, values = self.router.find(call.scope["raw_path"])
        if self.settings.cors_origins:
            self._allow_origin(call)
        method = call.scope["method"]
        if method == "OPTIONS" and (answer := self._preflight(call, methods)) is not None:
            return answer
        route = methods.get("GET" if method == "HEAD" else method)
        if route is None:
            return _no_route_response(methods)
        call.route, call.values = route, values
        if route.group != STATUS:
            if self.stopping.is_set():
                raise StoppingError("the service is about to end")
            call.ticket = self.service.admission.admit()
        if route.is_open:
            return self._handled(route, call)
        shown = self._shown(call)
        caller = self._callers.authenticate_cached(
            authorization=shown, peer_is_local=shown is None and self._is_local(call)
        )
        return self._introduced(route, call) if caller is None else self._admitted(route, call, caller)

    async def _traced(self, call: Request) -> None:
        """Do all of it while the span lasts that tells of it."""
        await call.go_on(self._step(call))

    async def _introduced(self, route: Route, call: Request) -> None:
        """Find out who calls, and go on."""
        await call.go_on(self._admitted(route, call, await self.authenticate(call)))

    def _admitted(self, route: Route, call: Request, caller: Principal) -> PendingResponse:
        """Go on for a caller who is known, if that one may call so often."""
        call.caller = caller
        introduce(call.scope)
        self._rates.take(caller)
        if call.ticket is not None:
            call.ticket.assign(caller)
        step = self._handled(route, call)
        return step if isinstance(step, Response) else run_for_tenant(caller, step)

    def _handled(self, route: Route, call: Request) -> PendingResponse:
        step = route.handler(call)
        if route.is_lasting or isinstance(step, Response):
            return step
        return with_timeout(step, self.settings.timeout_seconds)

    async def authenticate(self, call: Request) -> Principal:
        """Who calls; who was known when a call began may not be any more.

        Raises:
            UnauthenticatedError: Nobody that is known.
        """
        shown = self._shown(call)
        return await self._callers.authenticate(
            authorization=shown, peer_is_local=shown is None and self._is_local(call)
        )

    def _shown(self, call: Request) -> str | None:
        """What the caller shows."""
        # Of two, a proxy may have looked at the other one.
        return "" if call.repeats(b"authorization") else call.header(b"authorization")

    def _is_local(self, call: Request) -> bool:
        """Whether a request without a key may be the operator's."""
        if call.has_only(_IDENTITY_FREE_HEADERS):
            return self._is_local_host(call.peer, call.header(b"host"))
        return self._callers.is_local(call.peer, call.headers)

    # Web pages

    def _allow_origin(self, call: Request) -> None:
        call.more_headers.append((b"vary", b"Origin"))
        origin = call.header(b"origin")
        if origin is not None and origin.lower() in self.settings.cors_origins:
            call.more_headers += [
                (b"access-control-allow-origin", origin.encode("latin-1")),
                (b"access-control-expose-headers", _EXPOSED_HEADERS),
            ]

    def _preflight(self, call: Request, methods: dict[str, Route]) -> Response | None:
        """What a page may ask for, if that is what a browser wants to know."""
        origin = call.header(b"origin")
        if origin is None or origin.lower() not in self.settings.cors_origins or not methods:
            return None
        wanted = call.header(b"access-control-request-headers") or ""
        return Response(
            204,
            (
                (b"access-control-allow-methods", ", ".join(methods).encode("ascii")),
                (b"access-control-allow-headers", wanted.encode("latin-1")),
                (b"access-control-max-age", b"600"),
            ),
        )


def _no_route_response(methods: dict[str, Route]) -> Response:
    """Say that nothing is there, or nothing that can be done with this method."""
    if not methods:
        raise UnknownRequestError("there is nothing at this path")
    allowed = [*methods, "HEAD"] if "GET" in methods else list(methods)
    error = UnknownRequestError(f"the method must be one of: {', '.join(allowed)}")
    return error_response(error, status=405, headers=[(b"allow", ", ".join(allowed).encode("ascii"))])
