"""Callers over HTTP: who they are, what they choose, and that they never meet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.subscriptions import SubscriptionLost
from mcp.shared.exceptions import MCPError

from carrel.fronts.json_document import MAX_VALUES
from tests.fronts.mcp.conftest import Http, served
from tests.fronts.mcp.talk import LEGACY, MODERN

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}
ACCEPT = {"accept": "application/json, text/event-stream"}


def post(
    http: Http, document: Any, key: str | None = None, query: str = "", **headers: str
) -> httpx2.Response:
    """What is answered to one request as it stands; `Any`, as it may be none."""
    shown = {} if key is None else {"authorization": f"Bearer {key}"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    url = f"{http.url}?{query}" if query else http.url
    return httpx2.post(url, json=document, headers={**ACCEPT, **shown, **named}, timeout=30)


def test_who_shows_a_wrong_key_is_refused_before_anything_is_read(http: Http) -> None:
    answer = post(http, INITIALIZE, key="carrel_nothing")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"]["code"] == "caller.unknown"


@pytest.mark.parametrize("headers", [{"origin": "http://elsewhere.example"}, {"host": "elsewhere.example"}])
def test_a_web_page_from_elsewhere_is_not_the_operator(http: Http, headers: dict[str, str]) -> None:
    assert post(http, INITIALIZE, **headers).status_code == 401


def test_who_comes_without_a_key_from_this_machine_is_the_operator(http: Http) -> None:
    with http.talking() as talk:
        talk.output("create_session", session_id="operators")
    assert (http.sessions / "operators").is_dir()


def test_who_calls_too_often_is_told_when_to_come_again(http: Http) -> None:
    key = http.key("hasty", rate_per_minute=1)
    assert post(http, INITIALIZE, key).status_code == 200
    answer = post(http, INITIALIZE, key)
    assert answer.status_code == 429
    assert 0 < int(answer.headers["retry-after"]) <= 60
    assert answer.json()["error"]["code"] == "limit.rate"


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
def test_tenants_never_meet(http: Http, mode: str) -> None:
    mine, yours = (http.key(f"{name}-{mode}", role="developer") for name in ("mine", "yours"))
    with http.talking(mine, mode) as me, http.talking(yours, mode) as you:
        me.output("file_write", session="same", path="a", content="mine")
        you.output("create_session", session_id="same")
        me.output("create_session", session_id="only")
        assert you.code("file_read", session="same", path="a") == "path.missing"
        assert you.code("get_workspace_info", session="only") == "session.missing"
        assert you.code("destroy_session", session="only") == "session.missing"
        assert you.refusal("carrel://only/a")["code"] == "session.missing"
        listed = [each["session_id"] for each in you.output("get_active_sessions")["sessions"]]
        assert listed == ["same"]
        assert [each.name for each in you.run(you.client.list_resources).resources] == ["same"]
        assert me.output("file_read", session="same", path="a") == "mine"


def test_a_connection_serves_only_the_key_that_opened_it(http: Http) -> None:
    mine, yours = http.key("opener"), http.key("joiner")
    opened = post(http, INITIALIZE, mine)
    connection = opened.headers["mcp-session-id"]
    version = {"mcp_protocol_version": "2025-11-25", "mcp_session_id": connection}
    assert post(http, LIST, mine, **version).status_code == 200
    assert post(http, LIST, yours, **version).status_code == 404
    assert post(http, LIST, **version).status_code == 404
    assert post(http, LIST, mine, query="role=generalist&session=x", **version).status_code == 404


def test_the_query_chooses_profiles_a_role_and_a_session(http: Http) -> None:
    key = http.key("chooser", role="generalist", roles=("developer",))
    with http.talking(key, query="profile=mcp&role=developer&session=mine") as talk:
        assert len(talk.tools) == 14
        talk.call("write_file", path="a", content="1")
    with http.talking(key) as talk:
        assert talk.output("file_read", session="mine", path="a") == "1"
        assert "file_write" not in talk.tools


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("role=developer", 403, "access.role"),
        ("profile=nothing", 400, "request.invalid"),
        ("session=other", 404, "session.missing"),
    ],
)
def test_what_the_query_may_not_choose_is_refused(http: Http, query: str, status: int, code: str) -> None:
    key = http.key(f"narrow-{status}", role="generalist", session="one")
    answer = post(http, INITIALIZE, key, query)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_a_key_that_is_bound_to_a_session_has_no_other(http: Http) -> None:
    key = http.key("bound", role="developer", session="one")
    with http.talking(key) as talk:
        talk.output("file_write", path="a", content="1")
        assert talk.read("carrel:///a") == "1"
        assert [each.uri for each in talk.run(talk.client.list_resources).resources] == ["carrel:///a"]
        assert talk.code("file_read", session="two", path="a") == "session.missing"
        with pytest.raises(MCPError, match="There is no tool"):
            talk.call("create_session", session_id="two")


@pytest.mark.parametrize("document", [[], "text", {}, [INITIALIZE], {"jsonrpc": "2.0", "id": 1}])
def test_what_is_no_message_is_told_so(http: Http, document: object) -> None:
    for headers in ({}, {"mcp_protocol_version": "2026-07-28"}):
        answer = post(http, document, **headers)
        assert 400 <= answer.status_code < 500
        assert "Traceback" not in answer.text


def test_a_body_that_is_too_large_is_refused(http: Http) -> None:
    assert post(http, {**LIST, "params": {"cursor": "x" * (4 * 2**20)}}).status_code == 413


@pytest.mark.parametrize("mode", [LEGACY, MODERN])
def test_a_body_with_too_many_values_is_refused_before_it_is_decoded(http: Http, mode: str) -> None:
    document = {**LIST, "params": {"a": [0] * (MAX_VALUES + 1)}}
    headers = {"mcp_protocol_version": "2026-07-28"} if mode == MODERN else {}
    answer = post(http, document, **headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "limit.body")


def test_who_only_listens_is_told_that_the_service_ends(
    guest_environ: dict[str, str], tmp_path: Path
) -> None:
    with served(tmp_path / "sessions") as http, http.talking() as talk:
        talk.output("create_session", session_id="s1")

        async def listen() -> list[object]:
            async with talk.client.listen(resource_subscriptions=["carrel://s1/a"]) as heard:
                http.stop()
                return [event async for event in heard]

        connection = post(http, INITIALIZE).headers["mcp-session-id"]
        headers = {**ACCEPT, "mcp-session-id": connection, "mcp-protocol-version": "2025-11-25"}
        with httpx2.stream("GET", http.url, headers=headers, timeout=30) as stream:
            assert stream.status_code == 200
            assert talk.run(listen) == []
            assert stream.read() == b""
        assert talk.output("get_active_sessions"), "calls go on"


def test_who_listens_is_heard_of_for_as_long_as_the_key_is_in_force(
    http: Http, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrel.service.authentication.authenticator.AGAIN_SECONDS", 0.05)
    monkeypatch.setattr("carrel.service.authentication.key_store.FRESH_NS", 0)
    key = http.key("listens", role="developer")
    said = {"authorization": f"Bearer {key}"}
    with http.talking(key) as talk:
        talk.output("create_session", session_id="s1")

        async def listen() -> None:
            async with talk.client.listen(resource_subscriptions=["carrel://s1/a"]) as heard:
                http.keys.revoke("listens")
                with pytest.raises(SubscriptionLost):
                    await anext(heard)

        connection = post(http, INITIALIZE, **said).headers["mcp-session-id"]
        headers = {**ACCEPT, **said, "mcp-session-id": connection, "mcp-protocol-version": "2025-11-25"}
        with httpx2.stream("GET", http.url, headers=headers, timeout=30) as stream:
            assert stream.status_code == 200
            talk.run(listen)
            assert stream.read() == b""


def test_nobody_takes_up_the_room_of_all_others(http: Http, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("carrel.fronts.mcp.transports.streamable_http.MAX_CONNECTIONS_PER_CALLER", 2)
    mine, other = (
        {"authorization": f"Bearer {http.key(name, role='developer')}"} for name in ("many", "few")
    )
    opened = [post(http, INITIALIZE, **mine).headers["mcp-session-id"] for _ in range(2)]
    refused = post(http, INITIALIZE, **mine)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "limit.requests")
    assert (
        httpx2.post(f"{http.url}?session=s", json=INITIALIZE, headers={**ACCEPT, **mine}).status_code == 503
    )
    assert post(http, INITIALIZE, **other).status_code == 200
    assert post(http, LIST, **mine, mcp_protocol_version="2026-07-28").status_code != 503
    said = {**ACCEPT, **mine, "mcp-session-id": opened[0], "mcp-protocol-version": "2025-11-25"}
    assert httpx2.delete(http.url, headers=said).status_code == 200
    assert post(http, INITIALIZE, **mine).status_code == 200


def test_an_unknown_method_is_told_so_in_both_eras(http: Http) -> None:
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    request = {"jsonrpc": "2.0", "id": 1, "method": "no/such", "params": {"_meta": meta}}
    answer = post(http, request, mcp_protocol_version="2026-07-28", mcp_method="no/such")
    assert json.loads(answer.text)["error"]["code"] == -32601
