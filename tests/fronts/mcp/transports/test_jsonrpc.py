"""Lines that are no message are answered, so that nobody waits for ever."""

from __future__ import annotations

import json

import pytest
from mcp_types import INVALID_REQUEST, PARSE_ERROR, JSONRPCError

from carrel.fronts.mcp.transports.jsonrpc import error_for_malformed_line


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        (b"no json", PARSE_ERROR, None),
        (b"\xff\xfe", PARSE_ERROR, None),
        (b"[" * 10**5, PARSE_ERROR, None),
        (b'{"id": ' + b"9" * 5000 + b"}", PARSE_ERROR, None),
        (b"5", INVALID_REQUEST, None),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', INVALID_REQUEST, None),
        (b'{"id": 7, "method": "ping"}', INVALID_REQUEST, 7),
        (b'{"jsonrpc": "2.0", "id": "a", "method": "tools/call", "params": [1]}', INVALID_REQUEST, "a"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "x", "params": {"a": "\\ud800"}}', INVALID_REQUEST, 1),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc": "2.0", "id": [1], "method": "ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc": "2.0", "id": 2}', INVALID_REQUEST, 2),
    ],
)
def test_a_line_that_is_no_message_is_told_so(line: bytes, code: int, number: object) -> None:
    told = error_for_malformed_line(line)
    assert told is not None
    answer = JSONRPCError.model_validate(json.loads(told))
    assert (answer.error.code, answer.id) == (code, number)


@pytest.mark.parametrize("line", [b"\n", b" \r\n", b'{"id": 1, "result": 5}', b'{"id": 1, "error": "x"}'])
def test_nobody_waits_for_an_answer_to_an_answer(line: bytes) -> None:
    assert error_for_malformed_line(line) is None
