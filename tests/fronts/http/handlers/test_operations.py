"""The operations of a workspace over HTTP."""

from __future__ import annotations

import os

import pytest

from carrel.remote.json_codec import render
from carrel.service.operations import OPERATIONS
from tests.fronts.http.front import Session, code_of


def run(session: Session, name: str, **arguments: object) -> object:
    answer = session.post(f"/operations/{name}", json=arguments)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_an_operation_gives_what_the_method_gives(session: Session) -> None:
    info = run(session, "write", path="d/f", data="one\ntwo\n")
    with session.front.service.tenants.own.open(session.id) as workspace:
        assert info == render(workspace.stat("d/f")) | {"created_ns": None}
        assert run(session, "read_text", path="d/f") == "one\ntwo\n"
        assert run(session, "read_lines", path="d/f", start=2) == render(workspace.read_lines("d/f", start=2))
        assert run(session, "search", query="t.o") == render(workspace.search("t.o"))
        assert run(session, "glob", pattern="d/*") == ["d/f"]
        assert run(session, "usage") == render(workspace.usage())
    edited = session.post("/operations/edit", json={"path": "d/f", "old": "two", "new": "2"}).json()
    assert edited["replacements"] == 1
    assert run(session, "remove", path="d", recursive=True) is None
    assert run(session, "exists", path="d") is False


def test_a_search_can_be_asked_in_the_query(session: Session) -> None:
    session.put("/files/a.py", content=b"one\nTWO\n")
    session.put("/files/b.txt", content=b"two\n")
    found = session.get(
        "/search", params={"query": "two", "ignore_case": "true", "include": ["*.py", "*.md"]}
    )
    assert [(match["path"], match["line"]) for match in found.json()["matches"]] == [("a.py", 2)]
    for query in ("", "query=(", "query=a&context=x"):
        assert session.get(f"/search?{query}").status_code == 400


@pytest.mark.parametrize("name", OPERATIONS)
def test_arguments_that_do_not_fit_are_refused(session: Session, name: str) -> None:
    for body in (b'{"nonsense": 1}', b"[]", b'"text"', b"1", b"null", b"{", b"\xff"):
        answer = session.post(f"/operations/{name}", content=body)
        assert (answer.status_code, code_of(answer)) == (400, "request.invalid")


def test_what_is_no_operation_is_unknown(session: Session) -> None:
    for name in ("host_path", "explain", "narrowed", "close", "__init__", "no%2Fsuch"):
        answer = session.post(f"/operations/{name}", json={})
        assert (answer.status_code, code_of(answer)) == (404, "request.unknown")


def test_a_name_that_is_not_utf_8_can_be_given_in_json(session: Session) -> None:
    (session.directory / os.fsdecode(b"a\xff")).write_bytes(b"in")
    answer = session.post("/operations/read_text", content=b'{"path": "a\\udcff"}')
    assert answer.json() == "in"
    listed = session.post("/operations/list_files", content=b"{}")
    assert listed.json() == ["a\udcff"]
    for body in (
        b'{"path": "a\\udcff", "x": 1}',
        b'{"path": "a\\udcff"',
        b'{"path": "a\\udcff", "path": NaN}',
    ):
        refused = session.post("/operations/read_text", content=body)
        assert (refused.status_code, code_of(refused)) == (400, "request.invalid")


def test_an_error_says_what_the_library_says(session: Session) -> None:
    answer = session.post("/operations/read_text", json={"path": "../x"})
    assert answer.status_code == 400
    assert answer.json()["error"] | {"message": ""} == {
        "code": "path.escape",
        "message": "",
        "path": "../x",
        "retry": False,
    }
    edited = session.post("/operations/edit", json={"path": "f", "old": "a", "new": "b"})
    assert (edited.status_code, code_of(edited)) == (404, "path.missing")
