"""Sessions over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.sessions.manager import WorkspaceManager
from tests.fronts.http.front import Front, Session, code_of, served


def test_a_session_is_made_looked_at_and_removed(front: Front) -> None:
    made = front.client.post("/api/v1/sessions", json={"labels": {"for": "tests"}, "ttl_seconds": 60})
    assert made.status_code == 201
    place = made.headers["location"]
    assert place == f"/api/v1/sessions/{made.json()['session_id']}"
    looked = front.client.get(place)
    assert looked.status_code == 200
    assert looked.json()["labels"] == {"for": "tests"}
    assert looked.json()["ttl_seconds"] == 60
    assert front.client.delete(place).status_code == 204
    gone = front.client.get(place)
    assert (gone.status_code, code_of(gone)) == (404, "session.missing")


def test_a_session_may_be_made_without_a_body(front: Front) -> None:
    made = front.client.post("/api/v1/sessions")
    assert made.status_code == 201
    assert front.client.delete(made.headers["location"]).status_code == 204


def test_a_session_is_made_once(session: Session) -> None:
    again = session.front.client.post("/api/v1/sessions", json={"session_id": session.id})
    assert (again.status_code, code_of(again)) == (409, "session.exists")
    assert session.put("").json()["session_id"] == session.id


@pytest.mark.parametrize("name", ["%2e%2e", ".carrel", "a%2Fb", "a%20b", "x" * 129, "%00"])
def test_what_is_no_id_is_refused(front: Front, name: str) -> None:
    for method in ("GET", "PUT", "DELETE"):
        answer = front.client.request(method, f"/api/v1/sessions/{name}")
        assert (answer.status_code, code_of(answer)) == (400, "session.invalid_id")


def test_sessions_are_listed_page_by_page(tmp_path: Path) -> None:
    with WorkspaceManager(tmp_path / "sessions") as manager:
        for number in range(5):
            manager.create(f"s{number}").close()
    with served(tmp_path / "sessions") as front:
        seen: list[str] = []
        after = None
        while True:
            query = {"count": "2"} | ({} if after is None else {"after": after})
            page = front.client.get("/api/v1/sessions", params=query).json()
            seen += [one["session_id"] for one in page["sessions"]]
            after = page["next"]
            if after is None:
                break
        assert seen == ["s0", "s1", "s2", "s3", "s4"]


@pytest.mark.parametrize("query", ["count=0", "count=x", "count=1001", "unknown=1", "count=1&count=2"])
def test_a_page_that_makes_no_sense_is_refused(front: Front, query: str) -> None:
    answer = front.client.get(f"/api/v1/sessions?{query}")
    assert (answer.status_code, code_of(answer)) == (400, "request.invalid")


def test_a_session_lives_longer_when_it_is_extended(session: Session) -> None:
    extended = session.post("/extend", json={"ttl_seconds": 120})
    assert extended.json()["ttl_seconds"] == 120
    assert session.get("").json()["ttl_seconds"] == 120
    for body in (
        b"{}",
        b'{"ttl_seconds": -1}',
        b'{"ttl_seconds": "x"}',
        b'{"ttl_seconds": 1, "more": 1}',
        b"[]",
    ):
        answer = session.post("/extend", content=body)
        assert (answer.status_code, code_of(answer)) == (400, "request.invalid")


def test_a_session_is_emptied(session: Session) -> None:
    session.put("/files/a/b", content=b"in")
    assert session.post("/reset").status_code == 204
    assert session.get("/files").json() == {"entries": []}


def test_what_is_wrong_in_a_body_is_told_with_its_place(front: Front) -> None:
    answer = front.client.post("/api/v1/sessions", json={"labels": {"a": 1}})
    assert "`$.labels[...]`" in answer.json()["error"]["message"]
    broken = front.client.post("/api/v1/sessions", content=b'{"labels": ')
    assert (broken.status_code, code_of(broken)) == (400, "request.invalid")
