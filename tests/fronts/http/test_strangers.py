"""Clients that have not shown a key: how many there may be, for how long, and how much they may send."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
import uvloop

from carrel.fronts import listener
from carrel.fronts.http import protocol
from carrel.fronts.http.request import Request
from tests.fronts.http.front import Front, served
from tests.fronts.http.test_disconnect import eventually
from tests.fronts.http.test_limits import head_and_body, received, route
from tests.fronts.test_server_tls import Authority, write

KNOWN = b"GET /api/v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
UNKNOWN = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@pytest.fixture(params=["plain", "tls"])
def narrow(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Front]:
    """A service that takes two strangers."""
    monkeypatch.setattr(listener, "MAX_UNAUTHENTICATED", 2)
    monkeypatch.setattr(listener, "GRACE_SECONDS", 0)
    with secure(tmp_path) if request.param == "tls" else served(tmp_path / "sessions") as front:
        yield front


def secure(
    directory: Path, loop_factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
) -> AbstractContextManager[Front]:
    """A service over TLS."""
    write(directory, *Authority().issue(1))
    cert, key = (str(directory / name) for name in ("cert.pem", "key.pem"))
    return served(directory / "sessions", tls_cert=cert, tls_key=key, loop_factory=loop_factory)


def is_ended(connection: socket.socket) -> bool:
    """Wait for what the other side sends next, and say whether that is the end."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def connected(front: Front) -> socket.socket:
    connection = socket.create_connection(front.address, timeout=30)
    if front.url.startswith("https"):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(connection)
    return connection


def answered(connection: socket.socket, request: bytes) -> bytes:
    """The status of the answer to *request*, which is JSON."""
    connection.sendall(request)
    answer = b""
    while not answer.endswith(b"}"):
        piece = connection.recv(2**16)
        assert piece, "the connection was ended"
        answer += piece
    return answer[9:12]


def test_of_too_many_strangers_the_first_is_disconnected(narrow: Front) -> None:
    with ExitStack() as stack:
        known, *strangers = [stack.enter_context(connected(narrow)) for _ in range(2)]
        assert answered(known, KNOWN) == b"200"
        strangers.append(stack.enter_context(connected(narrow)))
        for each in strangers:
            assert answered(each, UNKNOWN) == b"200"
        strangers.append(stack.enter_context(connected(narrow)))
        assert is_ended(strangers[0])
        for each in (known, *strangers[1:]):
            assert answered(each, UNKNOWN) == b"200"


def test_strangers_that_come_at_once_wait_for_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "MAX_UNAUTHENTICATED", 2)
    monkeypatch.setattr(listener, "GRACE_SECONDS", 3600)
    monkeypatch.setattr(listener, "CHECK_SECONDS", 0)
    with served(tmp_path / "sessions") as front, ExitStack() as stack:
        first, second, third = (stack.enter_context(connected(front)) for _ in range(3))
        third.sendall(KNOWN)
        for _ in range(50):
            assert answered(second, UNKNOWN) == b"200"
        assert answered(first, KNOWN) == b"200"
        assert answered(third, KNOWN) == b"200"


def test_a_handshake_is_one_of_a_stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MAX_UNAUTHENTICATED", 2)
    monkeypatch.setattr(listener, "GRACE_SECONDS", 0)
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS", 3600)
    with secure(tmp_path) as front, ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(front.address, timeout=30)) for _ in range(3)]
        assert is_ended(silent[0])
        assert answered(stack.enter_context(connected(front)), KNOWN) == b"200"


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01\x02\x00"])
def test_a_handshake_that_is_not_finished_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(listener, "HANDSHAKE_SECONDS", 0.1)
    with (
        secure(tmp_path) as front,
        socket.create_connection(front.address, timeout=30) as connection,
    ):
        connection.sendall(said)
        assert is_ended(connection)


def test_a_head_has_not_very_many_fields(front: Front) -> None:
    fields = b"a:\r\n" * (protocol.HEAD_FIELDS + 1)
    status, document = head_and_body(received(front, b"GET /healthz HTTP/1.1\r\n" + fields + b"\r\n"))
    assert status == 431
    assert "more than 128 fields" in str(document)


def test_of_requests_that_are_sent_at_once_few_are_read_before_they_are_answered(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 0
    complete = protocol.HttpProtocol.on_headers_complete

    def counted(self: protocol.HttpProtocol) -> None:
        nonlocal most
        complete(self)
        most = max(most, len(self._unanswered))

    monkeypatch.setattr(protocol.HttpProtocol, "on_headers_complete", counted)
    last = UNKNOWN.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    with front.raw(UNKNOWN * 500 + last) as connection, connection.makefile("rb") as stream:
        assert stream.read().count(b"HTTP/1.1 200 OK") == 501
    assert 1 < most <= protocol.AHEAD


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def loop_factory(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    found: Callable[[], asyncio.AbstractEventLoop] = request.param
    return found


def test_a_client_that_goes_away_over_tls_is_no_failure(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    body = b'{"command": "sleep 1000"}'
    path = b"/api/v1/sessions/s HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    head = path.replace(b" ", b"/exec ", 1) + b"Content-Length: %d\r\n\r\n" % len(body)
    with secure(tmp_path, loop_factory) as front:
        with connected(front) as connection:
            assert answered(connection, b"PUT " + path + b"\r\n") == b"200"
            connection.sendall(b"POST " + head + body)
            eventually(lambda: len(front.service.executions) == 1)
        eventually(lambda: len(front.service.executions) == 0)
    assert [record for record in caplog.records if record.name == "asyncio"] == []


def test_a_client_that_goes_away_before_it_is_known_is_no_failure(
    tmp_path: Path, loop_factory: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    marked: Future[None] = Future()

    async def authenticate_late(request: Request) -> None:
        await request.wait_disconnected()
        try:
            listener.mark_authenticated(request.scope)
            marked.set_result(None)
        except Exception as error:
            marked.set_exception(error)

    late = replace(route("late", authenticate_late), is_open=True)
    with served(tmp_path / "sessions", more_routes=(late,), loop_factory=loop_factory) as front:
        front.raw(b"GET /late HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").close()
        marked.result(60)
