"""Accept connections, and limit those of clients that have not authenticated.

A connection counts as unauthenticated until a request on it has shown a key, TLS handshakes included. While
there are too many, no connection is accepted, and the oldest are closed unless they authenticate within a
moment: silent clients cannot keep others out, and a burst of clients is served in turn. The receive buffer of
an unauthenticated connection is small.

Not covered: the number of authenticated connections of a client, and the number per address.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from carrel.errors import UnavailableError

BACKLOG = 2048
"""Most connections that the kernel keeps waiting to be accepted."""
MAX_UNAUTHENTICATED = 64
"""Most connections of clients that have not shown a key, TLS handshakes included."""
GRACE_SECONDS = 1.0
"""How long an unauthenticated connection is kept in any case."""
CHECK_SECONDS = 0.1
"""Interval at which the oldest connections are closed while there are too many."""
UNAUTHENTICATED_BYTES = 2**14
"""Receive buffer of an unauthenticated connection; the kernel doubles it."""
AUTHENTICATED_BYTES = 2**20
"""Initial receive buffer of an authenticated connection, within the kernel's limits."""
SO_BUF_LOCK = 72
"""Socket option that fixes buffer sizes, from Linux 5.14 on."""
HANDSHAKE_SECONDS = 10
"""Time limit of a TLS handshake."""
ACCEPT_BATCH = 64
"""Most connections accepted before the event loop serves others."""
PAUSE_SECONDS = 1
"""How long accepting pauses when the process has no file descriptor left."""
STALLED_SECONDS = 60
"""How long a client may read less than `TAKEN_BYTES` of what it is sent."""
TAKEN_BYTES = 2**16

MARK_AUTHENTICATED = "carrel.mark_authenticated"
"""Key in the ASGI scope of a request for the function that `mark_authenticated` calls."""


def mark_authenticated(scope: Mapping[str, Any]) -> None:  # Any: what ASGI has in it
    """Mark the connection of a request as authenticated."""
    if (known := scope.get(MARK_AUTHENTICATED)) is not None:
        known()


def raise_buffer_limits(connection: socket.socket) -> None:
    """Raise the receive buffer of an authenticated connection to the kernel's own limits."""
    with suppress(OSError):  # it is closed already, or the kernel is older
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, AUTHENTICATED_BYTES)
        connection.setsockopt(socket.SOL_SOCKET, SO_BUF_LOCK, 0)


def listen(host: str, port: int) -> socket.socket:
    """Open a socket that listens on *host* and *port*; port 0 chooses a free one.

    Raises:
        UnavailableError: The address is unknown, taken or not one of this machine.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = found[0]
        return socket.create_server(address, family=family, backlog=BACKLOG)
    except socket.gaierror:
        raise UnavailableError(f"cannot listen at {host}: no address of that name is known") from None
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise UnavailableError(f"cannot listen at {host} port {port}: {reason}") from None


def address_of(listener: socket.socket) -> str:
    """Return the host and port that *listener* is bound to, as in a URL."""
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class StallTimer:
    """Aborts a connection whose client does not read what it is sent."""

    def __init__(self, transport: asyncio.WriteTransport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Watch the client from now on, if anything is unread."""
        self.stop()
        if size := self._transport.get_write_buffer_size():
            self._timer = self._loop.call_later(STALLED_SECONDS, self._check, size)

    def stop(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check(self, size_before: int) -> None:
        if self._transport.get_write_buffer_size() > size_before - TAKEN_BYTES:
            self._transport.abort()
        else:
            self.start()


class UnauthenticatedConnections:
    """Connections of clients that have not authenticated, oldest first."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = MAX_UNAUTHENTICATED if limit is None else limit
        self._loop = asyncio.get_running_loop()
        self._connections: dict[object, tuple[float, Callable[[], object]]] = {}
        """When each was accepted, and how to close it."""
        self.on_room: Callable[[], None] | None = None
        """Called when another connection may be accepted."""

    @property
    def are_too_many(self) -> bool:
        """Whether no more may be accepted."""
        return len(self._connections) >= self._limit

    def add(self, connection: object, close: Callable[[], object]) -> None:
        """Add a connection, or replace how it is closed."""
        accepted, _ = self._connections.get(connection, (self._loop.time(), None))
        self._connections[connection] = accepted, close

    def discard(self, connection: object) -> None:
        """Remove a connection that has ended or authenticated."""
        self._connections.pop(connection, None)
        if self.on_room is not None and not self.are_too_many:
            self.on_room()

    def close_oldest(self) -> None:
        """Close some of the oldest connections whose grace period is over."""
        until = self._loop.time() - GRACE_SECONDS
        for connection, (accepted, close) in list(self._connections.items())[: max(1, self._limit // 4)]:
            if accepted <= until:
                close()
                self.discard(connection)


class Listener:
    """Accept connections; has the methods of `asyncio.Server` that uvicorn calls."""

    def __init__(
        self,
        listener: socket.socket,
        protocol: Callable[[], asyncio.BaseProtocol],
        unauthenticated: UnauthenticatedConnections,
        context: ssl.SSLContext | None,
    ) -> None:
        """Start accepting, over TLS if there is a *context*."""
        self._listener = listener
        self._protocol = protocol
        self._unauthenticated = unauthenticated
        self._context = context
        self._handshake_seconds = None if context is None else HANDSHAKE_SECONDS
        self._handshakes: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        """While accepting is paused, when to check again."""
        listener.setblocking(False)
        # Connections inherit it.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, UNAUTHENTICATED_BYTES)
        self._resume()

    def close(self) -> None:
        """Stop accepting, and cancel the handshakes."""
        self._pause()
        for task in self._handshakes:
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait until the handshakes have ended."""
        if self._handshakes:
            await asyncio.wait(self._handshakes)

    def _pause(self) -> None:
        """Stop accepting; the kernel keeps new connections waiting."""
        self._loop.remove_reader(self._listener)
        self._unauthenticated.on_room = None
        if self._timer is not None:
            self._timer.cancel()

    def _resume(self) -> None:
        self._pause()
        self._loop.add_reader(self._listener, self._accept)

    def _wait_for_room(self) -> None:
        self._pause()
        self._unauthenticated.on_room = self._resume
        self._timer = self._loop.call_later(CHECK_SECONDS, self._make_room)

    def _make_room(self) -> None:
        self._unauthenticated.close_oldest()
        if self._unauthenticated.are_too_many:
            self._wait_for_room()

    def _accept(self) -> None:
        for _ in range(ACCEPT_BATCH):
            if self._unauthenticated.are_too_many:
                self._wait_for_room()
                return
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                # No descriptor is left.
                self._pause()
                self._timer = self._loop.call_later(PAUSE_SECONDS, self._resume)
                return
            self._start_handshake(connection)

    def _start_handshake(self, connection: socket.socket) -> None:
        protocol = self._protocol()
        task = self._loop.create_task(self._handshake(connection, protocol))
        self._handshakes.add(task)
        task.add_done_callback(partial(self._handshake_done, connection))
        # The protocol replaces this when it is connected.
        self._unauthenticated.add(protocol, task.cancel)

    async def _handshake(self, connection: socket.socket, protocol: asyncio.BaseProtocol) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: protocol,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=self._handshake_seconds,
            )
        except (OSError, asyncio.CancelledError):
            # The client notices the failure too.
            self._unauthenticated.discard(protocol)

    def _handshake_done(self, connection: socket.socket, task: asyncio.Task[None]) -> None:
        self._handshakes.discard(task)
        if task.cancelled():  # before the protocol took the connection
            connection.close()
