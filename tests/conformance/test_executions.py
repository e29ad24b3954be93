"""The same command lines and code through every door: what they print, and how they end."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from carrel.remote.json_codec import parse, render
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.sandbox.factory import workspace_sandbox
from carrel.sandbox.shell import Shell
from carrel.shell.result import ShellResult
from tests.conformance.answer import plain
from tests.conformance.client_door import ByClient
from tests.conformance.door import Door, Doors
from tests.conformance.grpc_door import Grpc
from tests.conformance.http_door import API, Http
from tests.conformance.library import Library
from tests.conformance.row import Row

COMMANDS = (
    "pwd",
    "ls",
    "ls -la d",
    "cat a.txt",
    "cat missing",
    "cat a.txt missing d/b.txt",
    "cat big.txt",
    "cat binary.bin",
    "cat",
    "head -n 1 a.txt",
    "grep -rn two .",
    "grep nothing a.txt",
    "wc -l a.txt big.txt",
    "find . -name '*.txt'",
    "echo one two",
    "echo $HOME",
    "cat ../x",
    "cat /etc/passwd",
    "cat out/secret",
    "cd d",
    "cd missing",
    "false",
    "exit 7",
    "no-such-command",
    "cat a.txt | wc -l",
    "echo 'unclosed",
    "",
    "mkdir x",
    "cp a.txt c.txt",
    "mv a.txt d/b.txt",
    "rm -r d",
    "touch ../x",
    "sed -i s/two/zwei/ a.txt",
)
CODES = (
    "print(6 * 7)",
    "import sys; print('to err', file=sys.stderr); sys.exit(3)",
    "print(open('a.txt').read())",
    "open('made.txt', 'w').write('by the guest')",
    "open('/etc/passwd')",
    "1 / 0",
    "syntax error",
    "print(input())",
)
Run = Callable[[Door, str, str], Any]  # Any: a result as JSON says it


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_line_does_the_same_through_every_door(command: str, doors: Doors) -> None:
    _same(command, doors, _commanded)


def test_code_does_the_same_through_every_door(doors: Doors, guest_cache: Path) -> None:
    """In one test, since it is one guest that has to be started for it."""
    for code in CODES:
        _same(code, doors, _executed)


def _same(text: str, doors: Doors, run: Run) -> None:
    row = Row(text=text, name="run", arguments={})
    expected = left = None
    for door in (doors.library, *doors.others):
        if not isinstance(door, Library | ByClient | Http | Grpc):
            continue
        session = doors.places.session(door.name, row)
        made = plain(run(door, session, text), session)
        found = doors.places.contents(session)
        if expected is None:
            expected, left = made, found
        assert made == expected, f"{door.name}: {text}"
        assert found == left, f"{door.name}: {text}"


def _commanded(door: Door, session: str, command: str) -> Any:
    match door:
        case Library():
            shell = Shell(door.workspace(session))
            return _shown(shell.run(command, stdin=b"some input\n"))
        case ByClient():
            shell_there = door.workspace(session).shell()
            return _shown(shell_there.run(command, stdin=b"some input\n"))
        case Http():
            body = {"command": command, "stdin": "some input\n"}
            return _decoded(door.post(f"{API}/sessions/{session}/exec", body).json["result"])
    assert isinstance(door, Grpc)
    request = messages.ExecuteCommandStreamRequest(session_id=session, command=command, stdin=b"some input\n")
    return _streamed(door.sandbox.ExecuteCommandStream(request, timeout=60))


def _executed(door: Door, session: str, code: str) -> Any:
    match door:
        case Library():
            sandbox = workspace_sandbox(door.workspace(session), None)
            return _quiet(render(sandbox.execute(code, stdin=b"some input\n")))
        case ByClient():
            with door.workspace(session).sandbox() as sandbox_there:
                return _quiet(render(sandbox_there.execute(code, stdin=b"some input\n")))
        case Http():
            body = {"code": code, "stdin": "some input\n"}
            return _quiet(door.post(f"{API}/sessions/{session}/exec", body).json["result"])
    assert isinstance(door, Grpc)
    request = messages.ExecutePythonStreamRequest(session_id=session, code=code, stdin=b"some input\n")
    *_, last = door.sandbox.ExecutePythonStream(request, timeout=60)
    return _quiet(json.loads(last.result_json))


def _shown(result: ShellResult) -> Any:
    return _decoded(render(result))


def _decoded(document: dict[str, Any]) -> Any:
    """The result with its output as bytes and without its duration."""
    result = parse(document, ShellResult)
    return {**document, "stdout": result.stdout, "stderr": result.stderr, "duration_ms": None}


def _streamed(events: Any) -> Any:
    """The result with what came piece by piece before it."""
    printed = {"stdout": b"", "stderr": b""}
    result: dict[str, Any] = {}
    for event in events:
        kind = event.WhichOneof("event")
        if kind in printed:
            printed[kind] += getattr(event, kind)
        elif kind == "result_json":
            result = json.loads(event.result_json)
    told = _decoded(result)
    assert (told["stdout"] or printed["stdout"], told["stderr"] or printed["stderr"]) == tuple(
        printed.values()
    )
    return {**told, **printed}


def _quiet(document: dict[str, Any]) -> Any:
    """The result without what differs from run to run."""
    left_out = {"duration_ms", "memory_used_bytes", "fuel_consumed", "workspace_path", "metadata"}
    return {name: value for name, value in document.items() if name not in left_out}
