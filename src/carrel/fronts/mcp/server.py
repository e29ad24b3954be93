"""The MCP server: the handlers of the requests of the protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from importlib.metadata import version
from typing import Any, TypeVar

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    SubscribeRequestParams,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
    UnsubscribeRequestParams,
)

from carrel.fronts.mcp.client_context import FindClientContext
from carrel.fronts.mcp.resources import Resources
from carrel.fronts.mcp.responses import mcp_error, replace_surrogates
from carrel.fronts.mcp.subscriptions import Subscriptions
from carrel.fronts.mcp.tool_calls import ToolCalls
from carrel.fronts.mcp.tool_list import allowed_tools
from carrel.service.service import Service

INSTRUCTIONS = (
    "Sessions with confined workspaces. Paths are relative to the workspace of the session, or begin with"
    " /workspace. Tools that take a session create it when it is first named."
)

RequestContext = ServerRequestContext[Any, Any]  # Any: carrel stores nothing there
Params = TypeVar("Params")
Answer = TypeVar("Answer")


def make_server(
    service: Service, find_client: FindClientContext, calls: ToolCalls, subscriptions: Subscriptions
) -> Server[None]:
    """Create a server for the clients that *find_client* returns; its lifespan closes *subscriptions*."""
    handlers = _Handlers(service, find_client, calls, subscriptions)

    @asynccontextmanager
    async def lifespan(_: Server[None]) -> AsyncIterator[None]:
        try:
            yield
        finally:
            subscriptions.close()

    return Server(
        "carrel",
        version=version("carrel"),
        title="carrel",
        instructions=INSTRUCTIONS,
        lifespan=lifespan,
        # No argument is repeated in a header, so there is nothing to compare.
        get_tool_input_schema=lambda name: None,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
        on_subscribe_resource=handlers.subscribe_resource,
        on_unsubscribe_resource=handlers.unsubscribe_resource,
        on_subscriptions_listen=handlers.listen,
    )


def _translating_errors(
    handler: Callable[[_Handlers, RequestContext, Params], Awaitable[Answer]],
) -> Callable[[_Handlers, RequestContext, Params], Awaitable[Answer]]:
    """Wrap a handler to translate errors to those of the protocol."""

    @wraps(handler)
    async def handle(self: _Handlers, ctx: RequestContext, params: Params) -> Answer:
        try:
            return await handler(self, ctx, params)
        except Exception as error:
            raise mcp_error(error, ctx.method, self.service.logger) from None

    return handle


class _Handlers:
    """The handlers of all requests."""

    def __init__(
        self, service: Service, find_client: FindClientContext, calls: ToolCalls, subscriptions: Subscriptions
    ) -> None:
        self.service = service
        self._find_client = find_client
        self._calls = calls
        self._subscriptions = subscriptions
        self._resources = Resources(service)

    @_translating_errors
    async def list_tools(self, ctx: RequestContext, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=await allowed_tools(self.service, self._find_client(ctx)))

    @_translating_errors
    async def call_tool(self, ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        # Sends nothing unless the client requested progress.
        document = await self._calls.call(
            self._find_client(ctx), params.name, params.arguments or {}, ctx.session.report_progress
        )
        return CallToolResult.model_validate(replace_surrogates(document))

    @_translating_errors
    async def list_resources(
        self, ctx: RequestContext, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        cursor = None if params is None else params.cursor
        return await self._resources.list(self._find_client(ctx), cursor)

    @_translating_errors
    async def list_resource_templates(
        self, ctx: RequestContext, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return self._resources.templates(self._find_client(ctx))

    @_translating_errors
    async def read_resource(
        self, ctx: RequestContext, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        return await self._resources.read(self._find_client(ctx), params.uri)

    @_translating_errors
    async def subscribe_resource(self, ctx: RequestContext, params: SubscribeRequestParams) -> EmptyResult:
        return await self._subscriptions.subscribe(self._find_client(ctx), ctx, params.uri)

    @_translating_errors
    async def unsubscribe_resource(
        self, ctx: RequestContext, params: UnsubscribeRequestParams
    ) -> EmptyResult:
        return await self._subscriptions.unsubscribe(ctx, params.uri)

    @_translating_errors
    async def listen(
        self, ctx: RequestContext, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        return await self._subscriptions.listen(self._find_client(ctx), ctx, params)
