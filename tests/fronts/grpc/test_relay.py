"""The relay: limits from the first byte, unchanged streams, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import socket
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import grpc
import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st

from carrel.errors import UnavailableError
from carrel.fronts import listener
from carrel.fronts.grpc import relay
from carrel.fronts.grpc.relay import (
    PREFACE,
    SETTINGS_ACKNOWLEDGED,
    AcknowledgementFilter,
    ClientConnection,
    Relay,
)
from carrel.fronts.listener import listen
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.values import MIB
from tests.attack.strangers import (
    CONTINUATION,
    END_HEADERS,
    HEADERS,
    SETTINGS,
    WRITE,
    call_of,
    field_of,
    frame,
)
from tests.fronts.grpc.handlers.test_files import until
from tests.fronts.grpc.serving import SECONDS, Served, serving
from tests.fronts.http.front import served as serving_both

FRAMES = frame(SETTINGS, bytes(6)) + frame(HEADERS, b"x" * 300, stream=1) + frame(0, bytes(20_000), stream=1)
REST = frame(0, b"more", stream=1)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service where every caller needs a key."""
    with serving(tmp_path_factory.mktemp("relay") / "sessions", CARREL_SERVE_REQUIRE_KEY="1") as made:
        yield made


def connected(served: Served) -> socket.socket:
    host, port = served.server.address.split(":")
    return socket.create_connection((host, int(port)), timeout=SECONDS)


def received(connection: socket.socket, *, until_has: bytes) -> bytes:
    """What comes until it has some bytes, or the end."""
    found = b""
    while until_has not in found and (data := connection.recv(2**16)):
        found += data
    return found


# The stream of frames


@given(cuts=st.lists(st.integers(0, len(FRAMES) + 20)))
def test_the_first_acknowledgement_is_removed_however_a_stream_is_cut(cuts: list[int]) -> None:
    stream = FRAMES + SETTINGS_ACKNOWLEDGED + REST + SETTINGS_ACKNOWLEDGED
    places = sorted({0, *cuts, len(stream)})
    passing = AcknowledgementFilter()
    assert (
        b"".join(passing.feed(stream[a:b]) for a, b in pairwise(places))
        == FRAMES + REST + SETTINGS_ACKNOWLEDGED
    )


def test_a_payload_that_looks_like_an_acknowledgement_is_kept() -> None:
    stream = frame(0, SETTINGS_ACKNOWLEDGED * 5, stream=1)
    passing = AcknowledgementFilter()
    assert b"".join(passing.feed(stream[at : at + 1]) for at in range(len(stream))) == stream


def test_an_acknowledgement_with_a_payload_is_left_to_the_library() -> None:
    stream = frame(SETTINGS, b"x", flags=1)
    assert AcknowledgementFilter().feed(stream) == stream


# Connections


@pytest.mark.attack
@pytest.mark.parametrize("size", [2**14, 2**20])
def test_metadata_is_limited_before_the_settings_are_acknowledged(guarded: Served, size: int) -> None:
    with connected(guarded) as connection:
        connection.sendall(PREFACE + frame(SETTINGS) + frame(HEADERS, call_of(WRITE), stream=1))
        piece = field_of(b"x", b"y" * 8000)
        for _ in range(size // len(piece) + 1):
            connection.sendall(frame(CONTINUATION, piece, stream=1))
        connection.sendall(frame(CONTINUATION, piece, flags=END_HEADERS, stream=1))
        assert b"received metadata size exceeds" in received(connection, until_has=b"exceeds hard limit")


@pytest.mark.parametrize("early", [b"", SETTINGS_ACKNOWLEDGED])
def test_a_client_may_acknowledge_late_or_too_early(guarded: Served, early: bytes) -> None:
    with connected(guarded) as connection:
        connection.sendall(PREFACE + early + frame(SETTINGS))
        connection.sendall(frame(HEADERS, call_of(WRITE), flags=END_HEADERS, stream=1))
        assert b"grpc-status" in received(connection, until_has=b"grpc-status")


@pytest.mark.parametrize("said", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01", PREFACE[:-1] + b"x"])
def test_another_protocol_is_disconnected(guarded: Served, said: bytes) -> None:
    with connected(guarded) as connection:
        connection.sendall(said)
        with suppress(ConnectionResetError):
            assert connection.recv(1) == b""


def test_a_preface_may_come_byte_by_byte(guarded: Served) -> None:
    with connected(guarded) as connection:
        for byte in PREFACE + frame(SETTINGS):
            connection.sendall(bytes([byte]))
        assert received(connection, until_has=SETTINGS_ACKNOWLEDGED).endswith(SETTINGS_ACKNOWLEDGED)


def ports(clients: Iterable[ClientConnection]) -> set[int]:
    """From which ports they come."""
    return {client._transport.get_extra_info("peername")[1] for client in list(clients)}


@pytest.mark.parametrize("said", [b"", PREFACE[:9], PREFACE, PREFACE + frame(SETTINGS)])
def test_a_client_that_hangs_up_is_forgotten(guarded: Served, said: bytes) -> None:
    clients = guarded.server._relay
    with connected(guarded) as connection:
        port = connection.getsockname()[1]
        connection.sendall(said)
        until(lambda: port in ports(clients.clients))
    until(lambda: port not in ports(clients.clients) | ports(clients._by_name.values()))


Use = Callable[[Relay, ClientConnection, socket.socket], Awaitable[None]]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Use], None]:
    """Runs something with one connection, of which it is given both ends."""

    async def connect(use: Use) -> None:
        with listen("127.0.0.1", 0) as server, socket.create_connection(server.getsockname()) as client:
            both = Relay()
            made = ClientConnection(both, both._unauthenticated)
            accepted = server.accept()[0]
            await asyncio.get_running_loop().connect_accepted_socket(lambda: made, accepted)
            await use(both, made, client)

    def run(use: Use) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(connect(use))

    return run


@pytest.mark.parametrize("is_known", [False, True])
def test_a_client_that_does_not_read_is_disconnected(
    run: Callable[[Use], None], monkeypatch: pytest.MonkeyPatch, is_known: bool
) -> None:
    monkeypatch.setattr(listener, "STALLED_SECONDS", 0.05)

    async def use(both: Relay, made: ClientConnection, client: socket.socket) -> None:
        if is_known:
            made.authenticated()
        made.send(bytes(16 * MIB))
        await made.closed
        assert both.clients == set()

    run(use)


def test_a_client_that_ends_its_side_has_a_moment_to_read_the_rest(
    run: Callable[[Use], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "CLOSE_SECONDS", 0.05)

    async def use(both: Relay, made: ClientConnection, client: socket.socket) -> None:
        made.authenticated()
        made.send(bytes(16 * MIB))
        client.shutdown(socket.SHUT_WR)
        await made.closed

    run(use)


def test_what_comes_for_a_client_that_has_gone_is_dropped(run: Callable[[Use], None]) -> None:
    async def use(both: Relay, made: ClientConnection, client: socket.socket) -> None:
        client.close()
        await made.closed
        made.send(b"x")
        made.authenticated()
        made.close()

    run(use)


def test_a_service_without_a_temporary_directory_does_not_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with (
        pytest.raises(UnavailableError, match="cannot create a socket in the temporary directory"),
        serving_both(tmp_path / "sessions", grpc="1", grpc_port="0"),
    ):
        pass


def test_a_client_is_known_once_it_has_shown_a_key(guarded: Served) -> None:
    unknown = guarded.server._relay._unauthenticated._connections
    with grpc.insecure_channel(guarded.server.address, [("grpc.use_local_subchannel_pool", 1)]) as channel:
        call: Any = channel.unary_unary("/grpc.health.v1.Health/Check")  # Any: bytes for bytes
        before = len(unknown)
        call(b"", timeout=SECONDS)
        assert len(unknown) == before + 1
        listing: Any = channel.unary_unary("/carrel.v1.WorkspaceService/ListSessions")
        key = ("authorization", f"Bearer {guarded.key('known')}")
        listing(messages.ListSessionsRequest().SerializeToString(), metadata=(key,), timeout=SECONDS)
        assert len(unknown) == before


def test_nothing_of_the_socket_is_left_in_the_file_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / ("x" * 150)  # longer than the address of a Unix socket
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    before = set(os.listdir("/proc/self/fd"))
    with serving(tmp_path / "sessions") as made:
        made.call("ListSessions", messages.ListSessionsRequest())
        assert list(place.iterdir()) == []
    left = set(os.listdir("/proc/self/fd")) - before
    assert not [fd for fd in left if "carrel-grpc" in _target(fd)]


def _target(fd: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{fd}")
    except FileNotFoundError:
        return ""


def test_a_port_that_is_taken_is_named() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            UnavailableError, match=rf"cannot listen at 127\.0\.0\.1 port {port}: Address already"
        ):
            listen("127.0.0.1", port)
