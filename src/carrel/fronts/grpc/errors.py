"""Errors over gRPC: a status, a message, and the whole error in trailing metadata."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import grpc

from carrel.errors import CarrelError
from carrel.remote.json_codec import render_error
from carrel.remote.transport.grpc_channel import ERROR_METADATA, USER_AGENT
from carrel.service.error_status import error_status

DETAILS_CHARACTERS = 500
ERROR_BYTES = 2**12
"""Maximum size of an error in metadata: most clients reject metadata of 8 KiB."""
OWN_ERROR_BYTES = 2**16
"""The same for carrel's own clients, which accept more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcStatus:
    """The status of a failed call."""

    status: grpc.StatusCode
    details: str
    metadata: tuple[tuple[str, bytes], ...]

    @classmethod
    def of(cls, error: CarrelError, user_agent: str) -> RpcStatus:
        """Return the status for *error*."""
        row = error_status(error.code)
        document = render_error(error, retry=row.retry)
        max_bytes = OWN_ERROR_BYTES if user_agent.startswith(USER_AGENT) else ERROR_BYTES
        return cls(
            status=grpc.StatusCode[row.grpc_status],
            details=_escape(error.message[:DETAILS_CHARACTERS]),
            metadata=((ERROR_METADATA, _render_within(document, max_bytes)),),
        )


def _escape(text: str) -> str:
    """Escape characters that UTF-8 cannot encode."""
    return text.encode("utf-8", "backslashreplace").decode()


def _render_within(document: dict[str, Any], max_bytes: int) -> bytes:
    """Render the error in at most *max_bytes*, shortening long texts, which repeat the request."""
    text = json.dumps(document).encode()
    if len(text) <= max_bytes:
        return text
    # Each character takes at most six bytes.
    room = max_bytes // 16
    cut = {name: value[:room] if isinstance(value, str) else value for name, value in document.items()}
    return json.dumps(cut).encode()
