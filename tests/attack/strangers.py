"""What callers without a key can do to a service: everything that might make it hold memory.

Each attack opens connections, sends what it can without waiting for answers, and keeps the connections until
the service has nothing more to do with them. What a socket does not take at once is not sent.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from carrel.values import MIB

CONNECTIONS = 120
"""More than a service takes."""
SOME = 80
FEW = 20
CONNECT_SECONDS = 30
IDLE_LOOKS = 5
"""A service that used no processor time between so many looks has nothing to do."""
WAITING_LOOKS = 25
"""The same of one that lets connections wait for a second."""
LOOK_SECONDS = 0.05
HEAD = b"POST /api/v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
MCP_HEAD = (
    b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Accept: application/json, text/event-stream\r\n"
)
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PING, CONTINUATION = 0, 1, 2, 3, 4, 6, 9
ACKNOWLEDGED, END_STREAM, END_HEADERS = 1, 1, 4
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Target:
    """A process that serves, and the connections of those who attack it."""

    process_id: int
    http: tuple[str, int]
    grpc: tuple[str, int]
    has_tls: bool = False
    held: list[socket.socket] = field(default_factory=list)

    # Memory

    def resident_bytes(self) -> int:
        return self._status("VmRSS")

    def peak_bytes(self) -> int:
        return self._status("VmHWM")

    def forget_peak(self) -> None:
        """Let the peak be what is resident now."""
        Path(f"/proc/{self.process_id}/clear_refs").write_text("5", "ascii")

    def _status(self, key: str) -> int:
        lines = Path(f"/proc/{self.process_id}/status").read_text("ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))

    def settle(self, looks: int = IDLE_LOOKS) -> None:
        """Wait until it has nothing to do."""
        idle, before = 0, -1.0
        while idle < looks:
            time.sleep(LOOK_SECONDS)
            used = self._ticks()
            idle = idle + 1 if used == before else 0
            before = used

    def _ticks(self) -> int:
        fields = Path(f"/proc/{self.process_id}/stat").read_text("utf-8").rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    # Connections

    def connect(
        self, at: tuple[str, int], count: int, *, encrypted: bool | None = None
    ) -> list[socket.socket]:
        """So many connections; over TLS if that is what the service speaks."""
        made = []
        for _ in range(count):
            with suppress(OSError):
                made.append(self._connected(at, self.has_tls if encrypted is None else encrypted))
        return made

    def _connected(self, at: tuple[str, int], encrypted: bool) -> socket.socket:
        connection = socket.create_connection(at, timeout=CONNECT_SECONDS)
        if encrypted:
            connection = _encrypted(connection, "h2" if at == self.grpc else "http/1.1")
        self.held.append(connection)
        connection.setblocking(False)
        return connection

    def warm_up(self) -> None:
        """Let it answer a few calls of each kind."""
        for connection in self.connect(self.http, FEW):
            send(connection, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" + HEAD + b"\r\n")
        for connection in begun(self, FEW):
            send(connection, HEALTH_CHECK)

    def release(self) -> None:
        """Close all connections, and wait until the service knows."""
        for connection in self.held:
            connection.close()
        self.held.clear()
        self.settle()


def _encrypted(connection: socket.socket, protocol: str) -> socket.socket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols([protocol])
    secured = context.wrap_socket(connection, do_handshake_on_connect=False)
    try:
        secured.do_handshake()
    except OSError:
        secured.close()
        raise
    return secured


@contextmanager
def attacking(target: Target) -> Iterator[None]:
    """Keep what is opened until the service has nothing to do, and no longer."""
    try:
        yield
        target.settle(WAITING_LOOKS)
    finally:
        target.release()


def send(connection: socket.socket, data: bytes, times: int = 1) -> None:
    """Send what the other side takes at once; nobody reads what it answers."""
    with suppress(OSError):
        for _ in range(times):
            if connection.send(data) < len(data):
                return


# HTTP


def idle_connections(target: Target) -> None:
    target.connect(target.http, CONNECTIONS)


def large_bodies(target: Target) -> None:
    head = HEAD + b"Content-Length: %d\r\n\r\n" % (100 * MIB)
    for connection in target.connect(target.http, SOME):
        send(connection, head)
        send(connection, bytes(MIB), 100)


def chunked_bodies(target: Target) -> None:
    for size in (1, 2**16):
        chunk = b"%x\r\n%s\r\n" % (size, bytes(size))
        for connection in target.connect(target.http, SOME):
            send(connection, HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
            send(connection, chunk * (MIB // len(chunk)), 4)


def half_of_a_head(target: Target) -> None:
    for connection in target.connect(target.http, CONNECTIONS):
        send(connection, HEAD)


def half_of_a_large_head(target: Target) -> None:
    for connection in target.connect(target.http, CONNECTIONS):
        send(connection, HEAD + b"X: " + b"x" * 32_000)


def half_of_a_head_of_many_fields(target: Target) -> None:
    for connection in target.connect(target.http, CONNECTIONS):
        send(connection, HEAD + b"a: %s\r\n" % (b"x" * 250) * 120)
    for connection in target.connect(target.http, CONNECTIONS):
        send(connection, HEAD + b"a:\r\n" * 15_000)


def slow_heads(target: Target) -> None:
    connections = target.connect(target.http, SOME)
    for number in range(len(HEAD)):
        for connection in connections:
            send(connection, HEAD[number : number + 1])


def large_heads(target: Target) -> None:
    for connection in target.connect(target.http, SOME):
        send(connection, HEAD + b"X: " + b"x" * 60_000 + b"\r\n\r\n")
        send(connection, HEAD + b"a:\r\n" * 15_000 + b"\r\n")
        send(connection, b"GET /" + b"x" * MIB)


def pipelined_requests(target: Target) -> None:
    for path in (b"/", b"/healthz", b"/readyz", b"/openapi.json", b"/api/v1/sessions"):
        request = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path
        for connection in target.connect(target.http, FEW):
            send(connection, request * (MIB // 8 // len(request)))


def many_answers(target: Target) -> None:
    for connection in target.connect(target.http, CONNECTIONS):
        send(connection, b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 100)


def other_protocols(target: Target) -> None:
    for connection in target.connect(target.http, SOME):
        send(connection, PREFACE + frame(SETTINGS) * 1000)
    for connection in target.connect(target.http, SOME):
        send(
            connection,
            b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        )
        send(connection, bytes(MIB), 20)
    for connection in target.connect(target.http, SOME):
        send(connection, bytes(MIB), 20)


def mcp_posts(target: Target) -> None:
    for connection in target.connect(target.http, SOME):
        send(connection, MCP_HEAD + b"Content-Length: %d\r\n\r\n" % (100 * MIB) + b"[" * MIB)
        send(connection, b"[" * MIB, 20)
    for connection in target.connect(target.http, SOME):
        send(connection, b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n")


# TLS


def silent_handshakes(target: Target) -> None:
    for at in (target.http, target.grpc):
        target.connect(at, CONNECTIONS, encrypted=False)


def half_handshakes(target: Target) -> None:
    for at in (target.http, target.grpc):
        for connection in target.connect(at, CONNECTIONS, encrypted=False):
            send(connection, hello(at == target.grpc))


def broken_handshakes(target: Target) -> None:
    for at in (target.http, target.grpc):
        for connection in target.connect(at, SOME, encrypted=False):
            # A record of a handshake whose one message says that it goes on for 16 MiB.
            send(connection, b"\x16\x03\x01\x40\x00\x01\xff\xff\xff" + bytes(16_380))
            send(connection, (b"\x16\x03\x01\x40\x00" + bytes(16_384)) * 16, 20)


def hello(speaks_grpc: bool) -> bytes:
    """How a client begins TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["h2"] if speaks_grpc else ["http/1.1"])
    said = ssl.MemoryBIO()
    client = context.wrap_bio(ssl.MemoryBIO(), said, server_hostname="localhost")
    with suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return said.read()


# gRPC: frames of HTTP/2, made by hand, as no client would


def frame(kind: int, payload: bytes = b"", *, flags: int = 0, stream: int = 0) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def field_of(name: bytes, value: bytes) -> bytes:
    """A header that is written out, and in no table afterwards."""
    return b"\x00" + _length(len(name)) + name + _length(len(value)) + value


def _length(size: int) -> bytes:
    if size < 127:
        return bytes([size])
    rest, parts = size - 127, [127]
    while rest >= 128:
        parts.append(rest % 128 + 128)
        rest //= 128
    return bytes([*parts, rest])


def call_of(method: bytes, *more: bytes) -> bytes:
    """The head of a call."""
    head = {
        b":method": b"POST",
        b":scheme": b"http",
        b":path": method,
        b":authority": b"127.0.0.1",
        b"content-type": b"application/grpc",
        b"te": b"trailers",
    }
    return b"".join([*(field_of(*each) for each in head.items()), *more])


CHECK = b"/grpc.health.v1.Health/Check"
WRITE = b"/carrel.v1.SandboxService/FileWrite"
WRITE_STREAM = b"/carrel.v1.SandboxService/FileWriteStream"
HEALTH_CHECK = frame(HEADERS, call_of(CHECK), flags=END_HEADERS, stream=1) + frame(
    DATA, bytes(5), flags=END_STREAM, stream=1
)
METHODS = (CHECK, WRITE, WRITE_STREAM, b"/carrel.v1.WorkspaceService/Call", b"/no.such/Method")


def begun(target: Target, count: int) -> list[socket.socket]:
    """Connections on which HTTP/2 has begun."""
    connections = target.connect(target.grpc, count)
    for connection in connections:
        send(connection, PREFACE + frame(SETTINGS) + frame(SETTINGS, flags=ACKNOWLEDGED))
    return connections


def idle_grpc_connections(target: Target) -> None:
    target.connect(target.grpc, CONNECTIONS)


def begun_grpc_connections(target: Target) -> None:
    begun(target, CONNECTIONS)


def large_messages(target: Target) -> None:
    for method in METHODS:
        for connection in begun(target, FEW):
            for stream in range(1, 400, 2):
                send(connection, frame(HEADERS, call_of(method), flags=END_HEADERS, stream=stream))
                message = b"\x00" + struct.pack(">I", 4 * MIB - 5) + bytes(2**14 - 5)
                send(connection, frame(DATA, message, stream=stream))


def many_streams(target: Target) -> None:
    for connection in begun(target, SOME):
        for stream in range(1, 2000, 2):
            send(connection, frame(HEADERS, call_of(CHECK), flags=END_HEADERS, stream=stream))


def much_metadata(target: Target) -> None:
    large = field_of(b"x", b"x" * 7000)
    many = field_of(b"a", b"") * 1000
    for more in (large, many):
        head = call_of(WRITE, more)
        for connection in begun(target, SOME):
            for stream in range(1, 100, 2):
                send(connection, frame(HEADERS, head, flags=END_HEADERS, stream=stream))


def endless_metadata(target: Target) -> None:
    for part in (field_of(b"x", b"x" * 16_000), field_of(b"a", b"") * 3000):
        for connection in begun(target, SOME):
            send(connection, frame(HEADERS, call_of(WRITE), stream=1))
            send(connection, frame(CONTINUATION, part, stream=1), 200)


def metadata_before_the_settings_are_acknowledged(target: Target) -> None:
    """The library alone would accept 16 MiB of it in every call."""
    piece = field_of(b"x", b"x" * 16_000)
    for early in (b"", frame(SETTINGS, flags=ACKNOWLEDGED)):
        for connection in target.connect(target.grpc, SOME):
            send(connection, PREFACE + early + frame(SETTINGS))
            for stream in range(1, 40, 2):
                send(connection, frame(HEADERS, call_of(WRITE), stream=stream))
                send(connection, frame(CONTINUATION, piece, stream=stream), 60)
                send(connection, frame(CONTINUATION, flags=END_HEADERS, stream=stream))


def tables_before_the_settings_are_acknowledged(target: Target) -> None:
    """One byte stands for 4,000 of the table each."""
    kept = b"\x40" + _length(1) + b"x" + _length(3900) + b"x" * 3900
    for connection in target.connect(target.grpc, SOME):
        send(connection, PREFACE + frame(SETTINGS))
        send(connection, frame(HEADERS, call_of(WRITE, kept), flags=END_HEADERS, stream=1))
        for stream in range(3, 100, 2):
            send(
                connection, frame(HEADERS, call_of(WRITE) + b"\xbe" * 4000, flags=END_HEADERS, stream=stream)
            )


def remembered_metadata(target: Target) -> None:
    """Headers that go into the table, which are named a thousand times then."""
    kept = b"\x40" + _length(1) + b"x" + _length(3900) + b"x" * 3900
    for connection in begun(target, SOME):
        head = call_of(WRITE, kept)
        send(connection, frame(HEADERS, head, flags=END_HEADERS, stream=1))
        for stream in range(3, 100, 2):
            send(
                connection,
                frame(HEADERS, call_of(WRITE) + b"\xbe" * 5000, flags=END_HEADERS, stream=stream),
            )


def streams_begun_and_ended(target: Target) -> None:
    for connection in begun(target, SOME):
        for stream in range(1, 4000, 2):
            send(connection, frame(HEADERS, call_of(CHECK), flags=END_HEADERS, stream=stream))
            send(connection, frame(RST_STREAM, struct.pack(">I", 8), stream=stream))


def pings_and_settings(target: Target) -> None:
    for connection in begun(target, SOME):
        send(connection, frame(PING, bytes(8)) * 10_000)
    for connection in begun(target, SOME):
        send(connection, frame(SETTINGS) * 20_000)


def health_checks(target: Target) -> None:
    for connection in begun(target, SOME):
        send(connection, HEALTH_CHECK)


Attack = Callable[[Target], None]
HTTP_ATTACKS: tuple[Attack, ...] = (
    idle_connections,
    large_bodies,
    chunked_bodies,
    half_of_a_head,
    half_of_a_large_head,
    half_of_a_head_of_many_fields,
    slow_heads,
    large_heads,
    pipelined_requests,
    many_answers,
    other_protocols,
    mcp_posts,
)
GRPC_ATTACKS: tuple[Attack, ...] = (
    idle_grpc_connections,
    begun_grpc_connections,
    large_messages,
    many_streams,
    much_metadata,
    endless_metadata,
    metadata_before_the_settings_are_acknowledged,
    tables_before_the_settings_are_acknowledged,
    remembered_metadata,
    streams_begun_and_ended,
    pings_and_settings,
    health_checks,
)
TLS_ATTACKS: tuple[Attack, ...] = (silent_handshakes, half_handshakes, broken_handshakes)
