"""Tools over HTTP."""

from __future__ import annotations

from uuid import uuid4

import pytest

from tests.fronts.grpc.handlers.test_executions import FOR_EVER
from tests.fronts.http.front import Front, Session, code_of
from tests.fronts.http.handlers.test_executions import EVENTS, events

DEVELOPER = {"role": "developer"}


def names(answer: object) -> set[str]:
    assert isinstance(answer, dict)
    return {tool["title"] for tool in answer["tools"]}


def test_the_tools_of_a_role_are_listed(front: Front, session: Session) -> None:
    mine = names(session.get("/tools").json())
    assert "file_read" in mine
    assert "file_write" not in mine
    for answer in (
        session.get("/tools?role=developer"),
        session.get("/tools", headers={"Carrel-Role": "developer"}),
        front.client.get("/api/v1/tools?role=developer"),
    ):
        assert "file_write" in names(answer.json())
    shapes = session.get("/tools?profile=files&format=anthropic").json()["tools"]
    assert all("input_schema" in tool for tool in shapes)
    for query in ("profile=none", "format=none"):
        assert session.get(f"/tools?{query}").status_code == 400


def test_a_tool_answers_with_its_envelope(session: Session) -> None:
    body = {"arguments": {"path": "a.txt", "content": "in"}, "context": DEVELOPER}
    written = session.post("/tools/file_write", json=body)
    assert written.status_code == 200
    assert written.json()["success"] is True
    read = session.post("/tools/file_read", json={"arguments": {"path": "a.txt"}}).json()
    assert (read["success"], read["output"]) == (True, "in")


def test_a_failure_is_an_answer(session: Session) -> None:
    answer = session.post("/tools/file_read", json={"arguments": {"path": "missing"}})
    assert answer.status_code == 200
    assert answer.json()["success"] is False
    assert answer.json()["metadata"]["code"] == "path.missing"


def test_a_tool_that_the_role_has_not_is_unknown(session: Session) -> None:
    for name in ("file_write", "no_such_tool"):
        answer = session.post(f"/tools/{name}", json={"arguments": {"path": "f", "content": "x"}})
        assert answer.status_code == 404
        assert answer.json()["success"] is False
    assert session.get("/files").json() == {"entries": []}


def test_a_call_may_be_flat(session: Session) -> None:
    written = session.post(
        "/tools", json={"tool": "file_write", "path": "a.txt", "content": "in", "context": DEVELOPER}
    )
    assert written.json()["success"] is True
    read = session.post("/tools", json={"tool": "file_read", "path": "a.txt"})
    assert read.json()["output"] == "in"
    for body in (
        {},
        {"tool": 1},
        {"tool": "file_read", "context": 1},
        {"tool": "bash", "context": {"role": 1}},
    ):
        answer = session.post("/tools", json=body)
        assert (answer.status_code, code_of(answer)) == (400, "request.invalid")


def test_the_first_call_of_a_tool_makes_its_session(front: Front) -> None:
    session = Session(front, f"new-{uuid4().hex}")
    assert session.get("").status_code == 404
    assert session.post("/tools/file_list", json={"arguments": {"path": "."}}).json()["success"] is True
    assert session.get("").status_code == 200


@pytest.mark.parametrize("body", [b"[]", b'{"arguments": 1}', b'{"more": 1}', b"{"])
def test_a_body_that_is_no_call_is_refused(session: Session, body: bytes) -> None:
    answer = session.post("/tools/file_read", content=body)
    assert (answer.status_code, code_of(answer)) == (400, "request.invalid")


def test_output_comes_as_events_and_the_result_at_last(session: Session) -> None:
    session.put("/files/a.txt", content=b"b\na\n")
    client, body = session.front.client, {"arguments": {"command": "cat a.txt missing"}}
    with client.stream("POST", f"{session.path}/tools/bash", json=body, headers=EVENTS) as answer:
        seen = [(name, document) for name, _, document in events(answer)]
    assert seen[0] == ("stdout", {"text": "b\na\n"})
    assert seen[1][0] == "stderr"
    assert "missing" in seen[1][1]["text"]
    assert [name for name, _ in seen[2:]] == ["result"]
    wanted = session.post("/tools/bash", json=body).json()
    assert (seen[2][1]["output"], seen[2][1]["error"]) == (wanted["output"], wanted["error"])


def test_what_goes_wrong_is_an_event_too(session: Session) -> None:
    client = session.front.client
    for path, body, event, code in (
        ("/tools/file_write", {"arguments": {"path": "f", "content": "x"}}, "result", "tool.unknown"),
        ("/tools/bash", {"context": {"role": "developer"}}, "result", "tool.arguments"),
        ("/tools", {"tool": "bash", "command": "ls", "profile": "none"}, "error", "request.invalid"),
    ):
        with client.stream("POST", f"{session.path}{path}", json=body, headers=EVENTS) as answer:
            assert answer.status_code == 200
            ((name, _, document),) = events(answer)
        found = document["code"] if event == "error" else document["metadata"]["code"]
        assert (name, found) == (event, code)


def test_a_tool_whose_reader_goes_away_is_stopped(session: Session) -> None:
    client = session.front.client
    body = {"arguments": {"code": FOR_EVER, "timeout": 300}, "context": DEVELOPER}
    with client.stream("POST", f"{session.path}/tools/python_executor", json=body, headers=EVENTS) as answer:
        assert next(events(answer))[2] == {"text": "begun\n"}
    # Code in one session waits for other code there, so that has ended by then.
    body = {"arguments": {"code": "print(2)"}, "context": DEVELOPER}
    assert session.post("/tools/python_executor", json=body).json()["output"]["stdout"] == "2\n"
