"""Sessions over gRPC, and the operations of their workspaces."""

from __future__ import annotations

import json
from typing import Any

import grpc
import pytest

from carrel.errors import (
    CarrelError,
    ChangedError,
    EscapeError,
    LimitError,
    MissingError,
    QuotaError,
    RequestError,
    SessionExistsError,
    SessionIdError,
    SessionMissingError,
    UnknownRequestError,
)
from carrel.remote.json_codec import parse
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.service.sessions.info import SessionInfo
from carrel.sessions.manager import WorkspaceManager
from carrel.values import Edited, FileInfo, Limits
from tests.fronts.grpc.serving import Served


def call(served: Served, session: str, operation: str, **arguments: Any) -> Any:
    request = messages.CallRequest(
        session_id=session, operation=operation, arguments_json=json.dumps(arguments)
    )
    return json.loads(served.call("Call", request).result_json)


def one(session_id: str) -> messages.SessionRequest:
    return messages.SessionRequest(session_id=session_id)


def info(answer: messages.SessionResponse) -> SessionInfo:
    return parse(json.loads(answer.session_json), SessionInfo)


def test_a_session_is_made_as_it_is_asked_for(served: Served) -> None:
    request = messages.CreateSessionRequest(
        session_id="made",
        ttl_seconds=60.5,
        limits_json=json.dumps({"disk_bytes": 1000, "entries": None}),
        role="critic",
        labels={"team": "a"},
    )
    made = info(served.call("CreateSession", request))
    assert (made.session_id, made.ttl_seconds, made.role, made.labels) == (
        "made",
        60.5,
        "critic",
        {"team": "a"},
    )
    assert made.limits == Limits(disk_bytes=1000, entries=None)
    assert info(served.call("GetSession", one("made"))) == made
    with pytest.raises(SessionExistsError):
        served.call("CreateSession", request)


def test_a_session_needs_no_name_and_may_live_for_ever(served: Served) -> None:
    made = info(served.call("CreateSession", messages.CreateSessionRequest(for_ever=True)))
    assert (len(made.session_id), made.ttl_seconds, made.expires_ns) == (36, None, None)
    usual = info(served.call("CreateSession", messages.CreateSessionRequest()))
    assert usual.ttl_seconds == 86_400


def test_a_session_that_is_missing_is_made_only_where_that_is_asked_for(served: Served) -> None:
    assert served.refusal("GetSession", one("ensured"))[0] is grpc.StatusCode.NOT_FOUND
    made = info(served.call("EnsureSession", one("ensured")))
    again = info(served.call("EnsureSession", one("ensured")))
    assert made.created_ns == again.created_ns


def test_sessions_come_by_pages(served: Served) -> None:
    for name in ("page-1", "page-2", "page-3"):
        served.call("EnsureSession", one(name))
    request = messages.ListSessionsRequest(after="page-1", count=1)
    page = served.call("ListSessions", request)
    assert [each["session_id"] for each in json.loads(page.sessions_json)] == ["page-2"]
    assert page.next == "page-2"
    last = served.call("ListSessions", messages.ListSessionsRequest(after="zzz"))
    assert (last.sessions_json, last.next) == ("[]", "")
    with pytest.raises(RequestError):
        served.call("ListSessions", messages.ListSessionsRequest(count=-1))


def test_a_session_is_extended_reset_and_deleted(served: Served, session: str) -> None:
    request = messages.ExtendSessionRequest(session_id=session, ttl_seconds=10**6)
    assert info(served.call("ExtendSession", request)).ttl_seconds == 10**6
    request = messages.ExtendSessionRequest(session_id=session, for_ever=True)
    assert info(served.call("ExtendSession", request)).ttl_seconds is None
    with pytest.raises(RequestError, match="must be given"):
        served.call("ExtendSession", messages.ExtendSessionRequest(session_id=session))
    served.call("ResetSession", one(session))
    assert list(served.path(session).iterdir()) == []
    served.call("DeleteSession", one(session))
    assert not served.path(session).exists()
    with pytest.raises(SessionMissingError):
        served.call("DeleteSession", one(session))


@pytest.mark.parametrize(
    "fields",
    [
        {"ttl_seconds": -1.0},
        {"ttl_seconds": float("nan")},
        {"limits_json": "[]"},
        {"limits_json": '{"disk_bytes": -1}'},
        {"limits_json": '{"disk_bytes": "x"}'},
        {"limits_json": '{"disk": 5}'},
        {"limits_json": "{"},
    ],
)
def test_a_session_that_makes_no_sense_is_not_made(served: Served, fields: dict[str, Any]) -> None:
    request = messages.CreateSessionRequest(session_id="nonsense", **fields)
    status, error = served.refusal("CreateSession", request)
    assert (status, type(error)) == (grpc.StatusCode.INVALID_ARGUMENT, RequestError)
    assert not served.path("nonsense").exists()


def test_a_session_id_that_breaks_the_rule_is_refused(served: Served) -> None:
    for name in ("../up", "a/b", "", "x" * 200):
        status, error = served.refusal("GetSession", one(name))
        assert (status, type(error)) == (grpc.StatusCode.INVALID_ARGUMENT, SessionIdError)


# The operations


def test_an_operation_gives_what_the_method_gives(served: Served, session: str) -> None:
    with WorkspaceManager(served.sessions).open(session) as workspace:
        assert parse(call(served, session, "stat", path="a.txt"), FileInfo) == workspace.stat("a.txt")
        assert call(served, session, "read_text", path="a.txt") == "one\ntwo\nthree\n"
        assert parse(call(served, session, "list"), list[FileInfo]) == workspace.list()
        edited = parse(call(served, session, "edit", path="a.txt", old="two", new="2"), Edited)
        assert (edited.replacements, edited.info) == (1, workspace.stat("a.txt"))
        assert call(served, session, "mkdir", path="new/dir") is None
        assert workspace.exists("new/dir")


def library_error(served: Served, session: str, operation: str, arguments: dict[str, Any]) -> CarrelError:
    with WorkspaceManager(served.sessions).open(session) as workspace:
        try:
            getattr(workspace, operation)(**arguments)
        except CarrelError as error:
            return error
    raise AssertionError


@pytest.mark.parametrize(
    ("operation", "arguments", "status", "kind"),
    [
        ("stat", {"path": "nope"}, grpc.StatusCode.NOT_FOUND, MissingError),
        ("stat", {"path": "../../etc"}, grpc.StatusCode.INVALID_ARGUMENT, EscapeError),
        ("stat", {"path": "x/\ud800"}, grpc.StatusCode.INVALID_ARGUMENT, ValueError),
        ("stat", {"path": "y" * 300}, grpc.StatusCode.INVALID_ARGUMENT, ValueError),
        ("stat", {"path": "ü/" * 2000}, grpc.StatusCode.INVALID_ARGUMENT, ValueError),
        ("read_text", {"path": "sub"}, grpc.StatusCode.FAILED_PRECONDITION, IsADirectoryError),
        (
            "write",
            {"path": "a.txt", "data": "x", "if_version": "0-0-0"},
            grpc.StatusCode.ABORTED,
            ChangedError,
        ),
        ("mkdir", {"path": "sub"}, grpc.StatusCode.ALREADY_EXISTS, FileExistsError),
        ("mkdir", {"path": "d/" * 100}, grpc.StatusCode.RESOURCE_EXHAUSTED, LimitError),
    ],
)
def test_an_error_arrives_as_the_library_raises_it(
    served: Served,
    session: str,
    operation: str,
    arguments: dict[str, Any],
    status: grpc.StatusCode,
    kind: type[Exception],
) -> None:
    request = messages.CallRequest(
        session_id=session, operation=operation, arguments_json=json.dumps(arguments)
    )
    found, error = served.refusal("Call", request)
    expected = library_error(served, session, operation, arguments)
    assert found is status
    assert isinstance(error, kind)
    assert (type(error), error.code, error.message, error.path) == (
        type(expected),
        expected.code,
        expected.message,
        expected.path,
    )
    assert vars(error) | {"code": error.code} == vars(expected) | {"code": expected.code}


def test_a_quota_that_is_passed_says_how_far(served: Served) -> None:
    request = messages.CreateSessionRequest(session_id="small", limits_json='{"disk_bytes": 10}')
    served.call("CreateSession", request)
    with pytest.raises(QuotaError) as caught:
        call(served, "small", "write", path="a", data="x" * 11)
    assert (caught.value.limit, caught.value.asked) == (10, 11)


@pytest.mark.parametrize(
    ("operation", "text", "kind"),
    [
        ("nothing", "{}", UnknownRequestError),
        ("host_path", '{"path": "a.txt"}', UnknownRequestError),
        ("stat", "{", RequestError),
        ("stat", "5", RequestError),
        ("stat", "{}", RequestError),
        ("stat", '{"path": "a.txt", "more": 1}', RequestError),
        ("stat", '{"path": 5}', RequestError),
    ],
)
def test_an_operation_that_cannot_be_called_like_this_is_refused(
    served: Served, session: str, operation: str, text: str, kind: type[CarrelError]
) -> None:
    request = messages.CallRequest(session_id=session, operation=operation, arguments_json=text)
    assert type(served.refusal("Call", request)[1]) is kind


def test_the_role_of_a_request_limits_its_operation(served: Served, session: str) -> None:
    request = messages.CallRequest(
        session_id=session,
        operation="write",
        arguments_json='{"path": "a.txt", "data": "x"}',
        context=messages.Context(role="critic"),
    )
    status, error = served.refusal("Call", request)
    assert (status, error.code) == (grpc.StatusCode.PERMISSION_DENIED, "access.role")
    critic = served.by(role="critic")
    assert critic.refusal("DeleteSession", one(session))[1].code == "access.role"
    assert served.path(session, "a.txt").read_bytes() == b"one\ntwo\nthree\n"
