"""`carrel tool` calls one tool on the files of a session, and prints its answer."""

from __future__ import annotations

import json
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from carrel.sessions.manager import WorkspaceManager
from tests.command_line import Answer
from tests.fronts.cli.conftest import Carrel


@pytest.fixture(autouse=True)
def guest(guest_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the guest that is compiled."""
    monkeypatch.setenv("CARREL_CACHE", str(guest_cache))


def call(carrel: Carrel, name: str, arguments: Any, *words: str) -> Answer:
    return carrel("tool", "s1", name, json.dumps(arguments), *words)


def tree(carrel: Carrel) -> dict[str, bytes]:
    """What the session holds."""
    root = carrel.workspace("s1")
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


# The answer


def test_the_answer_is_one_line_of_json(carrel: Carrel, session: str) -> None:
    answer = call(carrel, "file_read", {"path": "a.txt"})
    assert (answer.status, answer.err, answer.out.count(b"\n")) == (0, "", 1)
    assert answer.json["success"] is True
    assert answer.json["output"] == "one\ntwo\nthree\n"
    assert answer.json["metadata"]["path"] == "/workspace/a.txt"
    assert str(carrel.sessions) not in answer.out.decode()


def test_a_session_is_made_if_it_is_missing(carrel: Carrel) -> None:
    answer = call(carrel, "file_write", {"path": "a", "content": "x"}, "--role", "developer")
    assert answer.json["output"] == "/workspace/a"
    assert (carrel.workspace("s1") / "a").read_text() == "x"


def test_files_last_from_call_to_call_in_their_session(carrel: Carrel) -> None:
    role = ("--role", "developer")
    carrel("tool", "persist-test", "file_write", '{"path": "data.txt", "content": "test data"}', *role)
    again = carrel("tool", "persist-test", "file_read", '{"path": "data.txt"}', *role)
    assert again.json["output"] == "test data"
    other = carrel("tool", "other-test", "file_read", '{"path": "data.txt"}', *role)
    assert other.json["metadata"]["code"] == "path.missing"


def test_the_names_are_those_of_the_profile(carrel: Carrel, session: str) -> None:
    answer = call(carrel, "exists", {"path": "a.txt"}, "--profile", "files")
    assert answer.json["data"] == {"exists": True, "type": "file"}
    assert call(carrel, "exists", {"path": "a.txt"}).json["metadata"]["code"] == "tool.unknown"


@pytest.mark.parametrize(
    ("name", "arguments", "code", "status"),
    [
        ("file_read", {"path": "missing"}, "path.missing", 1),
        ("file_read", {"path": "../secret"}, "path.escape", 3),
        ("file_read", {"path": "a.txt", "nope": 1}, "tool.arguments", 2),
        ("file_read", ["a.txt"], "tool.arguments", 2),
        ("file_read", {"path": "/etc/passwd"}, "access.outside", 3),
        ("nope", {}, "tool.unknown", 3),
        ("bash", {"command": "false"}, "tool.status", 1),
    ],
)
def test_the_exit_status_of_a_failure_is_that_of_its_code(
    carrel: Carrel, session: str, name: str, arguments: Any, code: str, status: int
) -> None:
    before = tree(carrel)
    answer = call(carrel, name, arguments)
    assert (answer.status, answer.err) == (status, "")
    assert answer.json["success"] is False
    assert answer.json["metadata"]["code"] == code
    assert tree(carrel) == before


def test_a_time_for_operations_on_files_may_be_given(carrel: Carrel, session: str) -> None:
    assert call(carrel, "file_read", {"path": "a.txt"}, "--timeout-ms", "60000").status == 0
    assert call(carrel, "file_read", {"path": "a.txt"}, "--timeout-ms", "0").status == 2


# Arguments


def test_arguments_may_come_by_standard_input(carrel: Carrel, session: str) -> None:
    answer = carrel("tool", session, "file_read", "-", stdin=b'{"path": "a.txt"}\n')
    assert answer.json["output"] == "one\ntwo\nthree\n"


def test_without_arguments_the_tool_is_given_none(carrel: Carrel, session: str) -> None:
    answer = carrel("tool", session, "file_read")
    assert answer.status == 2
    assert "'path' is missing" in answer.json["error"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b'{"path": a}', "line 1, column 10"),
        (b'{\n"path": "a" 1}', "line 2, column 13"),
        (b"", "line 1, column 1"),
        (b'{"path": NaN}', "NaN is not a JSON number"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"path": "\xff"}', "byte 11"),
        (
            b'{"limit": ' + b"9" * 5000 + b"}",
            "The arguments are not valid JSON: a number of 5000 digits is too long.",
        ),
    ],
)
def test_arguments_that_are_not_json_are_refused_with_their_place(
    carrel: Carrel, text: bytes, says: str
) -> None:
    answer = carrel("tool", "s1", "file_read", "-", stdin=text)
    assert (answer.status, answer.out) == (2, b"")
    assert says in answer.err
    assert answer.err.count("\n") == 1
    assert not carrel.sessions.exists()


@pytest.mark.parametrize(
    "words", [(), ("s1",), ("s1", "file_read", "{}", "x"), ("s1", "x", "--profile", "x")]
)
def test_words_that_make_no_sense_are_refused(carrel: Carrel, words: tuple[str, ...]) -> None:
    answer = carrel("tool", *words, "--json")
    assert (answer.status, answer.out) == (2, b"")
    assert answer.error["code"] == "cli.usage"
    assert not carrel.sessions.exists()


def test_what_is_no_session_is_an_error_of_the_command(carrel: Carrel) -> None:
    answer = carrel("tool", "../x", "file_read", "--json")
    assert (answer.status, answer.out) == (2, b"")
    assert answer.error["code"] == "session.invalid_id"


# Roles


def test_without_a_role_nothing_can_be_changed(carrel: Carrel, session: str) -> None:
    before = tree(carrel)
    answer = call(carrel, "file_write", {"path": "new", "content": "x"})
    assert (answer.status, answer.json["metadata"]["code"]) == (3, "tool.unknown")
    assert call(carrel, "bash", {"command": "rm a.txt"}).json["success"] is False
    assert tree(carrel) == before


def test_a_session_has_a_role_of_its_own_which_the_option_overrides(carrel: Carrel) -> None:
    assert carrel("session", "create", "s1", "--role", "developer").status == 0
    write = {"path": "a", "content": "x"}
    assert call(carrel, "file_write", write).status == 0
    assert call(carrel, "file_write", write, "--role", "critic").status == 3
    assert call(carrel, "file_write", write, "--role", "").status == 3


def test_the_journal_names_an_agent(carrel: Carrel, session: str) -> None:
    assert call(carrel, "file_write", {"path": "a", "content": "x"}, "--role", "developer").status == 0
    with WorkspaceManager(carrel.sessions).open(session) as workspace:
        event = list(workspace.changes())[-1]
    assert (event.actor, event.operation, event.path) == ("agent", "write", "a")


# Commands and code


def test_code_runs_with_an_engine_of_its_own(carrel: Carrel, session: str) -> None:
    code = "print(open('a.txt').read(3)); open('new', 'w').write('x');"
    answer = call(carrel, "python_executor", {"code": code}, "--role", "developer")
    assert (answer.status, answer.err) == (0, "")
    assert answer.json["output"]["stdout"] == "one\n"
    assert tree(carrel)["new"] == b"x"


def test_a_command_may_run_code(carrel: Carrel, session: str) -> None:
    answer = call(carrel, "bash", {"command": "python -c 'print(6 * 7)'"}, "--role", "developer")
    assert answer.json["output"]["stdout"] == "42\n"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("bash", {"command": "touch on; sleep 25", "timeout": 30}),
        ("python_executor", {"code": "open('on', 'w').close()\nwhile True: pass"}),
    ],
)
def test_ctrl_c_stops_a_call_and_nothing_is_printed(
    carrel: Carrel, session: str, monkeypatch: pytest.MonkeyPatch, name: str, arguments: dict[str, Any]
) -> None:
    monkeypatch.setenv("CARREL_SHELL_PIPELINES", "1")
    child = carrel.start("tool", session, name, json.dumps(arguments), "--role", "developer")
    wait_for(child, carrel.workspace(session) / "on")
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=60) == (b"", b"")
    assert child.returncode == 130
    assert carrel.drafts == []
    with WorkspaceManager(carrel.sessions).open(session) as workspace:
        workspace.write("after", b"x")


def wait_for(child: subprocess.Popen[bytes], file: Path) -> None:
    """Wait until *child* has made the file."""
    for _ in range(600):
        if file.exists():
            return
        with suppress(subprocess.TimeoutExpired):
            child.wait(0.1)
    child.kill()
    pytest.fail("it did not begin")
