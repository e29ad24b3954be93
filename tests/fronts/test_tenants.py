"""Two tenants, one of whom tries every endpoint on the other's session: it is as if it were not there.

Each request is made twice by the same caller: for a session of somebody else, and for one that nobody has.
Both answers must be the same, byte for byte, but for the ids, versions and times in them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from carrel.service.authentication.key_store import KeyStore, NewKey
from carrel.tools.core.spec import Profile
from tests.conformance.http_door import API, Http
from tests.conformance.mcp_door import Mcp
from tests.conformance.place import contents
from tests.conformance.server import Server

HERS, NOBODYS = "alices-own", "nobodys-at"
"""Of the same length, so that the length of an answer may be compared too."""
VOLATILE_HEADERS = frozenset({"date", "x-request-id", "etag", "last-modified"})
DOCUMENTS: dict[str, Any] = {
    **{name: {"path": "a.txt"} for name in ("stat", "exists", "read_text", "read_lines", "remove", "touch")},
    **{name: {"path": "a.txt", "data": "x"} for name in ("write", "append")},
    **{name: {"source": "a.txt", "target": "b.txt"} for name in ("copy", "move")},
    "edit": {"path": "a.txt", "old": "words", "new": "x"},
    "mkdir": {"path": "new"},
    "glob": {"pattern": "*"},
    "search": {"query": "words"},
    "extend": {"ttl_seconds": 60},
    "exec": {"command": "cat a.txt"},
    "tools": {"tool": "file_read", "path": "a.txt"},
    "file_read": {"arguments": {"path": "a.txt"}},
}
"""What is sent, by the last name of the address."""
_VOLATILE = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"  # an id
    r"|\b[0-9a-f]+-[0-9a-f]+-[0-9a-f]{8,}\b"  # a version
    r"|\b[0-9a-f]{16,}\b|\b\d{9,}\b"  # a hash, a time
    r"|\d{4}-\d\d-\d\dT[\d:.]+Z?"
)
_DURATION = re.compile(r'"(?:duration_ms|inode|blocks)\\*":\s*[\d.]+')


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenants:
    """A service that two tenants use."""

    server: Server
    hers: str
    """The key of the one whose session it is."""
    his: str
    """The key of the one who tries."""
    place: Path
    """Where her files are."""
    execution: str
    """Something that she ran."""


@pytest.fixture(scope="module")
def tenants(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    sessions = tmp_path_factory.mktemp("tenants")
    keys = KeyStore(sessions)
    alice, bob = (
        keys.create(NewKey(name=name, role="developer", roles=("critic",)))[1] for name in ("alice", "bob")
    )
    keys.close()
    with Server(sessions, {"CARREL_SERVE_REQUIRE_KEY": "true"}) as server, Http(server.port, alice) as http:
        http.request("PUT", f"{API}/sessions/{HERS}")
        http.request("PUT", f"{API}/sessions/{HERS}/files/a.txt", b"words of hers\n")
        ran = http.post(f"{API}/sessions/{HERS}/exec", {"command": "pwd"}).json["execution_id"]
        place = sessions / ".carrel/tenants/alice" / HERS
        assert (place / "a.txt").read_bytes() == b"words of hers\n"
        yield Tenants(server=server, hers=alice, his=bob, place=place, execution=ran)


@pytest.fixture(autouse=True)
def _untouched(tenants: Tenants) -> Iterator[None]:
    """Nothing of hers is changed, and her session still stands as it did."""
    before = contents(tenants.place)
    with Http(tenants.server.port, tenants.hers) as http:
        known = http.request("GET", f"{API}/sessions/{HERS}").json
        yield
        assert contents(tenants.place) == before
        found = http.request("GET", f"{API}/sessions/{HERS}").json
        for volatile in ("used_ns", "expires_ns", "in_use"):
            known.pop(volatile, None)
            found.pop(volatile, None)
        assert found == known


def test_every_address_answers_as_if_the_session_were_not_there(tenants: Tenants) -> None:
    with Http(tenants.server.port, tenants.his) as http:
        routes = [
            (method, path)
            for path, methods in http.request("GET", "/openapi.json").json["paths"].items()
            for method in [*methods, *methods.get("x-methods", {})]
            if "{session_id}" in path and not method.startswith("x-")
        ]
        assert len(routes) > 35
        for method, path in routes:
            answers = [_asked(http, method, path, session, tenants.execution) for session in (HERS, NOBODYS)]
            assert answers[0] == answers[1], f"{method} {path}"
            assert b"words of hers" not in answers[0][2], f"{method} {path}"
        listed = http.request("GET", f"{API}/sessions").json["sessions"]
    mine = {each["session_id"] for each in listed}
    assert {HERS in mine, NOBODYS in mine} != {True, False}, "one was made, the other was not"


def _asked(
    http: Http, method: str, path: str, session: str, execution: str
) -> tuple[int, dict[str, str], bytes]:
    names = {"session_id": session, "path": "a.txt", "tool": "file_read", "execution_id": execution}
    target = path.format(**names)
    query = "?query=words" if path.endswith("/search") else ""
    document = DOCUMENTS.get(target.rpartition("/")[2], {})
    body = (
        None if method.lower() in ("get", "head", "delete", "move", "copy") else json.dumps(document).encode()
    )
    sent = {"Content-Type": "application/json", "Destination": target.replace("a.txt", "b.txt")}
    reply = http.request(method.upper(), target + query, body, sent)
    headers = {
        name: value.replace(session, "SESSION")
        for name, value in reply.headers.items()
        if name not in VOLATILE_HEADERS
    }
    if b"duration_ms" in reply.body:
        headers.pop("content-length", None)
    return reply.status, headers, _plain(reply.body.decode("latin-1"), session).encode()


class _WithKey(grpc.StreamStreamClientInterceptor):
    """Tells who asks for the list of calls, which what asks for it cannot do."""

    def __init__(self, metadata: Any) -> None:
        self._metadata = metadata

    def intercept_stream_stream(self, continuation: Any, details: Any, requests: Any) -> Any:
        """The same call, with the key."""
        return continuation(details._replace(metadata=self._metadata), requests)


def test_every_call_over_grpc_answers_as_if_the_session_were_not_there(tenants: Tenants) -> None:
    metadata = (("authorization", f"Bearer {tenants.his}"),)
    with grpc.insecure_channel(tenants.server.grpc_address) as channel:
        reflection = ProtoReflectionDescriptorDatabase(grpc.intercept_channel(channel, _WithKey(metadata)))
        pool = DescriptorPool(reflection)
        services = [name for name in reflection.get_services() if name.startswith("carrel.")]
        methods = [method for name in services for method in pool.FindServiceByName(name).methods]
        assert len(methods) > 20
        for method in methods:
            answers = [_called(channel, method, session, metadata) for session in (HERS, NOBODYS)]
            # What he made by naming it is his own, and listed.
            assert answers[0] == answers[1] or method.name == "ListSessions", method.full_name
            assert "words of hers" not in repr(answers[0]), method.full_name


ARGUMENTS: dict[str, str] = {
    "path": "a.txt",
    "content": "x",
    "query": "words",
    "old_text": "words",
    "new_text": "x",
    "command": "cat a.txt",
    "code": "print(1)",
    "name": "file_read",
    "arguments_json": '{"path": "a.txt"}',
    "operation": "read_text",
}
"""What is sent, by the name of the field."""


def _called(
    channel: grpc.Channel, method: MethodDescriptor, session: str, metadata: Any
) -> tuple[object, ...]:
    """Call a method for *session*; what comes back, or the error with all that it says."""
    kind = GetMessageClass(method.input_type)
    request: Any = kind()  # one that is made at run time has fields that no type knows
    # A stream of requests begins with a message that has all of this in it.
    filled = request.start if "start" in method.input_type.fields_by_name else request
    for field in filled.DESCRIPTOR.fields:
        if field.name == "session_id":
            filled.session_id = session
        elif field.name in ARGUMENTS and field.type == field.TYPE_STRING:
            setattr(filled, field.name, ARGUMENTS[field.name])
    path = f"/{method.containing_service.full_name}/{method.name}"
    make: Any = channel.stream_stream if method.client_streaming else channel.unary_stream
    call = make(
        path,
        request_serializer=kind.SerializeToString,
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    sent = iter([request]) if method.client_streaming else request
    try:
        replies = [_plain(str(reply), session) for reply in call(sent, metadata=metadata, timeout=30)]
    except grpc.RpcError as error:
        told: Any = error  # every failure of a call is one too, which no type says
        trailing = [(name, _plain(str(value), session)) for name, value in told.trailing_metadata()]
        return told.code(), _plain(told.details(), session), trailing
    return (replies,)


def test_every_tool_over_mcp_answers_as_if_the_session_were_not_there(tenants: Tenants) -> None:
    arguments = {
        **{name: value for name, value in ARGUMENTS.items() if name != "name"},
        **{
            "source": "a.txt",
            "destination": "b.txt",
            "file_path": "a.txt",
            "pattern": "*",
            "paths": ["a.txt"],
        },
    }
    with closing(Mcp(tenants.server.port, tenants.his)) as mcp:
        for profile in (*Profile, "sessions"):
            offered = mcp.request("tools/list", {}, profile=profile)["result"]["tools"]
            assert offered
            for tool in offered:
                known = tool["inputSchema"]["properties"]
                answers = []
                for session in (HERS, NOBODYS):
                    given = {name: value for name, value in arguments.items() if name in known}
                    if "session" in known:
                        given["session"] = session
                    answers.append(
                        _plain(json.dumps(mcp.call(tool["name"], given, profile=profile)), session)
                    )
                if "session" in known:
                    assert answers[0] == answers[1], tool["name"]
                assert "words of hers" not in answers[0], tool["name"]
        uris = [f"carrel://{session}/a.txt" for session in (HERS, NOBODYS)]
        read = [mcp.request("resources/read", {"uri": uri}, uri) for uri in uris]
        assert _plain(json.dumps(read[0]), HERS) == _plain(json.dumps(read[1]), NOBODYS)


def test_without_a_key_no_address_tells_anything(tenants: Tenants) -> None:
    """But that the service is there and well."""
    with Http(tenants.server.port, tenants.hers) as http:
        paths = http.request("GET", "/openapi.json").json["paths"]
    for key in (None, "carrel_wrong", tenants.hers[:-1]):
        with Http(tenants.server.port, key) as http:
            for path, methods in paths.items():
                for method in methods:
                    if path.startswith(API) and not method.startswith("x-"):
                        status, _, body = _asked(http, method, path, HERS, tenants.execution)
                        assert status == 401, f"{method} {path}: {body!r}"
                        assert HERS.encode() not in body, f"{method} {path}"


def _plain(text: str, session: str) -> str:
    """*text* without ids, versions, times and the name of the session."""
    text = _DURATION.sub("N", text.replace(session, "SESSION"))
    return _VOLATILE.sub("N", text)
