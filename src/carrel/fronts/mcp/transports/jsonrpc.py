"""JSON-RPC messages: parse their ids without validating them, and render errors for malformed ones."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from mcp_types import INVALID_REQUEST, PARSE_ERROR
from msgspec import UNSET, Struct, UnsetType, field

CANCEL = "notifications/cancelled"


class _Head(Struct):
    id: Any = UNSET  # Any: any JSON
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
    """Whether *line* is a notification or a response, neither of which is answered."""
    try:
        head = _heads.decode(line)
    except _DECODE_ERRORS:
        return False
    if isinstance(head.method, str):
        return head.id is UNSET
    return head.method is UNSET and not (head.result is UNSET and head.error is UNSET)


def parse_request_id(line: bytes) -> int | str | None:
    """Return the id of a request, or `None`."""
    try:
        request_id = _heads.decode(line).id
    except _DECODE_ERRORS:
        return None
    return request_id if isinstance(request_id, int | str) else None


def parse_cancelled_id(line: bytes) -> int | str | None:
    """Return the id of the request that *line* cancels, or `None`."""
    try:
        found = _cancels.decode(line)
    except _DECODE_ERRORS:
        return None
    return found.params.request_id if found.method == CANCEL else None


TOO_LONG = "the line is too long"
_INVALID_JSON = "the line is not valid JSON"
_INVALID_MESSAGE = "the line is not a message of this protocol, or not valid UTF-8"


def error_for_malformed_line(line: bytes) -> bytes | None:
    """Return the error for a malformed line, or `None` if it must not be answered."""
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
    request_id = document.get("id")
    return render_error_line(
        INVALID_REQUEST, _INVALID_MESSAGE, request_id if type(request_id) in (int, str) else None
    )


def render_error_line(code: int, problem: str, request_id: int | str | None = None) -> bytes:
    """Render an error for the request *request_id*, or for one without a valid id."""
    error = {"code": code, "message": problem}
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}).encode()
