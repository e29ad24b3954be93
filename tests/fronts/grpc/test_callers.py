"""Who may call: the operator of this machine, and whoever has a key."""

from __future__ import annotations

import asyncio
import json
import logging
import queue
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from carrel.errors import UnauthenticatedError
from carrel.fronts.grpc import dispatcher
from carrel.fronts.grpc.dispatcher import MAX_READING
from carrel.fronts.grpc.introspection import READERS
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.remote.transport.grpc_channel import caller_metadata
from tests.fronts.grpc.handlers.test_files import until
from tests.fronts.grpc.serving import SECONDS, Served, serving

HERE = messages.SessionRequest(session_id="s")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that asks everybody for a key, and lets nobody call often."""
    sessions = tmp_path_factory.mktemp("guarded") / "sessions"
    with serving(sessions, CARREL_SERVE_REQUIRE_KEY="1", CARREL_SERVE_RATE_PER_MINUTE="5") as made:
        yield made


@pytest.mark.parametrize(
    "said",
    [
        None,
        "",
        "Bearer",
        "Bearer nonsense",
        "Bearer carrel_aaaaaaaa_bbbbbbbbbbbbbbbb",
        "Basic dXNlcjpwYXNz",
    ],
)
def test_nobody_is_let_in_without_a_key_where_one_is_needed(guarded: Served, said: str | None) -> None:
    metadata = () if said is None else (("authorization", said),)
    for method in ("GetSession", "FileRead", "FileReadStream"):
        request = {
            "GetSession": HERE,
            "FileRead": messages.FileReadRequest(session_id="s", path="a"),
            "FileReadStream": messages.FileReadStreamRequest(session_id="s", path="a"),
        }[method]
        nobody = Served(
            server=guarded.server,
            service=guarded.service,
            loop=guarded.loop,
            keys=guarded.keys,
            sessions=guarded.sessions,
            channel=guarded.channel,
            metadata=metadata,
        )
        status, error = nobody.refusal(method, request)
        assert (status, type(error)) == (grpc.StatusCode.UNAUTHENTICATED, UnauthenticatedError)
    assert not guarded.path("s").exists()


def test_an_upload_by_nobody_is_refused_before_it_is_read(guarded: Served) -> None:
    start = messages.FileWriteStart(session_id="s", path="a")
    requests = iter([messages.FileWriteStreamRequest(start=start)])
    assert guarded.refusal("FileWriteStream", requests)[0] is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize(
    "method", ["SandboxService/FileWrite", "SandboxService/FileReadStream", "WorkspaceService/Call"]
)
def test_nobody_is_refused_later_than_by_the_head_of_a_call(guarded: Served, method: str) -> None:
    """No message comes at all, so that none can have been read."""
    call: Any = guarded.channel.stream_stream(f"/carrel.v1.{method}")
    sent: queue.Queue[bytes | None] = queue.Queue()
    answers = call(iter(sent.get, None), timeout=SECONDS)
    with pytest.raises(grpc.RpcError) as caught:
        next(answers)
    sent.put(None)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_a_call_that_is_refused_while_its_first_message_is_sent_ends_with_the_status(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = dispatcher._send

    async def refused(*args: Any, **options: Any) -> None:
        sending = asyncio.ensure_future(send(*args, **options))
        await asyncio.sleep(0)
        sending.cancel()
        await asyncio.wait([sending])
        raise UnauthenticatedError("revoked")

    mine = served.by(served.key("refused"))
    mine.call("CreateSession", messages.CreateSessionRequest(session_id="refused"))
    mine.call("FileWrite", messages.FileWriteRequest(session_id="refused", path="a", content="1"))
    request = messages.ChangesRequest(session_id="refused")
    monkeypatch.setattr(dispatcher, "_send", refused)
    stream = mine.stub("Changes")(request, metadata=mine.metadata, timeout=SECONDS)
    with pytest.raises(grpc.RpcError) as caught:
        list(stream)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_questions_that_do_not_come_make_room_for_others(guarded: Served) -> None:
    ask: Any = guarded.channel.stream_unary("/grpc.health.v1.Health/Check")
    reading = guarded.server._health._reading
    sent: queue.Queue[bytes | None] = queue.Queue()
    waiting = [ask.future(iter(sent.get, None), timeout=SECONDS)]
    until(lambda: bool(reading))
    waiting += [ask.future(iter(sent.get, None), timeout=SECONDS) for _ in range(READERS)]
    assert waiting[0].exception(SECONDS).code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    health = health_pb2_grpc.HealthStub(guarded.channel)
    answer = health.Check(health_pb2.HealthCheckRequest(), timeout=SECONDS)
    assert answer.status == health_pb2.HealthCheckResponse.SERVING
    for each in waiting:
        each.cancel()
        sent.put(None)
    until(lambda: not reading)


def test_anybody_may_ask_for_the_health_and_nobody_else_may_stay(guarded: Served) -> None:
    health = health_pb2_grpc.HealthStub(guarded.channel)
    request = health_pb2.HealthCheckRequest()
    assert health.Check(request, timeout=10).status == health_pb2.HealthCheckResponse.SERVING
    with pytest.raises(grpc.RpcError) as caught:
        next(health.Watch(request, timeout=10))
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    key = caller_metadata(guarded.key("watcher"))
    watching = health.Watch(request, metadata=key, timeout=10)
    assert next(watching).status == health_pb2.HealthCheckResponse.SERVING
    watching.cancel()
    asking = reflection_pb2_grpc.ServerReflectionStub(guarded.channel).ServerReflectionInfo
    question = reflection_pb2.ServerReflectionRequest(list_services="")
    with pytest.raises(grpc.RpcError) as caught:
        next(asking(iter([question]), timeout=10))
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED
    assert next(asking(iter([question]), metadata=key, timeout=10)).HasField("list_services_response")


def test_whoever_calls_too_often_is_told_when_to_come_back(guarded: Served) -> None:
    caller = guarded.by(guarded.key("often"))
    for _ in range(5):
        caller.call("ListSessions", messages.ListSessionsRequest())
    status, error = caller.refusal("ListSessions", messages.ListSessionsRequest())
    assert (status, error.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "limit.rate")
    assert getattr(error, "retry_after_seconds", 0) > 0


@pytest.mark.parametrize(
    "said",
    [
        ("x-forwarded-for", "203.0.113.5"),
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
    ],
)
def test_what_comes_through_a_proxy_or_a_web_page_is_not_the_operator(
    served: Served, said: tuple[str, str]
) -> None:
    request = messages.ListSessionsRequest()
    served.call("ListSessions", request)
    stub = served.stub("ListSessions")
    with pytest.raises(grpc.RpcError) as caught:
        stub(request, metadata=(said,), timeout=10)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_a_key_acts_in_its_role_and_on_sessions_of_its_own(served: Served) -> None:
    one, other = (served.by(served.key(name)) for name in ("ann", "bob"))
    one.call("EnsureSession", HERE)
    arguments = '{"path": "a", "data": "x"}'
    write = messages.CallRequest(session_id="s", operation="write", arguments_json=arguments)
    one.call("Call", write)
    assert served.path("s", "a", tenant="ann").read_text() == "x"
    missing = other.refusal("Call", write)
    there_is_none = messages.CallRequest(session_id="s2", operation="write", arguments_json=arguments)
    nothing = other.refusal("Call", there_is_none)
    assert missing[0] is nothing[0] is grpc.StatusCode.NOT_FOUND
    assert missing[1].message.replace("'s'", "") == nothing[1].message.replace("'s2'", "")
    assert json.loads(other.call("ListSessions", messages.ListSessionsRequest()).sessions_json) == []


def test_a_key_may_choose_among_its_roles(served: Served) -> None:
    key = served.key("chooser", "critic", roles=("developer",))
    write = messages.FileWriteRequest(session_id="s", path="a", content="x")
    assert served.by(key).call("FileWrite", write).code == "tool.unknown"
    assert served.by(key, "developer").call("FileWrite", write).success
    assert served.by(key, "generalist").call("FileWrite", write).code == "access.role"


def test_a_key_that_is_bound_to_a_session_sees_no_other(served: Served) -> None:
    bound = served.by(served.key("bound", session="mine"))
    bound.call("EnsureSession", messages.SessionRequest(session_id="mine"))
    assert bound.refusal("EnsureSession", HERE)[0] is grpc.StatusCode.NOT_FOUND


def test_who_stays_is_known_for_as_long_as_the_key_is_in_force(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrel.service.authentication.authenticator.AGAIN_SECONDS", 0.05)
    monkeypatch.setattr("carrel.service.authentication.key_store.FRESH_NS", 0)
    mine = served.by(served.key("stays"))
    mine.call("CreateSession", messages.CreateSessionRequest(session_id="mine"))
    request = messages.ChangesRequest(session_id="mine", follow=True)
    stream = mine.stub("Changes")(request, metadata=mine.metadata, timeout=SECONDS)
    mine.call("FileWrite", messages.FileWriteRequest(session_id="mine", path="a", content="1"))
    assert '"a"' in next(stream).events_json
    served.keys.revoke("stays")
    with pytest.raises(grpc.RpcError) as caught:
        next(stream)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_nobody_is_known_by_two_keys_at_once(served: Served) -> None:
    shown = tuple(("authorization", f"Bearer {served.key(name)}") for name in ("first", "second"))
    request = messages.ListSessionsRequest()
    for each in shown:
        served.stub("ListSessions")(request, metadata=(each,), timeout=SECONDS)
    with pytest.raises(grpc.RpcError) as caught:
        served.stub("ListSessions")(request, metadata=shown, timeout=SECONDS)
    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_one_caller_leaves_room_for_others(tmp_path: Path) -> None:
    with serving(tmp_path / "sessions", CARREL_SERVE_MAX_REQUESTS="16") as served:
        greedy, other = (served.by(served.key(name)) for name in ("greedy", "other"))
        greedy.call("CreateSession", messages.CreateSessionRequest(session_id="s"))
        greedy.call("FileWrite", messages.FileWriteRequest(session_id="s", path="a", content="1"))
        request = messages.ChangesRequest(session_id="s", follow=True)
        streams = [
            greedy.stub("Changes")(request, metadata=greedy.metadata, timeout=SECONDS) for _ in range(2)
        ]
        for stream in streams:
            next(stream)
        status, error = greedy.refusal("ListSessions", messages.ListSessionsRequest())
        assert (status, error.code) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "limit.requests")
        other.call("ListSessions", messages.ListSessionsRequest())
        for stream in streams:
            stream.cancel()
        until(lambda: not served.server._dispatcher._running)
        greedy.call("ListSessions", messages.ListSessionsRequest())


def test_messages_of_one_caller_are_read_few_at_a_time(tmp_path: Path) -> None:
    with serving(tmp_path / "sessions") as served:
        slow, other = (served.by(served.key(name)) for name in ("slow", "other"))
        ended = Event()

        def message() -> Iterator[bytes]:
            ended.wait(SECONDS)
            yield messages.ListSessionsRequest().SerializeToString()

        method = f"/{messages.DESCRIPTOR.services_by_name['WorkspaceService'].full_name}/ListSessions"
        send: Any = served.channel.stream_unary(method)  # Any: takes and gives bytes
        calls = [send.future(message(), metadata=slow.metadata) for _ in range(MAX_READING + 1)]
        until(lambda: any(turns.locked() for turns in served.server._dispatcher._read_slots.values()))
        until(lambda: len(served.server._dispatcher._running) == MAX_READING + 1)
        other.call("ListSessions", messages.ListSessionsRequest())
        ended.set()
        assert all(call.result(SECONDS) is not None for call in calls)
        until(lambda: not served.server._dispatcher._read_slots)


def test_the_log_tells_of_every_call_and_of_no_key(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    key = served.key("logged")
    with caplog.at_level(logging.INFO, "carrel.access"):
        served.by(key).call("EnsureSession", HERE)
        served.by(key).refusal("GetSession", messages.SessionRequest(session_id="x" * 500))
    lines = [json.loads(each.message) for each in caplog.records if each.name == "carrel.access"]
    assert [(each["method"], each["status"], each["code"], each["caller"]) for each in lines] == [
        ("/carrel.v1.WorkspaceService/EnsureSession", "OK", None, "logged"),
        ("/carrel.v1.WorkspaceService/GetSession", "INVALID_ARGUMENT", "session.invalid_id", "logged"),
    ]
    assert lines[0]["peer"] == "127.0.0.1"
    assert len(lines[1]["session"]) == 128
    assert key not in caplog.text


def test_a_place_that_other_machines_reach_needs_a_key(tmp_path: Path) -> None:
    with serving(tmp_path / "sessions", CARREL_SERVE_HOST="0.0.0.0") as made:
        assert (
            made.refusal("ListSessions", messages.ListSessionsRequest())[0] is grpc.StatusCode.UNAUTHENTICATED
        )
        made.by(made.key("someone")).call("ListSessions", messages.ListSessionsRequest())
