"""Whoever has to wait for a session keeps nobody else waiting."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from carrel.fronts.json_document import MAX_VALUES
from tests.fronts.http.front import Front, Session, code_of, served
from tests.fronts.http.handlers.test_executions import EVENTS
from tests.fronts.http.test_callers import bearer
from tests.fronts.http.test_disconnect import eventually
from tests.storage.holding import held


def tool(**arguments: str) -> dict[str, Any]:
    """How a tool is called."""
    body = {"arguments": arguments, "context": {"role": "developer"}}
    return {"json": body, "params": {"profile": "mcp"}}


Request = tuple[str, str, dict[str, Any], int]
CHANGES: list[Request] = [
    ("POST", "/operations/touch", {"json": {"path": "touched"}}, 200),
    ("POST", "/operations/mkdir", {"json": {"path": "made"}}, 200),
    ("POST", "/operations/write", {"json": {"path": "written", "data": "text"}}, 200),
    ("POST", "/operations/append", {"json": {"path": "appended", "data": "text"}}, 200),
    ("PUT", "/files/put", {"content": b"text"}, 200),
    ("POST", "/files/posted", {"content": b"text"}, 200),
    ("POST", "/tools/create_directory", tool(path="dir"), 200),
    ("POST", "/tools/write_file", tool(path="by-tool", content="text"), 200),
]
"""What has to wait for a session that is locked."""
REFUSALS: list[Request] = [
    ("POST", "/operations/stat", {"json": {"path": "../x"}}, 400),
    ("POST", "/operations/exists", {"json": {"path": "/etc/passwd"}}, 400),
    ("POST", "/operations/list", {"json": {"path": "../x"}}, 400),
    ("GET", "/files/..%2fx", {}, 400),
    ("GET", "/files/..%2fx", {"headers": {"accept": "application/json"}}, 400),
    ("PUT", "/files/..%2fx", {"content": b"text", "headers": {"if-match": "*"}}, 400),
    ("POST", "/tools/get_file_info", tool(path="../x"), 200),
    ("POST", "/tools/read_text_file", tool(path="../x"), 200),
]
"""What is recorded without waiting."""


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(len(CHANGES)) as running:
        yield running


def are_running(front: Front, count: int) -> bool:
    """Whether *count* requests run besides the one that asks."""
    return f"carrel_http_requests_running {count + 1}.0" in front.client.get("/metrics").text


def test_a_session_that_is_locked_holds_up_nobody_else(
    front: Front, session: Session, threads: ThreadPoolExecutor
) -> None:
    other = front.session()
    for each in (session, other):
        assert each.put("/files/f", content=b"text").status_code == 200
    with held(front.root, session.id) as release:
        waiting = [
            threads.submit(session.request, method, path, **options) for method, path, options, _ in CHANGES
        ]
        eventually(lambda: are_running(front, len(CHANGES)))
        # The lock is released only when everybody else was answered.
        assert front.client.get("/healthz").status_code == 200
        # This needs a thread and a slot.
        assert front.client.get("/readyz").status_code == 200
        assert other.post("/operations/touch", json={"path": "f"}).status_code == 200
        assert other.post("/operations/stat", json={"path": "../x"}).status_code == 400
        assert session.get("/files/f").content == b"text"
        for method, path, options, status in REFUSALS:
            assert session.request(method, path, **options).status_code == status
        assert not any(each.done() for each in waiting)
        release()
    answers: list[httpx2.Response] = [each.result() for each in waiting]
    assert [each.status_code for each in answers] == [status for *_, status in CHANGES]
    names = {each["path"] for each in session.get("/files").json()["entries"]}
    assert names == {
        "f",
        "touched",
        "made",
        "written",
        "appended",
        "put",
        "posted",
        "dir",
        "by-tool",
    }
    refused = [each for each in session.get("/changes").json()["events"] if each["error"]]
    assert sum(each["repeats"] or 1 for each in refused) == len(REFUSALS)


def test_a_tenant_whose_session_is_locked_leaves_threads_to_others(front: Front) -> None:
    mine, other = (bearer(front, name=name, tenant=name, role="developer") for name in ("locked", "unlocked"))
    place = "/api/v1/sessions/s/operations/touch"
    for key in (mine, other):
        assert front.client.put("/api/v1/sessions/s", headers=key).status_code == 200
        assert front.client.post(place, json={"path": "f"}, headers=key).status_code == 200
    root = front.root / ".carrel" / "tenants" / "locked"
    count = 100

    def touch(number: int) -> int:
        return client.post(place, json={"path": f"{number}"}, headers=mine).status_code

    with (
        httpx2.Client(base_url=front.url, timeout=60) as client,
        ThreadPoolExecutor(count) as threads,
        held(root, "s") as release,
    ):
        waiting = [threads.submit(touch, number) for number in range(count)]
        eventually(lambda: are_running(front, count))
        # What needs a thread finds one, and the lock is released only then.
        assert front.client.get("/api/v1/sessions", headers=other).status_code == 200
        assert front.client.get("/readyz").status_code == 200
        assert front.client.put("/api/v1/sessions/new", headers=other).status_code == 200
        release()
        assert {each.result() for each in waiting} == {200}


def test_requests_over_mcp_are_counted_with_those_of_their_tenant(tmp_path: Path) -> None:
    with served(tmp_path / "sessions", max_requests="4", shutdown_seconds="2") as few, ExitStack() as stack:
        mine, other = (bearer(few, name=name, tenant=name, role="developer") for name in ("ann", "ben"))
        few.client.put("/api/v1/sessions/s", headers=mine)
        for _ in range(2):
            stream = few.client.stream("GET", "/api/v1/sessions/s/changes", headers=mine | EVENTS)
            assert stack.enter_context(stream).status_code == 200
        refused = few.client.post("/mcp", json={}, headers=mine)
        assert (refused.status_code, code_of(refused)) == (503, "limit.requests")
        assert refused.headers["retry-after"] == "1"
        assert few.client.post("/mcp", json={}, headers=other).status_code == 400


@pytest.mark.parametrize("form", ['{"a":[%s]}', '{"a":{"b":[%s]}}'])
def test_json_of_very_many_values_is_refused_before_it_is_decoded(session: Session, form: str) -> None:
    many = form % ",".join(["[]"] * (MAX_VALUES + 1))
    told = session.post("/operations/write", content=many)
    assert (told.status_code, code_of(told)) == (413, "limit.body")
    assert told.json()["error"]["limit"] == MAX_VALUES


def test_a_long_text_is_one_value(session: Session) -> None:
    text = '{"a":[1,2,\\"3\\"]}\n' * MAX_VALUES
    assert session.post("/operations/write", json={"path": "f", "data": text}).status_code == 200
    assert session.get("/files/f").text == text


@pytest.mark.parametrize("before", range(4))
def test_a_text_that_goes_on_from_part_to_part_is_one_value(session: Session, before: int) -> None:
    text = "x" * before + '\\",[{' * MAX_VALUES + "\\"
    assert session.post("/operations/write", json={"path": "f", "data": text}).status_code == 200
    assert session.get("/files/f").text == text
