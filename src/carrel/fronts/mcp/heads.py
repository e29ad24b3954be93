"""What a line is, without reading all of it: a request and its number, or nothing that has an answer."""

from __future__ import annotations

from typing import Any

import msgspec
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
_TROUBLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def is_no_request(line: bytes) -> bool:
    """Whether *line* is a notification, or an answer to what was asked here: neither is answered."""
    try:
        head = _heads.decode(line)
    except _TROUBLE:
        return False
    if isinstance(head.method, str):
        return head.id is UNSET
    return head.method is UNSET and not (head.result is UNSET and head.error is UNSET)


def number_of(line: bytes) -> int | str | None:
    """The number of the request; `None` if it has none."""
    try:
        number = _heads.decode(line).id
    except _TROUBLE:
        return None
    return number if isinstance(number, int | str) else None


def cancelled(line: bytes) -> int | str | None:
    """The number of the request that *line* cancels; `None` if it cancels none."""
    try:
        found = _cancels.decode(line)
    except _TROUBLE:
        return None
    return found.params.request_id if found.method == CANCEL else None
