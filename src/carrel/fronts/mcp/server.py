"""The MCP server: the handler of each request of the protocol."""

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
    "Files of sessions, which nothing in a session can leave. Paths are relative to the workspace of the"
    " session, or begin with /workspace. Tools that take a session make it when it is first named."
)

RequestContext = ServerRequestContext[Any, Any]  # Any: nothing of ours is kept there
Params = TypeVar("Params")
Answer = TypeVar("Answer")


def make_server(
    service: Service, visit_of: FindClientContext, calls: ToolCalls, subscriptions: Subscriptions
) -> Server[None]:
    """A server for callers whom *visit_of* knows; whoever runs it lets its lifespan go on meanwhile."""
    handlers = _Handlers(service, visit_of, calls, subscriptions)

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
        # No argument is also told in a header, so there is nothing to compare before a call.
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
    """The same, with errors as the protocol has them."""

    @wraps(handler)
    async def handle(self: _Handlers, ctx: RequestContext, params: Params) -> Answer:
        try:
            return await handler(self, ctx, params)
        except Exception as error:
            raise mcp_error(error, ctx.method, self.service.logger) from None

    return handle


class _Handlers:
    """What the requests of all clients do."""

    def __init__(
        self, service: Service, visit_of: FindClientContext, calls: ToolCalls, subscriptions: Subscriptions
    ) -> None:
        self.service = service
        self._visit_of = visit_of
        self._calls = calls
        self._subscriptions = subscriptions
        self._resources = Resources(service)

    @_translating_errors
    async def list_tools(self, ctx: RequestContext, params: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(tools=await allowed_tools(self.service, self._visit_of(ctx)))

    @_translating_errors
    async def call_tool(self, ctx: RequestContext, params: CallToolRequestParams) -> CallToolResult:
        # To a client that did not ask for it, nothing is reported.
        document = await self._calls.answer(
            self._visit_of(ctx), params.name, params.arguments or {}, ctx.session.report_progress
        )
        return CallToolResult.model_validate(replace_surrogates(document))

    @_translating_errors
    async def list_resources(
        self, ctx: RequestContext, params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        cursor = None if params is None else params.cursor
        return await self._resources.list(self._visit_of(ctx), cursor)

    @_translating_errors
    async def list_resource_templates(
        self, ctx: RequestContext, params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        return self._resources.templates(self._visit_of(ctx))

    @_translating_errors
    async def read_resource(
        self, ctx: RequestContext, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        return await self._resources.read(self._visit_of(ctx), params.uri)

    @_translating_errors
    async def subscribe_resource(self, ctx: RequestContext, params: SubscribeRequestParams) -> EmptyResult:
        return await self._subscriptions.subscribe(self._visit_of(ctx), ctx, params.uri)

    @_translating_errors
    async def unsubscribe_resource(
        self, ctx: RequestContext, params: UnsubscribeRequestParams
    ) -> EmptyResult:
        return await self._subscriptions.unsubscribe(ctx, params.uri)

    @_translating_errors
    async def listen(
        self, ctx: RequestContext, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        return await self._subscriptions.listen(self._visit_of(ctx), ctx, params)
