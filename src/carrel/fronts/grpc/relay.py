"""Accept connections for gRPC and pass them on to the library, with its limits in force from the first byte.

The library enforces its limit on metadata only once the client has acknowledged the server's settings. Until
then it accepts 16 MiB per call, and no option changes that. So the library listens on a Unix socket that no
other process can connect to. For each client the relay opens a connection to it and acknowledges the settings
itself before it passes anything on. The client's own acknowledgement, which the library would take for a
protocol error, is removed; everything else passes unchanged. TLS ends at the relay.

Not covered: what a client may send within the limits of HTTP/2, which is up to the library.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from secrets import token_hex
from tempfile import TemporaryDirectory

import grpc.aio

from carrel.errors import UnavailableError
from carrel.fronts.listener import (
    UNAUTHENTICATED_BYTES,
    Listener,
    StallTimer,
    UnauthenticatedConnections,
    raise_buffer_limits,
)

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""What every HTTP/2 client sends first."""
FRAME_HEADER_BYTES = 9
SETTINGS, ACKNOWLEDGEMENT = 4, 1
"""The type of a settings frame, and the flag that makes it an acknowledgement."""
EMPTY_SETTINGS = bytes([0, 0, 0, SETTINGS, 0, 0, 0, 0, 0])
SETTINGS_ACKNOWLEDGED = bytes([0, 0, 0, SETTINGS, ACKNOWLEDGEMENT, 0, 0, 0, 0])
MAX_UNAUTHENTICATED = 24
"""Most connections at one time without a call that has shown a key; the library may hold 500 KB for each."""
PREFACE_SECONDS = 10
"""How long a client may take to send the preface and to be connected to the library."""
BUFFER_BYTES = 2**18
"""How much is held for a client that does not read; before it has authenticated, `UNAUTHENTICATED_BYTES`."""
LIBRARY_BYTES = 2**18
"""How much the library may read at once of a client that has authenticated."""
CLOSE_SECONDS = 2
"""How long a client may take to read what is left when its connection is closed."""
PEER_PREFIX = "unix-abstract:"
"""How the library names the relay's end of a connection, before the name of its socket."""


class Relay:
    """Connects clients to a gRPC server in this process."""

    def __init__(self) -> None:
        self.clients: set[ClientConnection] = set()
        """All connections from clients."""
        self._loop = asyncio.get_running_loop()
        self._unauthenticated = UnauthenticatedConnections(MAX_UNAUTHENTICATED)
        self._by_name: dict[str, ClientConnection] = {}
        """The clients that are connected to the library, by the names of their sockets there."""
        self._socket: socket.socket | None = None
        """Where clients connect to."""
        self._listener: Listener | None = None
        self._library_socket: int | None = None
        """Descriptor of the socket on which the library listens."""

    async def start(
        self, server: grpc.aio.Server, listener: socket.socket, context: ssl.SSLContext | None
    ) -> None:
        """Start *server*, and pass on what *listener* accepts, over TLS if there is a *context*.

        `close` closes *listener* too.

        Raises:
            UnavailableError: There is no temporary directory in which a socket can be created.
        """
        try:
            self._library_socket = await _start_library(server)
        except (OSError, RuntimeError):  # of Python, and of the library
            raise UnavailableError("gRPC cannot create a socket in the temporary directory") from None
        self._socket = listener
        self._listener = Listener(
            listener, lambda: ClientConnection(self, self._unauthenticated), self._unauthenticated, context
        )

    async def close(self) -> None:
        """Close all connections, once the clients have read what is left for them."""
        if self._listener is not None:
            self._listener.close()
            await self._listener.wait_closed()
            self._listener = None
        if self._socket is not None:
            self._socket.close()
        if self.clients:
            await asyncio.wait([client.closed for client in self.clients], timeout=CLOSE_SECONDS)
        for client in self.clients:
            client.abort()
        if self.clients:
            await asyncio.wait([client.closed for client in self.clients])
        if self._library_socket is not None:
            os.close(self._library_socket)
            self._library_socket = None

    def find(self, peer: str) -> ClientConnection | None:
        """Return the client behind *peer*, as the library names it; `None` if it has disconnected."""
        return self._by_name.get(peer.removeprefix(PEER_PREFIX))

    async def connect(self, client: ClientConnection) -> None:
        """Connect *client* to the library.

        Raises:
            OSError: No descriptor is left, or the library has stopped.
        """
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.setblocking(False)
            # The library reads at once what the buffer of the other side holds.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNAUTHENTICATED_BYTES)
            connection.bind("")  # the kernel chooses a name that no other socket has
            await self._loop.sock_connect(connection, f"/proc/self/fd/{self._library_socket}")
            client.name = connection.getsockname()[1:].decode("ascii")
            self._by_name[client.name] = client
            await self._loop.create_unix_connection(lambda: LibraryConnection(client), sock=connection)
        except BaseException:
            connection.close()
            raise

    def forget(self, client: ClientConnection) -> None:
        """Drop a client whose connection has ended."""
        self.clients.discard(client)
        if self._by_name.get(client.name) is client:
            del self._by_name[client.name]


async def _start_library(server: grpc.aio.Server) -> int:
    """Start *server* on a Unix socket, and return a descriptor of that; its file is removed.

    Raises:
        OSError: The socket cannot be created.
        RuntimeError: The library cannot create it.
    """
    # The library removes this path when it stops, when the descriptor may be that of another directory.
    name = token_hex(16)
    with TemporaryDirectory(prefix="carrel-grpc-") as directory:
        opened = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # Short enough for the address of a Unix socket, however long the path of the directory is.
            server.add_insecure_port(f"unix:/proc/self/fd/{opened}/{name}")
            await server.start()
            return os.open(name, os.O_PATH | os.O_CLOEXEC, dir_fd=opened)
        finally:
            os.close(opened)


class ClientConnection(asyncio.Protocol):
    """A connection from a client."""

    def __init__(self, relay: Relay, unauthenticated: UnauthenticatedConnections) -> None:
        self._relay = relay
        self._unauthenticated = unauthenticated
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._library: asyncio.Transport | None = None
        self.name = ""
        """The name of its socket at the library."""
        self._received = b""
        """What came before it could be passed on."""
        self._filter = AcknowledgementFilter()
        self._connecting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle
        """Aborts the connection."""
        self._stall_timer: StallTimer
        self._is_known = False
        self._is_library_full = False
        self._is_client_full = False
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self.address: str | None = None
        """The client's IP address."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # it is of TCP
        self._transport = transport
        self._stall_timer = StallTimer(transport)
        self.address = (transport.get_extra_info("peername") or (None,))[0]
        self._relay.clients.add(self)
        self._unauthenticated.add(self, transport.abort)
        transport.set_write_buffer_limits(UNAUTHENTICATED_BYTES)
        self._timer = self._loop.call_later(PREFACE_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._stall_timer.stop()
        self._unauthenticated.discard(self)
        self._relay.forget(self)
        if self._library is not None:
            self._library.abort()
        self._received = b""
        self.closed.set_result(None)

    def authenticated(self) -> None:
        """Raise the limits of this connection, because a call on it has shown a valid key."""
        if not self._is_known and not self._transport.is_closing():
            self._is_known = True
            self._unauthenticated.discard(self)
            self._transport.set_write_buffer_limits(BUFFER_BYTES)
            raise_buffer_limits(self._transport.get_extra_info("socket"))
            if self._library is not None:
                self._library.set_write_buffer_limits(BUFFER_BYTES)
                connection = self._library.get_extra_info("socket")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, LIBRARY_BYTES)
            self._read_if_possible()

    def data_received(self, data: bytes) -> None:
        if self._transport.is_closing():  # TLS still delivers what it has received
            return
        if self._library is not None:
            self._library.write(self._filter.feed(data))
            return
        self._received += data
        if not self._received.startswith(PREFACE[: len(self._received)]):
            self._transport.abort()
        elif len(self._received) >= len(PREFACE) and self._connecting is None:
            self._transport.pause_reading()
            self._connecting = self._loop.create_task(self._connect())

    def eof_received(self) -> None:
        self.close()

    async def _connect(self) -> None:
        try:
            await self._relay.connect(self)
        except OSError:
            self._transport.abort()
        if self.closed.done():
            self._relay.forget(self)

    def begin(self, library: asyncio.Transport) -> None:
        """Pass on what the client has sent and will send, now that its limits are in force."""
        if self._transport.is_closing():
            library.abort()
            return
        self._timer.cancel()
        self._library = library
        received, self._received = self._received[len(PREFACE) :], b""
        library.write(self._filter.feed(received))
        self._read_if_possible()

    def send(self, data: bytes) -> None:
        """Send *data* of the library to the client, unless it has disconnected."""
        if not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """Close the connection once the client has read what is left for it, or after a moment."""
        if not self._transport.is_closing():
            self._transport.close()
            self._timer.cancel()
            self._timer = self._loop.call_later(CLOSE_SECONDS, self._transport.abort)

    def abort(self) -> None:
        """Close the connection at once."""
        self._transport.abort()

    # Flow control: each side waits while the other does not read.

    def pause_reading(self) -> None:
        """The library does not read: read nothing from the client until `resume_reading`."""
        self._is_library_full = True
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """The library reads again."""
        self._is_library_full = False
        self._read_if_possible()

    def pause_writing(self) -> None:
        self._is_client_full = True
        self._stall_timer.start()
        if self._library is not None:
            self._library.pause_reading()
        if not self._is_known:
            # The library queues an answer to every refused call, however many there are.
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._is_client_full = False
        self._stall_timer.stop()
        if self._library is not None:
            self._library.resume_reading()
        self._read_if_possible()

    def _read_if_possible(self) -> None:
        is_waiting = self._is_client_full and not self._is_known
        if self._library is not None and not self._is_library_full and not is_waiting:
            self._transport.resume_reading()


class LibraryConnection(asyncio.Protocol):
    """The connection to the library that belongs to one client."""

    def __init__(self, client: ClientConnection) -> None:
        self._client = client
        self._filter = AcknowledgementFilter()
        self._has_settings = False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # a Unix socket
        self._transport = transport
        transport.set_write_buffer_limits(UNAUTHENTICATED_BYTES)
        transport.write(PREFACE + EMPTY_SETTINGS)

    def data_received(self, data: bytes) -> None:
        self._client.send(self._filter.feed(data))
        if not self._has_settings:
            # The first bytes that a server sends are its settings, which can be acknowledged from then on.
            self._has_settings = True
            self._transport.write(SETTINGS_ACKNOWLEDGED)
            self._client.begin(self._transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._client.close()

    def pause_writing(self) -> None:
        self._client.pause_reading()

    def resume_writing(self) -> None:
        self._client.resume_reading()


class AcknowledgementFilter:
    """Removes the first acknowledgement of settings from a stream of HTTP/2 frames."""

    def __init__(self) -> None:
        self._is_done = False
        self._header = b""
        """The beginning of a frame's header."""
        self._payload_bytes = 0
        """How much of a frame's payload is still to come."""

    def feed(self, data: bytes) -> bytes:
        """Return what is to be passed on of the next *data*."""
        if self._is_done:
            return data
        data = self._header + data
        position = self._payload_bytes
        while (end := position + FRAME_HEADER_BYTES) <= len(data):
            if data[position:end] == SETTINGS_ACKNOWLEDGED:
                self._is_done = True
                return data[:position] + data[end:]
            position = end + int.from_bytes(data[position : position + 3])
        self._header = data[position:]
        self._payload_bytes = max(0, position - len(data))
        return data[: len(data) - len(self._header)]
