"""The server itself: what it offers, how much it takes, and how it ends."""

from __future__ import annotations

import asyncio
import json
import logging
import queue
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from carrel.errors import CarrelError, LimitError, StoppingError
from carrel.fronts.grpc import methods as methods_module
from carrel.fronts.grpc.call import RpcCall
from carrel.fronts.grpc.methods import METHODS
from carrel.fronts.grpc.server import MESSAGE_BYTES
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.remote.proto.carrel_v1_pb2_grpc import WorkspaceServiceStub
from carrel.remote.transport.grpc_channel import ERROR_METADATA, translate_error
from tests.fronts.grpc.handlers.test_files import until
from tests.fronts.grpc.serving import SECONDS, Served, serving

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
ONE = messages.SessionRequest(session_id="s")


def test_every_method_of_the_proto_file_is_answered() -> None:
    services = messages.DESCRIPTOR.services_by_name
    assert {name: [each.name for each in row.methods] for name, row in services.items()} == {
        name: list(row) for name, row in METHODS.items()
    }


def test_health_is_told_for_the_whole_and_for_each_service(served: Served) -> None:
    health = health_pb2_grpc.HealthStub(served.channel)
    for name in ("", "carrel.v1.SandboxService", "carrel.v1.WorkspaceService"):
        answer = health.Check(health_pb2.HealthCheckRequest(service=name), timeout=SECONDS)
        assert answer.status == SERVING
    with pytest.raises(grpc.RpcError) as caught:
        health.Check(health_pb2.HealthCheckRequest(service="nope"), timeout=SECONDS)
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


def test_reflection_tells_what_the_proto_file_says(served: Served) -> None:
    database = ProtoReflectionDescriptorDatabase(served.channel)
    assert {"carrel.v1.SandboxService", "carrel.v1.WorkspaceService", "grpc.health.v1.Health"} <= set(
        database.get_services()
    )
    found = DescriptorPool(database).FindServiceByName("carrel.v1.SandboxService")
    own = messages.DESCRIPTOR.services_by_name["SandboxService"]
    assert [each.name for each in found.methods] == [each.name for each in own.methods]


def test_a_service_that_is_about_to_end_says_so_to_all_who_wait(tmp_path: Path) -> None:
    with serving(tmp_path / "sessions") as made:
        health = health_pb2_grpc.HealthStub(made.channel)
        watching = health.Watch(health_pb2.HealthCheckRequest(), timeout=SECONDS)
        assert next(watching).status == SERVING
        made.call("EnsureSession", ONE)
        # A request that follows has no end of its own, and one that does not come to its end takes too long.
        following = made.stub("Changes")(messages.ChangesRequest(session_id="s", follow=True))
        start = messages.FileWriteStreamRequest(start=messages.FileWriteStart(session_id="s", path="half"))
        sent: queue.Queue[Any] = queue.Queue()
        sent.put(start)
        writing = made.stub("FileWriteStream").future(iter(sent.get, None), timeout=SECONDS)
        until(lambda: made.drafts() != [])
        ending = asyncio.run_coroutine_threadsafe(made.server.stop(1), made.loop)
        assert next(watching).status == NOT_SERVING
        with pytest.raises(grpc.RpcError):
            list(following)
        assert told(following, made).code == "service.stopping"
        assert told(writing.exception(SECONDS), made).code == "service.stopping"
        sent.put(None)
        ending.result(SECONDS)
        assert made.refusal("ListSessions", messages.ListSessionsRequest())[1].code == "service.unreachable"
        assert not made.path("s", "half").exists()
        assert made.drafts() == []


def test_what_comes_while_the_service_ends_is_refused_and_what_runs_is_finished(tmp_path: Path) -> None:
    with serving(tmp_path / "sessions") as made:
        made.call("EnsureSession", ONE)
        sent: queue.Queue[Any] = queue.Queue()
        start = messages.FileWriteStart(session_id="s", path="whole")
        sent.put(messages.FileWriteStreamRequest(start=start))
        writing = made.stub("FileWriteStream").future(iter(sent.get, None), timeout=SECONDS)
        until(lambda: made.drafts() != [])
        ending = asyncio.run_coroutine_threadsafe(made.server.stop(SECONDS), made.loop)
        until(lambda: is_refused(made))
        sent.put(messages.FileWriteStreamRequest(data=b"x"))
        sent.put(messages.FileWriteStreamRequest(end=True))
        sent.put(None)
        assert writing.result(SECONDS).info_json
        ending.result(SECONDS)
        assert made.path("s", "whole").read_bytes() == b"x"


def told(failure: Any, served: Served) -> CarrelError:
    return translate_error(failure, served.address)


def is_refused(served: Served) -> bool:
    try:
        served.call("ListSessions", messages.ListSessionsRequest())
    except StoppingError:
        return True
    return False


@pytest.fixture(scope="module")
def tight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service that takes on little."""
    sessions = tmp_path_factory.mktemp("tight") / "sessions"
    with serving(
        sessions,
        CARREL_SERVE_MAX_REQUESTS="2",
        CARREL_SERVE_MAX_BODY_MB="1",
        CARREL_SERVE_TIMEOUT_SECONDS="1",
    ) as made:
        made.call("EnsureSession", ONE)
        yield made


def test_a_message_that_is_too_large_is_refused(tight: Served) -> None:
    request = messages.FileWriteRequest(session_id="s", path="a", content="x" * 2**21)
    status, error = tight.refusal("FileWrite", request)
    assert (status, type(error)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, LimitError)
    tight.call("ListSessions", messages.ListSessionsRequest())


def test_no_message_is_larger_than_four_mib_however_large_a_request_may_be(
    served: Served, session: str
) -> None:
    request = messages.FileWriteRequest(session_id=session, path="a", content="x" * MESSAGE_BYTES)
    status, error = served.refusal("FileWrite", request)
    assert (status, type(error)) == (grpc.StatusCode.RESOURCE_EXHAUSTED, LimitError)
    request.content = "x" * (MESSAGE_BYTES - 100)
    served.call("FileWrite", request)


def test_a_call_without_a_message_is_told_so(served: Served) -> None:
    call: Any = served.channel.stream_unary("/carrel.v1.WorkspaceService/ListSessions")
    with pytest.raises(grpc.RpcError) as caught:
        call(iter(()), timeout=SECONDS)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_more_calls_than_there_may_be_at_once_are_refused_and_not_kept_waiting(tight: Served) -> None:
    request = messages.ChangesRequest(session_id="s", follow=True)
    following = [tight.stub("Changes")(request, timeout=SECONDS) for _ in range(2)]
    tight_refusal = None
    for _ in range(1000):
        try:
            tight.call("ListSessions", messages.ListSessionsRequest())
        except CarrelError as error:
            tight_refusal = error
            break
    for each in following:
        each.cancel()
    assert isinstance(tight_refusal, LimitError)
    assert tight_refusal.code == "limit.requests"


def test_an_error_fits_into_what_any_client_takes(served: Served, session: str) -> None:
    """A client that is not ours refuses metadata of more than 8 KiB, and then the error with them."""
    path = "ü/" * 1300
    request = messages.CallRequest(
        session_id=session, operation="stat", arguments_json=json.dumps({"path": path})
    )
    with grpc.insecure_channel(served.server.address, (("grpc.enable_http_proxy", 0),)) as channel:
        stub = WorkspaceServiceStub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            stub.Call(request, timeout=SECONDS)
    failure: Any = caught.value  # a call too, which no type says
    assert failure.code() is grpc.StatusCode.NOT_FOUND
    error = translate_error(failure, served.address)
    assert (error.code, error.path) == ("path.missing", path[:256])
    _, whole = served.refusal("Call", request)
    assert (whole.code, whole.path) == ("path.missing", path)


async def _slow(call: RpcCall, request: messages.SessionRequest) -> messages.EmptyResponse:
    await asyncio.Event().wait()
    raise AssertionError


async def _broken(call: RpcCall, request: messages.SessionRequest) -> messages.EmptyResponse:
    raise KeyError("a secret of the host: /etc/shadow")


@pytest.fixture
def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A service of which one method never ends, and another fails as none should."""
    methods = {**METHODS["WorkspaceService"], "GetSession": _slow, "EnsureSession": _broken}
    monkeypatch.setitem(methods_module.METHODS, "WorkspaceService", methods)
    with serving(tmp_path / "sessions", CARREL_SERVE_TIMEOUT_SECONDS="1") as made:
        yield made


def test_a_call_that_takes_too_long_is_ended(odd: Served) -> None:
    status, error = odd.refusal("GetSession", ONE)
    assert (status, error.code) == (grpc.StatusCode.DEADLINE_EXCEEDED, "limit.time")


def test_a_mistake_of_ours_tells_nothing_about_itself(odd: Served, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "carrel"):
        stub = odd.stub("EnsureSession")
        with pytest.raises(grpc.RpcError) as caught:
            stub(ONE, timeout=SECONDS)
    failure: Any = caught.value  # a call too, which no type says
    assert failure.code() is grpc.StatusCode.INTERNAL
    metadata: dict[str, Any] = dict(failure.trailing_metadata())
    told = f"{failure.details()}{metadata[ERROR_METADATA]!r}"
    assert "unexpectedly" in told
    assert "shadow" not in told
    assert "KeyError" not in told
    logged = "".join(each.getMessage() for each in caplog.records)
    assert "KeyError" in logged
    assert "shadow" not in logged
