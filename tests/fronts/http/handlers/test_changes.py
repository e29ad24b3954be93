"""The journal over HTTP."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from tests.fronts.http.front import Front, Session, code_of, served
from tests.fronts.http.handlers.test_executions import EVENTS, events


def test_changes_are_listed_from_any_record_on(session: Session) -> None:
    session.put("/files/a", content=b"1")
    first = session.get("/changes").json()
    assert [event["path"] for event in first["events"]] == ["a"]
    assert first["next"] == first["events"][-1]["sequence"]
    session.put("/files/b", content=b"2")
    more = session.get(f"/changes?since={first['next']}").json()
    assert [event["path"] for event in more["events"]] == ["b"]
    again = session.get(f"/changes?since={more['next']}").json()
    assert again == {"events": [], "next": more["next"]}


def test_a_refusal_is_among_the_changes(session: Session) -> None:
    session.put("/files/%2e%2e/x", content=b"1")
    (event,) = session.get("/changes").json()["events"]
    assert event["error"] == "path.escape"


def test_nothing_is_lost_when_a_reader_comes_back(session: Session) -> None:
    def follow(last: int | None) -> httpx2.Response:
        headers = EVENTS | ({} if last is None else {"Last-Event-ID": str(last)})
        request = session.front.client.build_request("GET", f"{session.path}/changes", headers=headers)
        return session.front.client.send(request, stream=True)

    last: int | None = None
    seen: list[str] = []
    for number in range(3):
        session.put(f"/files/before-{number}", content=b"1")
        answer = follow(last)
        stream = events(answer)
        name, last, document = next(stream)
        seen.append(document["path"])
        assert name == "change"
        session.put(f"/files/while-{number}", content=b"1")
        _, last, document = next(stream)
        seen.append(document["path"])
        answer.close()
    assert seen == [f"{when}-{number}" for number in range(3) for when in ("before", "while")]


def test_a_stream_ends_with_its_session(session: Session) -> None:
    with session.front.client.stream("GET", f"{session.path}/changes", headers=EVENTS) as answer:
        assert answer.status_code == 200
        session.delete("")
        assert [name for name, _, _ in events(answer)] in ([], ["error"])


def test_a_stream_ends_with_its_session_also_if_another_has_its_name_at_once(session: Session) -> None:
    with session.front.client.stream("GET", f"{session.path}/changes", headers=EVENTS) as answer:
        session.delete("")
        session.front.client.put(session.path)
        assert [name for name, _, _ in events(answer)] in ([], ["error"])


def test_who_comes_back_to_another_session_of_the_same_name_is_told(session: Session) -> None:
    session.put("/files/f", content=b"1")
    last = session.get("/changes").json()["next"]
    session.delete("")
    session.front.client.put(session.path)
    answer = session.get("/changes", headers=EVENTS | {"Last-Event-ID": str(last)})
    assert (answer.status_code, code_of(answer)) == (410, "journal.rotated")


@pytest.mark.parametrize("headers", [{}, EVENTS])
def test_what_cannot_be_followed_is_told_before_the_stream(front: Front, headers: dict[str, str]) -> None:
    answer = front.client.get("/api/v1/sessions/missing/changes", headers=headers)
    assert (answer.status_code, code_of(answer)) == (404, "session.missing")
    session = front.session()
    session.put("/files/f", content=b"1")
    (journal,) = front.root.glob(f".carrel/**/{session.id}/journal.0")
    journal.with_name("journal.5").write_bytes(journal.read_bytes().replace(b"[2,1,0,", b"[2,7,6,"))
    journal.unlink()
    rotated = session.get("/changes?since=1", headers=headers)
    assert (rotated.status_code, code_of(rotated)) == (410, "journal.rotated")
    assert session.get("/changes?since=x", headers=headers).status_code == 400


def test_a_role_is_told_only_of_the_paths_that_it_may_use(tmp_path: Path) -> None:
    config = tmp_path / "carrel.toml"
    config.write_text("[files]\nallowed_paths = ['pub']\n")
    role = {"Carrel-Role": "developer"}
    with served(tmp_path / "sessions", config=str(config)) as front:
        session = front.session()
        for name in ("private/a", "pub/b", "private/c"):
            session.put(f"/files/{name}", content=b"1")
        session.post("/operations/move", json={"source": "pub/b", "target": "private/b"})
        whole = session.get("/changes").json()
        assert len(whole["events"]) == 6
        mine = session.get("/changes", headers=role).json()
        assert [event["path"] for event in mine["events"]] == ["pub", "pub/b"]
        assert mine["next"] == whole["next"]
        with front.client.stream("GET", f"{session.path}/changes", headers=EVENTS | role) as answer:
            stream = events(answer)
            seen = [next(stream)[2]["path"] for _ in range(2)]
            session.put("/files/private/d", content=b"1")
            session.put("/files/pub/e", content=b"1")
            seen.append(next(stream)[2]["path"])
        assert seen == ["pub", "pub/b", "pub/e"]
