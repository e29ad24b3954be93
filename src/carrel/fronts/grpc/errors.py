"""Errors over gRPC: a status, a message, and the whole error in the trailing metadata."""

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
"""Most clients refuse metadata of 8 KiB."""
OWN_ERROR_BYTES = 2**16
"""Those of ours take more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcStatus:
    """What a call is answered that failed."""

    status: grpc.StatusCode
    details: str
    metadata: tuple[tuple[str, bytes], ...]

    @classmethod
    def of(cls, error: CarrelError, user_agent: str) -> RpcStatus:
        """What a client is told of *error*."""
        row = error_status(error.code)
        document = render_error(error, retry=row.retry)
        most = OWN_ERROR_BYTES if user_agent.startswith(USER_AGENT) else ERROR_BYTES
        return cls(
            status=grpc.StatusCode[row.grpc_status],
            details=_plain(error.message[:DETAILS_CHARACTERS]),
            metadata=((ERROR_METADATA, _render_within(document, most)),),
        )


def _plain(text: str) -> str:
    """What a header can hold."""
    return text.encode("utf-8", "backslashreplace").decode()


def _render_within(document: dict[str, Any], most: int) -> bytes:
    """The error in no more than *most* bytes: the request that was too long need not be repeated."""
    text = json.dumps(document).encode()
    if len(text) <= most:
        return text
    # Each character takes six bytes at most.
    room = most // 16
    cut = {name: value[:room] if isinstance(value, str) else value for name, value in document.items()}
    return json.dumps(cut).encode()
