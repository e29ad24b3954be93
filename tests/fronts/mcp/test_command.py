"""`carrel mcp` as a process: what it reads, what it writes, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp_types import PARSE_ERROR

from carrel.fronts.cli.main import run
from tests.command_line import PROGRAM, execute
from tests.fronts.cli.terminal import CTRL_C, CTRL_D, Terminal

REQUESTS: list[dict[str, Any]] = [  # Any: whatever JSON can say
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "file_list", "arguments": {"path": "."}},
    },
]


def words(sessions: Path, *more: str) -> tuple[str, ...]:
    return ("--sessions-dir", str(sessions), "mcp", "--session", "s1", *more)


def argv(sessions: Path, *more: str) -> list[str]:
    return [*PROGRAM, *words(sessions, *more)]


def line(document: Any) -> bytes:
    return json.dumps(document).encode() + b"\n"


def test_it_serves_pipes_until_it_is_told_to_end(tmp_path: Path) -> None:
    with subprocess.Popen(
        argv(tmp_path), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"this is no message\n" + b"".join(map(line, REQUESTS)))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGTERM)
        rest, complaints = process.communicate(timeout=30)
    assert [answer["id"] for answer in answers] == [None, 1, 2]
    assert answers[0]["error"]["code"] == PARSE_ERROR
    assert answers[1]["result"]["protocolVersion"] == "2025-06-18"
    assert answers[2]["result"]["structuredContent"]["success"] is True
    assert (process.returncode, rest) == (0, b"")
    assert b"Traceback" not in complaints


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (lambda terminal: terminal.type(CTRL_C), 130),
        (lambda terminal: terminal.type(CTRL_D), 0),
        (lambda terminal: terminal.send_signal(signal.SIGTERM), 0),
    ],
    ids=["Ctrl-C", "Ctrl-D", "SIGTERM"],
)
def test_at_a_terminal_it_says_what_it_is_and_can_be_ended(
    tmp_path: Path, end: Callable[[Terminal], None], status: int
) -> None:
    terminal = Terminal(argv(tmp_path), os.environ, tmp_path)
    with closing(terminal):
        assert b"waiting for an MCP client" in terminal.until(b"Ctrl-C ends it")
        terminal.type(line(REQUESTS[0]))
        terminal.until(b'"result"')
        end(terminal)
        assert terminal.status() == status
        assert b"Traceback" not in terminal.shown


def call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def test_nothing_waits_behind_a_long_call_and_quick_ones_are_answered_in_order(tmp_path: Path) -> None:
    with subprocess.Popen(
        argv(tmp_path, "--role", "developer", "--profile", "mcp", "--profile", "agent"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "CARREL_SERVE_SHUTDOWN_SECONDS": "0"},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def send(*messages: dict[str, Any]) -> None:
            assert process.stdin is not None
            process.stdin.write(b"".join(map(line, messages)))
            process.stdin.flush()

        def heard(count: int) -> list[dict[str, Any]]:
            assert process.stdout is not None
            return [json.loads(process.stdout.readline()) for _ in range(count)]

        send(*REQUESTS)
        heard(2)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}
        send(call(3, "bash", command="sleep 30", timeout=30), {"jsonrpc": "2.0", "id": 4, "method": "ping"})
        assert [answer["id"] for answer in heard(1)] == [4], "that of the SDK"
        writes = [call(10 + each, "write_file", path="f", content=str(each)) for each in range(20)]
        reads = [call(100 + each, "read_text_file", path="f") for each in range(20)]
        both = [each for pair in zip(writes, reads, strict=True) for each in pair]
        send(*both, cancel, call(200, "list_directory", path="."))
        answers = heard(41)
        assert [answer["id"] for answer in answers] == [*(each["id"] for each in both), 200]
        outputs = [answer["result"]["structuredContent"]["content"] for answer in answers[1:40:2]]
        assert outputs == [str(each) for each in range(20)]
        # The end of the input ends it, though a long call runs again, which gets no answer.
        send(call(5, "bash", command="sleep 30", timeout=30), call(6, "list_directory", path="."))
        assert [answer["id"] for answer in heard(1)] == [6]
        rest, complaints = process.communicate(timeout=30)
    assert (process.returncode, rest) == (0, b"")
    assert b"Traceback" not in complaints


def test_what_was_asked_before_the_end_of_the_input_is_answered(tmp_path: Path) -> None:
    asked = [*REQUESTS, call(7, "bash", command="sleep 0.1"), {"jsonrpc": "2.0", "id": 8, "method": "ping"}]
    answer = execute(*words(tmp_path, "--role", "developer"), stdin=b"".join(map(line, asked)))
    answers = {each["id"]: each["result"] for each in map(json.loads, answer.lines)}
    assert set(answers) == {1, 2, 7, 8}
    assert answers[7]["structuredContent"]["success"] is True
    assert answer.status == 0


@pytest.mark.parametrize("count", [1, 2])
def test_it_serves_sockets_be_it_one_for_both_ways(tmp_path: Path, count: int) -> None:
    ours, theirs = zip(*(socket.socketpair() for _ in range(count)), strict=True)
    with subprocess.Popen(
        argv(tmp_path), stdin=theirs[0], stdout=theirs[-1], stderr=subprocess.PIPE
    ) as process:
        for each in theirs:
            each.close()
        with ours[0], ours[-1], ours[-1].makefile("rb") as answers:
            ours[-1].settimeout(60)
            ours[0].sendall(b"".join(map(line, REQUESTS)))
            assert [json.loads(answers.readline())["id"] for _ in range(2)] == [1, 2]
            ours[0].shutdown(socket.SHUT_WR)
            assert answers.read() == b""
        _, complaints = process.communicate(timeout=30)
    assert (process.returncode, complaints) == (0, b"")


def test_it_serves_files_to_their_end(tmp_path: Path) -> None:
    source, target = tmp_path / "requests", tmp_path / "answers"
    source.write_bytes(b"".join(map(line, REQUESTS)))
    with source.open("rb") as stdin, target.open("wb") as stdout:
        done = subprocess.run(
            argv(tmp_path / "sessions"),
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
    answers = [json.loads(each) for each in target.read_bytes().splitlines()]
    assert answers[0]["result"]["protocolVersion"] == "2025-06-18"
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


def test_a_session_that_cannot_be_one_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "--session", "../x"]) == 2
    assert "invalid session id '../x'" in capsys.readouterr().err


def test_a_role_that_nobody_configured_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "--role", "develper"]) == 2
    assert "unknown role 'develper'; the configured roles are: developer" in capsys.readouterr().err
