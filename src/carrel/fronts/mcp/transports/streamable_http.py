"""`McpApp`: serve many clients over streamable HTTP, in both versions of the protocol."""

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
from carrel.fronts.listener import mark_authenticated
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
"""Idle time after which a connection of the older protocol is closed."""
MAX_CONNECTIONS = 1000
MAX_CONNECTIONS_PER_CALLER = 200
"""Maximum number of connections of one caller."""
MAX_BODY_BYTES = 4 * MIB
"""Largest request; the SDK decodes it in the event loop."""
_VERSION = "mcp-protocol-version"
_CLIENT = "carrel.client"


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
            make_server(service, _find_client, calls, self._subscriptions),
            session_idle_timeout=IDLE_SECONDS,
            max_sessions=MAX_CONNECTIONS,
            max_request_body_size=min(MAX_BODY_BYTES, service.settings.serve.max_body_bytes),
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Accept requests during the block; entered once, by the program that runs the application."""
        async with self._clients.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            client = await self._authenticate(scope)
            self._require_room(client.caller, scope)
            # The application that this is mounted in has counted the request, but not for its caller.
            self._admission.count(client.caller)
        except CarrelError as error:
            await _error_response(error)(scope, receive, send)
            return
        set_current_tenant(client.caller)
        try:
            await self._serve({**scope, _CLIENT: client, "user": _user(client.caller)}, receive, send)
        finally:
            self._admission.discount(client.caller)

    def stop(self) -> None:
        """End the streams of notifications, which would never end by themselves; calls continue."""
        self._subscriptions.stop()
        self._stopping.set()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, while its credentials are valid."""
        is_started = False

        async def watched(message: Message) -> None:
            nonlocal is_started
            is_started = is_started or message["type"] == "http.response.start"
            await send(message)

        serve = self._listen if scope["method"] == "GET" else self._clients.handle_request
        try:
            async with self._callers.revalidating(Headers(scope=scope).get("authorization")):
                await serve(scope, _counting_values(receive), watched)
        except (UnauthenticatedError, StoppingError, LimitError) as error:
            if not is_started:
                await _error_response(error)(scope, receive, send)
            else:
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _listen(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a stream of notifications of the older protocol until the client or the service ends.

        Raises:
            StoppingError: The service stops.
        """
        serving = asyncio.create_task(self._clients.handle_request(scope, receive, send))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait((serving, stopping), return_when=asyncio.FIRST_COMPLETED)
            is_done = serving.done()
        finally:
            serving.cancel()
            stopping.cancel()
            await asyncio.wait((serving, stopping))
        if not is_done:
            raise StoppingError("the service is stopping")
        serving.result()

    def _require_room(self, caller: Principal, scope: Scope) -> None:
        """Require that a caller who opens a connection of the older protocol has not too many already.

        Raises:
            LimitError: The caller has too many.
        """
        headers = Headers(scope=scope)
        if MCP_SESSION_ID_HEADER in headers or headers.get(_VERSION) in MODERN_PROTOCOL_VERSIONS:
            return
        # Only the SDK knows which of them have ended.
        owners = (json.loads(owner["client_id"]) for owner in self._clients._session_owners.values())
        count = sum((tenant, name) == (caller.tenant, caller.name) for tenant, name, *_ in owners)
        if count >= MAX_CONNECTIONS_PER_CALLER:
            raise LimitError(
                "requests",
                limit=MAX_CONNECTIONS_PER_CALLER,
                asked=count + 1,
                message=f"{count} connections of yours are open, and no more may be; close some of them",
            )

    async def _authenticate(self, scope: Scope) -> ClientContext:
        headers = Headers(scope=scope)
        peer = scope.get("client")
        caller = await self._callers.authenticate(
            authorization=single_authorization(headers.getlist("authorization")),
            peer_is_local=self._callers.is_local(None if peer is None else peer[0], headers.items()),
        )
        mark_authenticated(scope)
        self._rates.take(caller)
        return _parse_query(caller, QueryParams(scope["query_string"]))


def mcp_app(service: Service, callers: Authenticator, rates: RateLimiter) -> McpApp:
    """Create the application for *service*."""
    return McpApp(service, callers, rates)


def _find_client(ctx: RequestContext) -> ClientContext:
    assert ctx.request is not None  # noqa: S101  # that of the transport, which has one
    client: ClientContext = ctx.request.scope[_CLIENT]
    return client


def _parse_query(caller: Principal, query: QueryParams) -> ClientContext:
    """Return the client context that the query chooses.

    Raises:
        RoleDeniedError: The caller may not choose the role.
        SessionMissingError: The caller is bound to another session.
        RequestError: The profile does not exist.
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


def _counting_values(receive: Receive) -> Receive:
    """Count the values of a body as it arrives: the SDK decodes it in the event loop.

    The result raises `LimitError` if there are too many.
    """
    count = ValueCounter()

    async def counting() -> Message:
        message = await receive()
        count.add(message.get("body", b""))
        return message

    return counting


def _user(caller: Principal) -> AuthenticatedUser:
    """Return the user that owns a connection; the SDK rejects requests of any other on it."""
    who = json.dumps([caller.tenant, caller.name, caller.role, caller.session])
    return AuthenticatedUser(AccessToken(token="", client_id=who, scopes=[]))


def _error_response(error: CarrelError) -> Response:
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
