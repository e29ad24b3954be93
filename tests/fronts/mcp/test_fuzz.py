"""Whatever lines come on standard input, the process stays, and later requests are answered."""

from __future__ import annotations

import itertools
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fronts.mcp.test_command import REQUESTS, argv, line

VALUES = [
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "1e999",
    "9" * 5000,
    '""',
    '"x"',
    '"\\u0000"',
    '"\\ud800"',
    "[]",
    "[1]",
    "{}",
    '{"a": {"b": []}}',
    "[" * 500 + "]" * 500,
    '{"a":' * 500 + "1" + "}" * 500,
]
"""JSON of every kind, also such as few can read."""
TEMPLATES = [
    '{"jsonrpc": @, "id": 7, "method": "ping"}',
    '{"jsonrpc": "2.0", "id": @, "method": "ping"}',
    '{"jsonrpc": "2.0", "id": 7, "method": @}',
    '{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": @}',
    '{"jsonrpc": "2.0", "method": @}',
    '{"jsonrpc": "2.0", "id": @, "result": @}',
    '{"jsonrpc": "2.0", "id": 7, "error": @}',
    '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": @}',
    '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": @}}',
    '{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7, "reason": @}}',
    '{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": @, "progress": @}}',
    '{"jsonrpc": "2.0", "method": "notifications/initialized", "params": @}',
    '{"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": @}',
    '{"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"cursor": @}}',
    '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": @}',
    '{"jsonrpc": "2.0", "id": @, "method": "tools/call", "params": {"name": "file_list", "arguments": {}}}',
    '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": @, "arguments": {}}}',
    '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "file_list", "arguments": @}}',
    '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "file_list", "arguments": {},'
    ' "_meta": @}}',
    '{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "file_list", "arguments": {},'
    ' "_meta": {"progressToken": @}}}',
    '{"jsonrpc": "2.0", "id": 7, "method": "resources/list", "params": {"cursor": @}}',
    '{"jsonrpc": "2.0", "id": 7, "method": "resources/read", "params": {"uri": @}}',
    '{"jsonrpc": "2.0", "id": 7, "method": "resources/subscribe", "params": {"uri": @}}',
    '{"jsonrpc": "2.0", "id": 7, "method": "logging/setLevel", "params": {"level": @}}',
    "@",
    "[@, @]",
]
"""The messages of the protocol, with something else in one of their fields."""
ODD_LINES = [
    b"\xff\xfe\n",
    b"\0\n",
    b"\n\n\n",
    b'{"jsonrpc": "2.0", "id": 7, "method": "ping\xff"}\n',
    b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "id": 8}\n',
    b'[{"jsonrpc": "2.0", "id": 7, "method": "ping"}]\n',
    b'{"jsonrpc": "2.0", "id": 7, "method": "ping"}\n' * 2,
    b"x" * 2**20 + b"\n",
    b"[" * 10**5 + b"\n",
]


class Process:
    """A server that is asked something now and then."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._numbers = itertools.count(1)

    def survives(self, lines: bytes) -> None:
        """Send *lines*; a request after them must be answered."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        number = f"after {next(self._numbers)}"
        ping = {"jsonrpc": "2.0", "id": number, "method": "ping"}
        self._process.stdin.write(lines + line(ping))
        self._process.stdin.flush()
        while answer := self._process.stdout.readline():
            document: dict[str, Any] = json.loads(answer)
            if document.get("id") == number:
                assert document["result"] == {}
                return
        raise AssertionError(f"it ended with {self._process.wait(30)} after {lines[:300]!r}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    words = argv(tmp_path_factory.mktemp("fuzz") / "sessions", "--role", "developer")
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        made = Process(process)
        made.survives(b"".join(map(line, REQUESTS)))
        yield made
        process.kill()


@pytest.mark.parametrize("template", TEMPLATES)
def test_anything_in_any_field_leaves_the_rest_as_it_is(server: Process, template: str) -> None:
    for value in VALUES:
        server.survives(template.replace("@", value).encode() + b"\n")


@pytest.mark.parametrize("odd", ODD_LINES, ids=range(len(ODD_LINES)))
def test_lines_that_are_no_messages_are_passed_over(server: Process, odd: bytes) -> None:
    server.survives(odd)


def test_an_end_in_the_middle_of_a_line_is_an_end(tmp_path: Path) -> None:
    done = subprocess.run(
        argv(tmp_path), input=line(REQUESTS[0])[:20], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
).map(json.dumps)


@pytest.mark.thorough
@settings(max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    template=st.sampled_from(TEMPLATES), value=JSON | st.sampled_from(VALUES), noise=st.binary(max_size=50)
)
def test_so_does_whatever_else_comes(server: Process, template: str, value: str, noise: bytes) -> None:
    server.survives(noise.replace(b"\n", b"") + b"\n" + template.replace("@", value).encode() + b"\n")
