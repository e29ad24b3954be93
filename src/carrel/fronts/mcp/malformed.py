"""Lines that are no message: what whoever sent them is told, and does not wait for in vain."""

from __future__ import annotations

import json

from mcp_types import INVALID_REQUEST, PARSE_ERROR

TOO_LONG = "the line is too long"
_NO_JSON = "the line is no JSON that can be read here"
_NO_MESSAGE = "the line is no message of this protocol, or holds what UTF-8 cannot say"


def complaint(line: bytes) -> bytes | None:
    """The answer to *line*, which is no message; `None` if nobody waits for one."""
    if not line.strip():
        return None
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return refused(PARSE_ERROR, _NO_JSON)
    if not isinstance(document, dict):
        return refused(INVALID_REQUEST, _NO_MESSAGE)
    if "method" not in document and ("result" in document or "error" in document):
        return None
    number = document.get("id")
    return refused(INVALID_REQUEST, _NO_MESSAGE, number if type(number) in (int, str) else None)


def refused(code: int, problem: str, number: int | str | None = None) -> bytes:
    """An error for the request *number*, or for one whose number is not known."""
    error = {"code": code, "message": problem}
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode()
