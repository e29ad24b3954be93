"""`McpApp`: many clients over streamable HTTP, in both generations of the protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.datastructures import Headers, QueryParams
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from carrel.errors import CarrelError, LimitError, RequestError, StoppingError, UnauthenticatedError
from carrel.fronts.json_document import ValueCounter
from carrel.fronts.listener import introduce
from carrel.fronts.mcp import progress
from carrel.fronts.mcp.client_context import DEFAULT_PROFILES, SESSION_PROFILE, ClientContext
from carrel.fronts.mcp.server import RequestContext, make_server
from carrel.fronts.mcp.subscriptions import Subscriptions
from carrel.fronts.mcp.tool_calls import ToolCalls
from carrel.remote.json_codec import render_error
from carrel.service.authentication.authenticator import Authenticator, single_authorization
from carrel.service.error_status import error_status
from carrel.service.principal import Principal
from carrel.service.rate_limit import RateLimiter
from carrel.service.service import Service
from carrel.service.thread_pools import set_current_tenant
from carrel.tools.core.spec import Profile
from carrel.values import MIB

IDLE_SECONDS = 1800
"""A connection of the older protocol that is not used for so long is forgotten."""
MAX_CONNECTIONS = 1000
MAX_CONNECTIONS_PER_CALLER = 200
"""Of those, so that nobody takes up the room of all others."""
MAX_BODY_BYTES = 4 * MIB
"""Largest request; the SDK decodes it in the event loop."""
_VERSION = "mcp-protocol-version"
_VISIT = "carrel.visit"


class McpApp:
    """An ASGI application for one path.

    The query may choose `profile` (more than once), `role` and `session`, as the options of `carrel mcp` do.
    """

    def __init__(
        self,
        service: Service,
        callers: Authenticator,
        rates: RateLimiter,
        *,
        progress_seconds: float = progress.INTERVAL_SECONDS,
    ) -> None:
        self._callers = callers
        self._rates = rates
        self._admission = service.admission
        self._subscriptions = Subscriptions(service)
        self._stopping = asyncio.Event()
        calls = ToolCalls(service, progress_seconds=progress_seconds)
        self._clients = StreamableHTTPSessionManager(
            make_server(service, _visit_of, calls, self._subscriptions),
            session_idle_timeout=IDLE_SECONDS,
            max_sessions=MAX_CONNECTIONS,
            max_request_body_size=min(MAX_BODY_BYTES, service.settings.serve.max_body_bytes),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer meanwhile; the application in which this is mounted does it in its lifespan, once."""
        async with self._clients.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            visit = await self._visit(scope)
            self._require_room(visit.caller, scope)
            # The application in which this is mounted has counted the request, but not whose it is.
            self._admission.count(visit.caller)
        except CarrelError as error:
            await _refusal(error)(scope, receive, send)
            return
        set_current_tenant(visit.caller)
        try:
            await self._serve({**scope, _VISIT: visit, "user": _user(visit.caller)}, receive, send)
        finally:
            self._admission.discount(visit.caller)

    def stop(self) -> None:
        """End what would never end by itself: the streams of those who only listen. Calls go on."""
        self._subscriptions.stop()
        self._stopping.set()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, as long as its caller is known."""
        has_begun = False

        async def watched(message: Message) -> None:
            nonlocal has_begun
            has_begun = has_begun or message["type"] == "http.response.start"
            await send(message)

        serve = self._listen if scope["method"] == "GET" else self._clients.handle_request
        try:
            async with self._callers.revalidating(Headers(scope=scope).get("authorization")):
                await serve(scope, _counted(receive), watched)
        except (UnauthenticatedError, StoppingError, LimitError) as error:
            if not has_begun:
                await _refusal(error)(scope, receive, send)
            else:
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _listen(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a stream of notifications of the older protocol until the client or the service ends.

        Raises:
            StoppingError: The service does.
        """
        serving = asyncio.create_task(self._clients.handle_request(scope, receive, send))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
            is_over = serving.done()
        finally:
            serving.cancel()
            stopping.cancel()
            await asyncio.wait((serving, stopping))
        if not is_over:
            raise StoppingError("the service is about to end")
        serving.result()

    def _require_room(self, caller: Principal, scope: Scope) -> None:
        """Refuse to begin one connection of the older protocol too many; one that there is goes on.

        Raises:
            LimitError: The caller has so many already.
        """
        headers = Headers(scope=scope)
        if MCP_SESSION_ID_HEADER in headers or headers.get(_VERSION) in MODERN_PROTOCOL_VERSIONS:
            return
        # The SDK alone knows which of them have ended.
        owners = (json.loads(owner["client_id"]) for owner in self._clients._session_owners.values())
        count = sum((tenant, name) == (caller.tenant, caller.name) for tenant, name, *_ in owners)
        if count >= MAX_CONNECTIONS_PER_CALLER:
            raise LimitError(
                "requests",
                limit=MAX_CONNECTIONS_PER_CALLER,
                asked=count + 1,
                message=f"{count} connections of yours are open, and no more may be: end some of them",
            )

    async def _visit(self, scope: Scope) -> ClientContext:
        headers = Headers(scope=scope)
        client = scope.get("client")
        caller = await self._callers.authenticate(
            authorization=single_authorization(headers.getlist("authorization")),
            peer_is_local=self._callers.is_local(None if client is None else client[0], headers.items()),
        )
        introduce(scope)
        self._rates.take(caller)
        return _chosen(caller, QueryParams(scope["query_string"]))


def mcp_app(service: Service, callers: Authenticator, rates: RateLimiter) -> McpApp:
    """The application for *service*, whose callers are found by their keys."""
    return McpApp(service, callers, rates)


def _visit_of(ctx: RequestContext) -> ClientContext:
    assert ctx.request is not None  # noqa: S101  # that of the transport, which has one
    visit: ClientContext = ctx.request.scope[_VISIT]
    return visit


def _chosen(caller: Principal, query: QueryParams) -> ClientContext:
    """The caller as the query has it.

    Raises:
        RoleDeniedError: The caller may not choose that role.
        SessionMissingError: The caller is bound to another session.
        RequestError: There is no such profile.
    """
    caller = caller.acting_as(query.get("role"))
    if (session := query.get("session")) is not None:
        caller.require_session(session)
        caller = replace(caller, session=session)
    profiles = tuple(query.getlist("profile")) or DEFAULT_PROFILES
    for profile in profiles:
        if profile not in (*Profile, SESSION_PROFILE):
            raise RequestError(f"there is no profile {profile[:40]!r}")
    return ClientContext(caller=caller, profiles=profiles)


def _counted(receive: Receive) -> Receive:
    """Count the values of a body as it arrives: the SDK decodes it in the event loop.

    The result raises `LimitError` if there are too many.
    """
    count = ValueCounter()

    async def counted() -> Message:
        message = await receive()
        count.add(message.get("body", b""))
        return message

    return counted


def _user(caller: Principal) -> AuthenticatedUser:
    """Who opened a connection, so that nobody else can use it."""
    who = json.dumps([caller.tenant, caller.name, caller.role, caller.session])
    return AuthenticatedUser(AccessToken(token="", client_id=who, scopes=[]))


def _refusal(error: CarrelError) -> Response:
    row = error_status(error.code)
    document: Mapping[str, Any] = {"error": render_error(error, retry=row.retry)}
    headers = {}
    if row.http_status == 401:
        headers["www-authenticate"] = "Bearer"
    if (seconds := getattr(error, "retry_after_seconds", None)) is not None:
        headers["retry-after"] = str(seconds)
    return Response(
        json.dumps(document), status_code=row.http_status, headers=headers, media_type="application/json"
    )
