"""Subscriptions to resources, in both generations of the protocol."""

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
"""So many files one client may listen for."""
_KEY = "carrel.subscriptions"

RequestContext = ServerRequestContext[Any, Any]  # Any: nothing of ours is kept there
Listener = Callable[[ServerEvent], None]


class Subscriptions:
    """Begins and ends them."""

    def __init__(self, service: Service) -> None:
        """Listen to the sessions of *service*."""
        self._watcher = ChangeWatcher(service)
        self._streams: set[ListenHandler] = set()

    async def subscribe(self, visit: ClientContext, ctx: RequestContext, uri: str) -> EmptyResult:
        """Notify the client of changes of one file until it unsubscribes or is gone; in the older protocol.

        Raises:
            CarrelError: There is no such session, or the caller may not read in it.
        """
        address = parse_uri(uri, visit.caller.session)
        mine = _subscriptions_of(_connection(ctx))
        if uri not in mine.ends:
            _require_few(len(mine.ends) + 1)
            session = ctx.session
            mine.ends[uri] = await self._watcher.watch(
                visit.caller, address, lambda _: mine.send(session, uri)
            )
        return EmptyResult()

    async def unsubscribe(self, ctx: RequestContext, uri: str) -> EmptyResult:
        """Notify the client no more; it is no mistake if it never was."""
        end = _subscriptions_of(_connection(ctx)).ends.pop(uri, None)
        if end is not None:
            end()
        return EmptyResult()

    async def listen(
        self, visit: ClientContext, ctx: RequestContext, params: SubscriptionsListenRequestParams
    ) -> SubscriptionsListenResult:
        """Notify the client of what it asks for until it goes away; in the newer protocol.

        Raises:
            RequestError: It asks for too much, or for what is no address of a file.
        """
        asked = params.notifications
        _require_few(len(asked.resource_subscriptions or ()))
        async with AsyncExitStack() as ends:
            bus = _Bus()
            await self._watch_all(visit, asked, bus, ends)
            stream = ListenHandler(bus)
            self._streams.add(stream)
            ends.callback(self._streams.discard, stream)
            return await stream(ctx, params)

    async def _watch_all(
        self, visit: ClientContext, asked: SubscriptionFilter, bus: _Bus, ends: AsyncExitStack
    ) -> None:
        for uri in dict.fromkeys(asked.resource_subscriptions or ()):
            await self._watch(visit, parse_uri(uri, visit.caller.session), bus.updated(uri), ends)
        if asked.resources_list_changed and visit.caller.session is not None:
            await self._watch(visit, ResourceUri(visit.caller.session, "."), bus.listed, ends)

    async def _watch(
        self,
        visit: ClientContext,
        address: ResourceUri,
        tell: Callable[[Event | None], None],
        ends: AsyncExitStack,
    ) -> None:
        """Listen; in a session that is not there nothing changes, which is no mistake."""
        try:
            ends.callback(await self._watcher.watch(visit.caller, address, tell))
        except SessionMissingError:
            return

    def stop(self) -> None:
        """Tell all clients that no more is to come."""
        for stream in tuple(self._streams):
            stream.close()

    def close(self) -> None:
        """The same, and listen no more."""
        self.stop()
        self._watcher.close()


class _Bus:
    """Where the changes of one stream come in; nobody else's do."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)
        return self._listeners.clear

    async def publish(self, event: ServerEvent) -> None:
        self._tell(event)

    def _tell(self, event: ServerEvent) -> None:
        for listener in tuple(self._listeners):
            listener(event)

    def updated(self, uri: str) -> Callable[[Event | None], None]:
        """What is called when the file at *uri* was changed."""
        return lambda _: self._tell(ResourceUpdated(uri))

    def listed(self, event: Event | None) -> None:
        """Be told of any change; that a file got other content is none of the list."""
        if event is None or event.before_bytes is None or event.after_bytes is None:
            self._tell(ResourcesListChanged())


class _ConnectionSubscriptions:
    """What one connection of the older protocol listens for."""

    def __init__(self) -> None:
        self.ends: dict[str, Callable[[], None]] = {}
        self._due: dict[str, bool] = {}
        self._sending: set[asyncio.Task[None]] = set()

    def send(self, session: ServerSession, uri: str) -> None:
        """Notify, once more if that is being done already."""
        is_sending = uri in self._due
        self._due[uri] = True
        if not is_sending:
            task = asyncio.create_task(self._send(session, uri))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send(self, session: ServerSession, uri: str) -> None:
        try:
            while self._due[uri]:
                self._due[uri] = False
                await session.send_resource_updated(uri)
        finally:
            del self._due[uri]

    def close(self) -> None:
        for end in self.ends.values():
            end()
        self.ends.clear()
        for task in tuple(self._sending):
            task.cancel()


def _connection(ctx: RequestContext) -> Connection:
    # The SDK tells handlers of no other way to learn when a connection ends.
    return ctx.session._connection


def _subscriptions_of(connection: Connection) -> _ConnectionSubscriptions:
    found = connection.state.get(_KEY)
    if not isinstance(found, _ConnectionSubscriptions):
        found = connection.state[_KEY] = _ConnectionSubscriptions()
        connection.exit_stack.callback(found.close)
    return found


def _require_few(count: int) -> None:
    if count > MAX_SUBSCRIPTIONS:
        raise RequestError(f"{count} files are too many to listen for; at most {MAX_SUBSCRIPTIONS}")
