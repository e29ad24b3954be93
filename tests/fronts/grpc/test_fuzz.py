"""Whatever bytes and messages come, every method answers with a status of its own, and the server stays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given, settings
from hypothesis import strategies as st

from carrel.remote.proto import carrel_v1_pb2 as messages
from tests.fronts.grpc.serving import SECONDS, Served, serving

METHODS = [method for service in messages.DESCRIPTOR.services_by_name.values() for method in service.methods]
MISTAKES = (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN)
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "15"))


@pytest.fixture(scope="module")
def prey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with a session `s`, in which nothing may run for long."""
    sessions = tmp_path_factory.mktemp("prey") / "sessions"
    with serving(sessions, CARREL_SANDBOX="0", CARREL_MAX_SESSIONS="50") as made:
        made.call("EnsureSession", messages.SessionRequest(session_id="s"))
        yield made


def called(served: Served, method: MethodDescriptor, bodies: list[bytes]) -> grpc.StatusCode:
    """How a call ends that sends *bodies* as its messages."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    kind = {
        (False, False): served.channel.unary_unary,
        (False, True): served.channel.unary_stream,
        (True, False): served.channel.stream_unary,
    }[method.client_streaming, method.server_streaming]
    stub: Any = kind(path)  # bytes go in and out as they are
    try:
        answer = stub(iter(bodies) if method.client_streaming else bodies[0], timeout=SECONDS)
        if method.server_streaming:
            for _ in answer:
                pass
    except grpc.RpcError as failure:
        call: Any = failure
        status: grpc.StatusCode = call.code()
        return status
    return grpc.StatusCode.OK


TEXTS = st.one_of(
    st.sampled_from(
        ["s", "a", ".", "..", "/", "\0", "{}", "[]", '{"path": "."}', "stat", "write", "developer"]
    ),
    st.text(max_size=20),
)
NUMBERS = {
    FieldDescriptor.CPPTYPE_INT32: st.integers(-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: st.one_of(st.integers(-2, 3), st.integers(-(2**63), 2**63 - 1)),
    FieldDescriptor.CPPTYPE_BOOL: st.booleans(),
    FieldDescriptor.CPPTYPE_DOUBLE: st.floats(),
}


def values(field: Any) -> st.SearchStrategy[Any]:
    """What *field* may hold."""
    if field.type == FieldDescriptor.TYPE_BYTES:
        return st.binary(max_size=50)
    if field.type == FieldDescriptor.TYPE_STRING:
        return st.just("s") | TEXTS if field.name == "session_id" else TEXTS
    if field.message_type is None:
        return NUMBERS[field.cpp_type]
    if field.message_type.GetOptions().map_entry:
        return st.dictionaries(TEXTS, TEXTS, max_size=2)
    return made(GetMessageClass(field.message_type))


def made(kind: type[Message]) -> st.SearchStrategy[Message]:
    """Messages of *kind*."""
    rows = {
        field.name: st.lists(TEXTS, max_size=2) if _is_list(field) else values(field)
        for field in kind.DESCRIPTOR.fields
        # What follows has no end of its own.
        if field.name != "follow"
    }
    return st.fixed_dictionaries({}, optional=rows).map(lambda fields: kind(**fields))


def _is_list(field: Any) -> bool:
    is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
    return bool(field.is_repeated) and not is_map


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_messages_of_any_content_are_answered(prey: Served, method: MethodDescriptor) -> None:
    kind = GetMessageClass(method.input_type)

    @settings(max_examples=EXAMPLES, database=None, derandomize=True)
    @given(st.lists(made(kind), min_size=1, max_size=3))
    def answered(requests: list[Message]) -> None:
        assert called(prey, method, [each.SerializeToString() for each in requests]) not in MISTAKES

    answered()
    prey.call("EnsureSession", messages.SessionRequest(session_id="s"))


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_bytes_that_are_no_message_are_refused(prey: Served, method: MethodDescriptor) -> None:
    kind = GetMessageClass(method.input_type)

    @settings(max_examples=EXAMPLES, database=None, derandomize=True)
    @given(st.binary(max_size=40).filter(lambda data: not _is_readable(kind, data)))
    def refused(data: bytes) -> None:
        assert called(prey, method, [data]) is grpc.StatusCode.INVALID_ARGUMENT

    refused()
    prey.call("EnsureSession", messages.SessionRequest(session_id="s"))


def _is_readable(kind: type[Message], data: bytes) -> bool:
    try:
        kind.FromString(data)
    except Exception:
        return False
    return True


def test_text_that_is_not_utf8_is_refused(prey: Served) -> None:
    method = messages.DESCRIPTOR.services_by_name["WorkspaceService"].methods_by_name["GetSession"]
    assert called(prey, method, [b"\x0a\x01\xff"]) is grpc.StatusCode.INVALID_ARGUMENT


def test_a_method_that_is_not_there_is_unknown(prey: Served) -> None:
    stub: Any = prey.channel.unary_unary("/carrel.v1.SandboxService/Nothing")
    with pytest.raises(grpc.RpcError) as caught:
        stub(b"", timeout=SECONDS)
    failure: Any = caught.value
    assert failure.code() is grpc.StatusCode.UNIMPLEMENTED
