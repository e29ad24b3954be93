"""Subscriptions to resources, in both versions of the protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import Any

from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import ListenHandler
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated, ServerEvent
from mcp_types import (
    EmptyResult,
    SubscriptionFilter,
    SubscriptionsListenRequestParams,
    SubscriptionsListenResult,
)

from carrel.audit.event import Event
from carrel.errors import RequestError, SessionMissingError
from carrel.fronts.mcp.change_watcher import ChangeWatcher
from carrel.fronts.mcp.client_context import ClientContext
from carrel.fronts.mcp.resource_uri import ResourceUri, parse_uri
from carrel.service.service import Service

MAX_SUBSCRIPTIONS = 100
"""Maximum number of resources that one client can subscribe to."""
_KEY = "carrel.subscriptions"

RequestContext = ServerRequestContext[Any, Any]  # Any: carrel stores nothing there
Listener = Callable[[ServerEvent], None]


class Subscriptions:
    """Begins and ends subscriptions."""

    def __init__(self, service: Service) -> None:
        """Watch the sessions of *service*."""
        self._watcher = ChangeWatcher(service)
        self._streams: set[ListenHandler] = set()

    async def subscribe(self, client: ClientContext, ctx: RequestContext, uri: str) -> EmptyResult:
        """Notify a client of the older protocol of changes of one file, until it unsubscribes or disconnects.

        Raises:
            CarrelError: The session does not exist, or the caller may not read it.
        """
        address = parse_uri(uri, client.caller.session)
        subscriptions = _subscriptions_of(_connection(ctx))
        if uri not in subscriptions.ends:
            _require_few(len(subscriptions.ends) + 1)
            session = ctx.session
            subscriptions.ends[uri] = await self._watcher.watch(
                client.caller, address, lambda _: subscriptions.notify(session, uri)
            )
        return EmptyResult()

    async def unsubscribe(self, ctx: RequestContext, uri: str) -> EmptyResult:
        """End a subscription, if there is one."""
        end = _subscriptions_of(_connection(ctx)).ends.pop(uri, None)
        if end is not None:
            end()
        return EmptyResult()

    async def listen(
        self, client: ClientContext, ctx: RequestContext, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Notify a client of the newer protocol of the requested changes until it disconnects.

        Raises:
            RequestError: There are too many subscriptions, or one is not the URI of a file.
        """
        requested = params.notifications
        _require_few(len(requested.resource_subscriptions or ()))
        async with AsyncExitStack() as ends:
            bus = _Bus()
            await self._watch_all(client, requested, bus, ends)
            stream = ListenHandler(bus)
            self._streams.add(stream)
            ends.callback(self._streams.discard, stream)
            return await stream(ctx, params)

    async def _watch_all(
        self, client: ClientContext, requested: SubscriptionFilter, bus: _Bus, ends: AsyncExitStack
    ) -> None:
        for uri in dict.fromkeys(requested.resource_subscriptions or ()):
            await self._watch(client, parse_uri(uri, client.caller.session), bus.on_update(uri), ends)
        if requested.resources_list_changed and client.caller.session is not None:
            await self._watch(client, ResourceUri(client.caller.session, "."), bus.on_list_change, ends)

    async def _watch(
        self,
        client: ClientContext,
        address: ResourceUri,
        notify: Callable[[Event | None], None],
        ends: AsyncExitStack,
    ) -> None:
        """Watch a resource; a missing session is not an error, as nothing changes in it."""
        try:
            ends.callback(await self._watcher.watch(client.caller, address, notify))
        except SessionMissingError:
            return

    def stop(self) -> None:
        """End the streams of all clients."""
        for stream in tuple(self._streams):
            stream.close()

    def close(self) -> None:
        """End the streams of all clients, and all watches."""
        self.stop()
        self._watcher.close()


class _Bus:
    """Delivers the changes of one stream to its listener."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        return self._listeners.clear

    async def publish(self, event: ServerEvent) -> None:
        self._deliver(event)

    def _deliver(self, event: ServerEvent) -> None:
        for listener in tuple(self._listeners):
            listener(event)

    def on_update(self, uri: str) -> Callable[[Event | None], None]:
        """Return a function to call when the file at *uri* was changed."""
        return lambda _: self._deliver(ResourceUpdated(uri))

    def on_list_change(self, event: Event | None) -> None:
        """Receive any change; one that only changes the content of a file does not change the list."""
        if event is None or event.before_bytes is None or event.after_bytes is None:
            self._deliver(ResourcesListChanged())


class _ConnectionSubscriptions:
    """The subscriptions of one connection of the older protocol."""

    def __init__(self) -> None:
        self.ends: dict[str, Callable[[], None]] = {}
        self._pending: dict[str, bool] = {}
        """The URIs whose notification is being sent, and whether to send another one afterwards."""
        self._sending: set[asyncio.Task[None]] = set()

    def notify(self, session: ServerSession, uri: str) -> None:
        """Send a notification; while one is being sent, send one more afterwards."""
        is_sending = uri in self._pending
        self._pending[uri] = True
        if not is_sending:
            task = asyncio.create_task(self._send(session, uri))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send(self, session: ServerSession, uri: str) -> None:
        try:
            while self._pending[uri]:
                self._pending[uri] = False
                await session.send_resource_updated(uri)
        finally:
            del self._pending[uri]

    def close(self) -> None:
        for end in self.ends.values():
            end()
        self.ends.clear()
        for task in tuple(self._sending):
            task.cancel()


def _connection(ctx: RequestContext) -> Connection:
    # The SDK has no public way for handlers to learn that a connection ends.
    return ctx.session._connection


def _subscriptions_of(connection: Connection) -> _ConnectionSubscriptions:
    found = connection.state.get(_KEY)
    if not isinstance(found, _ConnectionSubscriptions):
        found = connection.state[_KEY] = _ConnectionSubscriptions()
        connection.exit_stack.callback(found.close)
    return found


def _require_few(count: int) -> None:
    if count > MAX_SUBSCRIPTIONS:
        raise RequestError(f"{count} subscriptions are too many; the limit is {MAX_SUBSCRIPTIONS}")
