"""Accepts connections, and bounds those of clients that are not known.

A client is a stranger until a request of it has shown a key; a TLS handshake is one of a stranger too. While
there are too many strangers no connection is accepted, and those that came first are disconnected if they are
not known after a moment: clients that say nothing keep nobody out, and many that come at once are all served.
What is read of a stranger at once is bounded by the receive buffer of its connection.

Not covered: how many connections a client has that is known, and how many one address has.
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
"""Most connections that wait to be accepted."""
STRANGERS = 64
"""Most connections of clients that have not shown a key, including those in a TLS handshake."""
GRACE_SECONDS = 1.0
"""How long a stranger stays in any case."""
LOOK_SECONDS = 0.1
"""How often strangers are disconnected while there are too many; what others have sent is read in between."""
STRANGER_BYTES = 2**14
"""The receive buffer of a stranger's connection, of which the kernel makes twice as much."""
KNOWN_BYTES = 2**20
"""That of others to begin with; the kernel has limits of its own."""
SO_BUF_LOCK = 72
"""The option that says which buffers of a socket the kernel may not change: from Linux 5.14 on."""
HANDSHAKE_SECONDS = 10
"""How long a TLS handshake may take."""
ACCEPTED = 64
"""Most connections that are accepted before others get their turn in the event loop."""
PAUSE_SECONDS = 1
"""How long none is accepted when there is no file descriptor left for one."""

INTRODUCE = "carrel.introduce"
"""Where the scope of a request has what `introduce` calls."""


def introduce(scope: Mapping[str, Any]) -> None:  # Any: what ASGI has in it
    """Tell the connection of a request that its client is known."""
    if (known := scope.get(INTRODUCE)) is not None:
        known()


def allow_much(connection: socket.socket) -> None:
    """Let a client that is known send as much at once as the kernel lets it."""
    with suppress(OSError):  # it is closed already, or the kernel is older
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, KNOWN_BYTES)
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


class Strangers:
    """The connections of clients that are not known, in the order in which they came."""

    def __init__(self, limit: int | None = None) -> None:
        self._limit = STRANGERS if limit is None else limit
        self._loop = asyncio.get_running_loop()
        self._connections: dict[object, tuple[float, Callable[[], object]]] = {}
        """When each came, and how to disconnect it."""
        self.on_room: Callable[[], None] | None = None
        """Called when there are not too many any more."""

    @property
    def are_too_many(self) -> bool:
        """Whether there may be no more."""
        return len(self._connections) >= self._limit

    def add(self, connection: object, disconnect: Callable[[], object]) -> None:
        """Know of one more, or how to disconnect it now."""
        came, _ = self._connections.get(connection, (self._loop.time(), None))
        self._connections[connection] = came, disconnect

    def discard(self, connection: object) -> None:
        """Forget one that has ended, or whose client is known now."""
        self._connections.pop(connection, None)
        if self.on_room is not None and not self.are_too_many:
            self.on_room()

    def disconnect_first(self) -> None:
        """Disconnect some of those that came first, if they had their time."""
        until = self._loop.time() - GRACE_SECONDS
        for connection, (came, disconnect) in list(self._connections.items())[: max(1, self._limit // 4)]:
            if came <= until:
                disconnect()
                self.discard(connection)


class Listener:
    """Accepts connections; has the methods of `asyncio.Server` that uvicorn calls."""

    def __init__(
        self,
        listener: socket.socket,
        protocol: Callable[[], asyncio.BaseProtocol],
        strangers: Strangers,
        context: ssl.SSLContext | None,
    ) -> None:
        """Accept connections at once, over TLS if there is a *context*."""
        self._listener = listener
        self._protocol = protocol
        self._strangers = strangers
        self._context = context
        self._handshake_seconds = None if context is None else HANDSHAKE_SECONDS
        self._beginning: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        """While nothing is accepted, the next time to look."""
        listener.setblocking(False)
        # Every connection begins with it.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, STRANGER_BYTES)
        self._resume()

    def close(self) -> None:
        """Accept no more, and end the handshakes."""
        self._pause()
        for task in self._beginning:
            task.cancel()

    async def wait_closed(self) -> None:
        """Wait for the end of the handshakes."""
        if self._beginning:
            await asyncio.wait(self._beginning)

    def _pause(self) -> None:
        """Accept nothing; whoever comes is kept waiting by the kernel."""
        self._loop.remove_reader(self._listener)
        self._strangers.on_room = None
        if self._timer is not None:
            self._timer.cancel()

    def _resume(self) -> None:
        self._pause()
        self._loop.add_reader(self._listener, self._accept)

    def _wait_for_room(self) -> None:
        self._pause()
        self._strangers.on_room = self._resume
        self._timer = self._loop.call_later(LOOK_SECONDS, self._make_room)

    def _make_room(self) -> None:
        self._strangers.disconnect_first()
        if self._strangers.are_too_many:
            self._wait_for_room()

    def _accept(self) -> None:
        for _ in range(ACCEPTED):
            if self._strangers.are_too_many:
                self._wait_for_room()
                return
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:
                # There is no descriptor left.
                self._pause()
                self._timer = self._loop.call_later(PAUSE_SECONDS, self._resume)
                return
            self._begin(connection)

    def _begin(self, connection: socket.socket) -> None:
        protocol = self._protocol()
        task = self._loop.create_task(self._handshake(connection, protocol))
        self._beginning.add(task)
        task.add_done_callback(partial(self._begun, connection))
        # Until the protocol itself says how, when it is connected.
        self._strangers.add(protocol, task.cancel)

    async def _handshake(self, connection: socket.socket, protocol: asyncio.BaseProtocol) -> None:
        try:
            await self._loop.connect_accepted_socket(
                lambda: protocol,
                connection,
                ssl=self._context,
                ssl_handshake_timeout=self._handshake_seconds,
            )
        except (OSError, asyncio.CancelledError):
            # The client knows as well that it failed.
            self._strangers.discard(protocol)

    def _begun(self, connection: socket.socket, task: asyncio.Task[None]) -> None:
        self._beginning.discard(task)
        if task.cancelled():  # before it had the connection
            connection.close()
