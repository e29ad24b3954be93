"""JSON-RPC lines: read the id and the kind without full parsing, and answer malformed ones."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from mcp_types import INVALID_REQUEST, PARSE_ERROR
from msgspec import UNSET, Struct, UnsetType, field

CANCEL = "notifications/cancelled"


class _Head(Struct):
    id: Any = UNSET  # Any: whatever a client sends
    method: Any = UNSET
    result: msgspec.Raw | UnsetType = UNSET
    error: msgspec.Raw | UnsetType = UNSET


class _Cancelled(Struct, kw_only=True):
    request_id: int | str = field(name="requestId")


class _Cancel(Struct, kw_only=True):
    method: str
    params: _Cancelled


_heads = msgspec.json.Decoder(_Head)
_cancels = msgspec.json.Decoder(_Cancel)
_DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def expects_no_response(line: bytes) -> bool:
    """Whether *line* is a notification, or an answer to what was asked here: neither is answered."""
    try:
        head = _heads.decode(line)
    except _DECODE_ERRORS:
        return False
    if isinstance(head.method, str):
        return head.id is UNSET
    return head.method is UNSET and not (head.result is UNSET and head.error is UNSET)


def parse_request_id(line: bytes) -> int | str | None:
    """The number of the request; `None` if it has none."""
    try:
        number = _heads.decode(line).id
    except _DECODE_ERRORS:
        return None
    return number if isinstance(number, int | str) else None


def parse_cancelled_id(line: bytes) -> int | str | None:
    """The number of the request that *line* cancels; `None` if it cancels none."""
    try:
        found = _cancels.decode(line)
    except _DECODE_ERRORS:
        return None
    return found.params.request_id if found.method == CANCEL else None


TOO_LONG = "the line is too long"
_INVALID_JSON = "the line is no JSON that can be read here"
_INVALID_MESSAGE = "the line is no message of this protocol, or holds what UTF-8 cannot say"


def error_for_malformed_line(line: bytes) -> bytes | None:
    """The answer to *line*, which is no message; `None` if nobody waits for one."""
    if not line.strip():
        return None
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return render_error_line(PARSE_ERROR, _INVALID_JSON)
    if not isinstance(document, dict):
        return render_error_line(INVALID_REQUEST, _INVALID_MESSAGE)
    if "method" not in document and ("result" in document or "error" in document):
        return None
    number = document.get("id")
    return render_error_line(
        INVALID_REQUEST, _INVALID_MESSAGE, number if type(number) in (int, str) else None
    )


def render_error_line(code: int, problem: str, number: int | str | None = None) -> bytes:
    """An error for the request *number*, or for one whose number is not known."""
    error = {"code": code, "message": problem}
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode()
