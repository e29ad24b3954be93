"""Failures on the way to a service, and the requests that are retried."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from carrel import Client, connect
from carrel.errors import (
    AccessError,
    LimitError,
    RoleDeniedError,
    SessionMissingError,
    UnauthenticatedError,
    UnreachableError,
)
from carrel.fronts.http.handlers.server_sent_events import QUIET_SECONDS
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.remote.transport.http_connection import AsyncHttpConnection, BlockingHttpConnection
from carrel.remote.workspace import RemoteWorkspace
from carrel.service.authentication.key_store import KeyStore, NewKey
from carrel.sessions.manager import new_id
from tests.remote.driving import DrivenClient
from tests.remote.serving import Serving
from tests.remote.stand_ins import answer, cuts, listening, says

KEY = "carrel_nobody-knows-this"
SESSION = json.dumps(
    {
        "session_id": "s",
        "created_ns": 1,
        "used_ns": 1,
        "ttl_seconds": None,
        "role": None,
        "labels": {},
        "limits": {},
    }
).encode()
EMPTY_STREAM = answer("200 OK", b": nothing\n\n", "Content-Type: text/event-stream")


def busy(seconds: float) -> bytes:
    error = {"code": "limit.rate", "message": "too many", "path": None, "retry": True}
    body = json.dumps({"error": {**error, "retry_after_seconds": seconds}}).encode()
    return answer("429 Too Many Requests", body, "Retry-After: 1")


@pytest.fixture(params=["http", "grpc", "http awaited", "grpc awaited"])
def opened(request: pytest.FixtureRequest) -> Callable[[str], Any]:
    """Opens a client of every kind."""
    protocol, _, awaited = request.param.partition(" ")

    @contextmanager
    def open_client(target: str) -> Iterator[Any]:
        url = f"{protocol}://{target}"
        with DrivenClient(url, key=KEY) if awaited else connect(url, key=KEY) as client:
            yield client

    return open_client


def test_no_service_is_told_with_the_address_and_what_to_check(opened: Callable[[str], Any]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        target = f"127.0.0.1:{taken.getsockname()[1]}"
    with opened(target) as client, pytest.raises(UnreachableError, match="carrel serve") as caught:
        client.open("s")
    assert isinstance(caught.value, ConnectionError)
    assert caught.value.code == "service.unreachable"
    assert target in str(caught.value)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "said",
    [
        answer("200 OK", b"<html>hello</html>"),
        answer("200 OK", b"[]"),
        answer("200 OK", b'{"session_id": 5}'),
        answer("502 Bad Gateway", b"<html>sorry</html>"),
        answer("502 Bad Gateway", b'{"error": "text"}'),
        answer("301 Moved Permanently", b"", "Location: https://elsewhere"),
        b"not http at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
        b"",
    ],
)
def test_what_is_no_service_is_told_as_such(said: bytes) -> None:
    with listening(says(said)) as target, Client(f"http://{target}", key=KEY) as client:
        with pytest.raises(UnreachableError) as caught:
            client.open("s")
        assert target in str(caught.value) or "cannot be parsed" in str(caught.value)


def test_a_service_that_says_when_to_come_back_is_asked_again() -> None:
    said = busy(0), busy(0.01), answer("200 OK", SESSION)
    with listening(says(*said)) as target, Client(f"http://{target}") as client:
        assert client.open("s").session_id == "s"


@pytest.mark.parametrize(("retries", "seconds"), [(0, 0.0), (1, 0.0), (5, 3600.0)])
def test_nobody_is_asked_more_often_than_that_or_waits_for_ever(retries: int, seconds: float) -> None:
    said = [busy(seconds)] * (1 if seconds else retries + 1)
    serve = says(*said, answer("200 OK", SESSION))
    with listening(serve) as target, Client(f"http://{target}", retries=retries) as client:
        with pytest.raises(LimitError, match="too many") as caught:
            client.open("s")
        assert caught.value.code == "limit.rate"


@pytest.mark.parametrize("seconds", ["soon", -1, None, [1]])
def test_a_time_to_come_back_that_is_none_is_not_waited_for(seconds: object) -> None:
    error = {"code": "limit.rate", "message": "too often", "retry_after_seconds": seconds}
    refusal = answer("429 Too Many Requests", json.dumps({"error": error}).encode())
    with (
        listening(says(refusal)) as target,
        Client(f"http://{target}") as client,
        pytest.raises(LimitError, match="too often"),
    ):
        client.open("s")


def test_a_stream_that_was_refused_for_now_is_begun_again() -> None:
    said = answer("200 OK", SESSION), busy(0), answer("200 OK", b"content"), busy(0), busy(0), busy(0)
    with listening(says(*said)) as target, Client(f"http://{target}") as client:
        workspace = client.open("s")
        assert list(workspace.read_chunks("f")) == [b"content"]
        with pytest.raises(LimitError, match="too many"):
            list(workspace.read_chunks("f"))


def test_a_service_that_says_nothing_is_given_up() -> None:
    def silent(connection: socket.socket, number: int) -> None:
        while connection.recv(2**16):
            pass

    with listening(silent) as target:
        for protocol in ("http", "grpc"):
            with Client(f"{protocol}://{target}", timeout=0.2) as client:
                with pytest.raises((LimitError, UnreachableError)) as caught:
                    client.open("s")
                assert caught.value.code in {"limit.time", "service.unreachable"}
                assert target in str(caught.value)


class _Silent(grpc.GenericRpcHandler):
    """Has every session, and answers nothing about files."""

    def __init__(self, over: threading.Event) -> None:
        self._over = over

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any]:
        if "WorkspaceService" in handler_call_details.method:
            known = messages.SessionResponse(session_json=SESSION.decode()).SerializeToString()
            return grpc.unary_unary_rpc_method_handler(lambda request, context: known)
        return grpc.stream_stream_rpc_method_handler(self._wait)

    def _wait(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        next(requests)
        self._over.wait(60)
        yield b""


@pytest.mark.parametrize("kind", [Client, DrivenClient])
@pytest.mark.parametrize(
    "work",
    [
        lambda files: files.write("f", b"x"),
        lambda files: files.write("f", bytes(2**24)),
        lambda files: files.read("f"),
        lambda files: list(files.read_chunks("f")),
        lambda files: files.extract(b"x", "."),
    ],
    ids=["write", "large write", "read", "read in chunks", "extract"],
)
def test_a_service_that_falls_silent_in_the_middle_of_a_stream_is_given_up(
    kind: Callable[..., Any], work: Callable[[Any], object]
) -> None:
    over = threading.Event()
    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((_Silent(over),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        with kind(f"grpc://127.0.0.1:{port}", timeout=0.5) as client:
            files = client.open("s")
            with pytest.raises(LimitError, match="did not answer in time") as caught:
                work(files)
        assert caught.value.code == "limit.time"
    finally:
        over.set()
        server.stop(0).wait()


@pytest.mark.parametrize("kind", [BlockingHttpConnection, AsyncHttpConnection])
def test_a_stream_may_be_silent_for_longer_than_an_answer_may_take(
    kind: type[BlockingHttpConnection | AsyncHttpConnection],
) -> None:
    line = kind("http://localhost:1", {}, timeout=2.0)
    whole, stream = (line.request("GET", "/", headers={}, is_stream=each) for each in (False, True))
    assert whole.extensions["timeout"]["read"] == 2.0
    assert stream.extensions["timeout"]["read"] > 2 * QUIET_SECONDS
    assert stream.extensions["timeout"]["connect"] == 2.0


def test_output_goes_on_after_a_connection_that_broke(service: Serving) -> None:
    def midway(seen: bytes) -> bool:
        return b"event: stdout" in seen

    # Each line is printed after the one before has arrived here, so that every cut is in the middle.
    code = b"import os\nfor n in range(6):\n  print(n, flush=True)\n  while not os.path.exists(str(n)): pass"
    serve = cuts(service.http.removeprefix("http://"), midway, 2)
    with (
        listening(serve) as target,
        Client(f"http://{target}", key=service.token) as client,
        Client(service.http) as direct,
    ):
        told: list[bytes] = []
        workspace = client.create()
        beside = direct.open(workspace.session_id)

        def take(_: str, data: bytes) -> None:
            told.append(data)
            for number in data.split():
                beside.write(number.decode(), "")

        result = workspace.shell().run("python -", stdin=code, on_output=take)
        assert result.exit_code == 0
        assert b"".join(told).split() == [b"%d" % number for number in range(6)]


@pytest.mark.parametrize("response", [b"", EMPTY_STREAM])
def test_a_command_that_may_have_been_run_is_not_run_again(response: bytes) -> None:
    _assert_sent_once(response, lambda workspace: workspace.shell().run("echo x"))


def test_a_change_that_may_have_been_made_is_not_made_again() -> None:
    _assert_sent_once(b"", lambda workspace: workspace.append("log", "x"))


def _assert_sent_once(response: bytes, work: Callable[[RemoteWorkspace], object]) -> None:
    asked: list[int] = []
    serve = says(answer("200 OK", SESSION), response)

    def counted(connection: socket.socket, number: int) -> None:
        asked.append(number)
        serve(connection, number)

    with listening(counted) as target, Client(f"http://{target}") as client:
        workspace = client.open("s")
        asked.clear()
        with pytest.raises(UnreachableError, match="broke before the response was complete"):
            work(workspace)
        assert len(asked) == 1


def test_changes_are_followed_over_connections_that_break(
    service: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrel.remote.async_workspace._FIRST_PAUSE_SECONDS", 0.001)

    def midway(seen: bytes) -> bool:
        return seen.count(b"event: change") >= 3

    serve = cuts(service.http.removeprefix("http://"), midway, 2)
    with listening(serve) as target, Client(f"http://{target}", key=service.token) as client:
        workspace = client.create()
        paths = []
        workspace.write("0", "")
        for event in workspace.follow():
            paths.append(event.path)
            if len(paths) == 12:
                break
            workspace.write(str(len(paths)), "")
        assert paths == [str(number) for number in range(12)]


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_changes_are_followed_over_a_restart_of_the_service(
    service: Serving, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrel.remote.async_workspace._FIRST_PAUSE_SECONDS", 0.001)
    scheme, target = service.url(protocol).split("://")
    is_away = threading.Event()
    passes = cuts(target, lambda seen: is_away.is_set(), 2**31)
    refused: list[int] = []

    def serve(connection: socket.socket, number: int) -> None:
        if not is_away.is_set() or len(refused) > (6 if protocol == "http" else 2):
            is_away.clear()
            return passes(connection, number)
        return refused.append(number)

    with (
        listening(serve) as through,
        Client(f"{scheme}://{through}", key=service.token) as client,
        Client(service.http) as near,
    ):
        workspace = client.create()
        workspace.write("0", "")
        followed = workspace.follow()
        paths = [next(followed).path]
        is_away.set()
        for name in ("1", "2"):
            near.open(workspace.session_id).write(name, "")
            paths.append(next(followed).path)
        assert paths == ["0", "1", "2"]
        assert refused


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_following_ends_with_the_session_also_if_another_gets_its_name(
    service: Serving, protocol: str
) -> None:
    with Client(service.url(protocol)) as client:
        workspace = client.create()
        workspace.write("a", "")
        followed = workspace.follow()
        assert next(followed).path == "a"
        client.delete_workspace(workspace.session_id)
        client.create(workspace.session_id).write("b", "")
        assert list(followed) == []


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_following_ends_with_the_session(service: Serving, protocol: str) -> None:
    with Client(service.url(protocol)) as client:
        workspace = client.create()
        workspace.write("a", "")
        followed = workspace.follow()
        assert next(followed).path == "a"
        client.delete_workspace(workspace.session_id)
        assert list(followed) == []


@pytest.fixture(scope="module")
def key(service: Serving) -> Iterator[str]:
    """The key of a developer who may also act as a generalist."""
    keys = KeyStore(service.directory)
    yield keys.create(NewKey(name=f"of-{new_id()}", role="developer", roles=("generalist",)))[1]
    keys.close()


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_key_says_who_calls_and_as_what(service: Serving, key: str, protocol: str) -> None:
    url = service.url(protocol)
    with Client(url, key=KEY) as client, pytest.raises(UnauthenticatedError) as caught:
        client.list_workspaces()
    assert KEY not in str(caught.value)
    with Client(url) as operator:
        hidden = operator.create()
    with Client(url, key=key) as client:
        with pytest.raises(SessionMissingError):
            client.open(hidden.session_id)
        workspace = client.create()
        workspace.write("a", "1")
        assert client.list_workspaces() == [workspace.session_id]
        assert workspace.toolbox("generalist").call("file_read", {"path": "a"}).output == "1"
        assert workspace.toolbox("researcher").call("file_read", {"path": "a"}).code == "access.role"
        client.delete_workspace(workspace.session_id)


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_client_acts_in_the_role_that_it_was_given(service: Serving, key: str, protocol: str) -> None:
    url = service.url(protocol)
    with Client(url, key=key) as client, Client(url, key=key, role="generalist") as reader:
        workspace = client.create()
        workspace.write("a", "1")
        assert reader.open(workspace.session_id).read("a") == b"1"
        with pytest.raises((RoleDeniedError, AccessError)):
            reader.open(workspace.session_id).write("a", "2")
        client.delete_workspace(workspace.session_id)
    with Client(url, key=key, role="researcher") as stranger, pytest.raises(RoleDeniedError):
        stranger.list_workspaces()


def test_a_tool_of_a_service_that_went_away_says_so_and_does_nothing_here() -> None:
    with listening(says(answer("200 OK", SESSION))) as target:
        client = Client(f"http://{target}")
        toolbox = client.open("s").toolbox("developer")
    result = toolbox.call("file_write", {"path": "a", "content": "x"})
    assert (result.success, result.code) == (False, "service.unreachable")
    assert "carrel serve" in str(result.error)
    client.close()


def test_what_is_not_installed_is_told_with_what_to_do() -> None:
    code = """
import sys
import threading
sys.modules["httpx2"] = sys.modules["grpc"] = None
import carrel
for url in ("http://localhost:1", "grpc://localhost:1"):
    for kind in (carrel.Client, carrel.AsyncClient, carrel.connect):
        try:
            kind(url)
        except ImportError as error:
            assert "pip install 'carrel[client]'" in str(error), error
        else:
            raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_client_over_http_loads_no_grpc_and_the_other_way_round(tmp_path: Path) -> None:
    code = """
import sys
import threading
import carrel
carrel.Client("{}://localhost:1").close()
print(sorted({{"grpc", "httpx2", "wasmtime", "starlette"}} & set(sys.modules)))
"""
    for scheme, wanted in (("http", "['httpx2']"), ("grpc", "['grpc']")):
        run = [sys.executable, "-c", code.format(scheme)]
        assert subprocess.run(run, check=True, capture_output=True, text=True).stdout.strip() == wanted


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_session_that_is_gone_is_missing_to_whoever_follows_it(service: Serving, protocol: str) -> None:
    with Client(service.url(protocol)) as client:
        workspace = client.create()
        client.delete_workspace(workspace.session_id)
        with pytest.raises(SessionMissingError):
            workspace.changes()
        with pytest.raises(SessionMissingError):
            next(workspace.follow())
