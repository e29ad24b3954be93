"""Commands and code over HTTP."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from tests.fronts.http.front import Session, code_of

EVENTS = {"Accept": "text/event-stream"}


def parsed(lines: Iterator[str]) -> Iterator[tuple[str, int | None, Any]]:
    """The events of a stream: name, number and document."""
    name, number, data = "", None, ""
    for line in lines:
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("id: "):
            number = int(line[4:])
        elif line.startswith("data: "):
            data = line[6:]
        elif not line and name:
            yield name, number, json.loads(data)
            name, number, data = "", None, ""


def events(answer: httpx2.Response) -> Iterator[tuple[str, int | None, Any]]:
    assert answer.headers["content-type"].startswith("text/event-stream")
    return parsed(answer.iter_lines())


def printed_by(result: Any, stream: str) -> bytes:
    """What a command printed, as its result tells it."""
    text: str = result[stream]
    return text.encode() if result["encoding"] == "utf-8" else b64decode(text)


def test_a_command_is_run_to_its_end(session: Session) -> None:
    session.put("/files/a.txt", content=b"b\na\n")
    answer = session.post("/exec", json={"command": "sort a.txt missing"}).json()
    assert answer["is_done"] is True
    assert printed_by(answer["result"], "stdout") == b""
    assert b"missing" in printed_by(answer["result"], "stderr")
    assert answer["result"]["exit_code"] == 2


def test_standard_input_is_text_or_base64(session: Session) -> None:
    for stdin in (
        {"stdin": "grüß"},
        {"stdin": b64encode("grüß".encode()).decode(), "stdin_encoding": "base64"},
    ):
        answer = session.post("/exec", json={"command": "cat", **stdin}).json()
        assert printed_by(answer["result"], "stdout").decode() == "grüß"


def test_a_shell_with_a_name_remembers_where_it_is(session: Session) -> None:
    session.put("/files/d/f", content=b"in")
    session.post("/exec", json={"command": "cd d", "shell": "mine"})
    for name, where in (("mine", b"/workspace/d\n"), ("other", b"/workspace\n")):
        answer = session.post("/exec", json={"command": "pwd", "shell": name}).json()
        assert printed_by(answer["result"], "stdout") == where


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"command": "ls", "code": "1"},
        {"command": "ls", "stateful": True},
        {"command": "ls", "cwd": "/workspace"},
        {"command": "ls", "name": "cell"},
        {"command": 1},
        {"command": "ls", "timeout_seconds": 0},
        {"command": "ls", "stdin": "?", "stdin_encoding": "base64"},
        {"command": "ls", "nonsense": 1},
    ],
)
def test_what_cannot_be_run_is_refused(session: Session, body: dict[str, object]) -> None:
    answer = session.post("/exec", json=body)
    assert (answer.status_code, code_of(answer)) == (400, "request.invalid")


def test_a_role_that_may_not_run_code_is_told(session: Session) -> None:
    answer = session.post("/exec", json={"code": "print(1)", "context": {"role": "critic"}})
    assert (answer.status_code, code_of(answer)) == (403, "access.role")


def test_output_comes_as_events_while_it_is_printed(session: Session) -> None:
    body = {"command": "printf 'a\\377b'; ls missing; echo end"}
    with session.front.client.stream("POST", f"{session.path}/exec", json=body, headers=EVENTS) as answer:
        seen = list(events(answer))
    assert (seen[0][0], seen[-1][0]) == ("start", "exit")
    printed = {"stdout": b"", "stderr": b""}
    offset = 0
    for name, number, document in seen[1:-1]:
        data = document["text"].encode() if "text" in document else b64decode(document["base64"])
        printed[name] += data
        offset += len(data)
        assert number == offset
    assert printed["stdout"] == b"a\xffbend\n"
    assert seen[-1][1] == offset
    assert printed_by(seen[-1][2], "stdout") == printed["stdout"]
    assert printed_by(seen[-1][2], "stderr") == printed["stderr"]


def test_a_reader_that_comes_back_goes_on_where_it_was(session: Session) -> None:
    client = session.front.client
    body = {"command": "printf abcdef; sleep 30"}
    with client.stream("POST", f"{session.path}/exec", json=body, headers=EVENTS) as answer:
        stream = events(answer)
        _, _, started = next(stream)
        assert next(stream) == ("stdout", 6, {"text": "abcdef"})
    place = f"/exec/{started['execution_id']}"
    assert session.get(place).json()["is_done"] is False
    with client.stream("GET", f"{session.path}{place}", headers=EVENTS | {"Last-Event-ID": "2"}) as answer:
        stream = events(answer)
        assert next(stream)[0] == "start"
        assert next(stream) == ("stdout", 6, {"text": "cdef"})
        assert session.delete(place).status_code == 204
        *_, (name, _, result) = stream
    assert name == "exit"
    assert result["exit_code"] != 0
    assert session.get(place).json()["result"]["exit_code"] == result["exit_code"]


def test_an_execution_that_is_not_there_is_unknown(session: Session) -> None:
    for method in ("GET", "DELETE"):
        answer = session.request(method, "/exec/none")
        assert (answer.status_code, code_of(answer)) == (404, "request.unknown")


@pytest.mark.parametrize("encoding", ["utf-8", "base64"])
def test_input_that_cannot_be_in_its_encoding_is_refused(session: Session, encoding: str) -> None:
    body = f'{{"command": "cat", "stdin": "\\ud800", "stdin_encoding": "{encoding}"}}'
    answer = session.post("/exec", content=body)
    assert (answer.status_code, code_of(answer)) == (400, "request.invalid")


def test_events_are_for_who_prefers_them(session: Session) -> None:
    for accept, kind in (
        ("application/json, text/plain, */*", "application/json"),
        ("text/event-stream;q=0.5, application/json", "application/json"),
        ("text/event-stream, application/json;q=0.5", "text/event-stream; charset=utf-8"),
    ):
        answer = session.post("/exec", json={"command": "true"}, headers={"Accept": accept})
        assert answer.headers["content-type"] == kind
        assert answer.headers["vary"] == "Accept"
