"""How an error is told over gRPC: a status, a sentence, and all of it in the trailing metadata."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import grpc

from carrel.errors import CarrelError
from carrel.remote.forms import render_error
from carrel.remote.grpc_channel import CLIENT, ERROR
from carrel.service.wire import wire

DETAILS_CHARACTERS = 500
ERROR_BYTES = 2**12
"""Most clients refuse metadata of 8 KiB."""
OWN_ERROR_BYTES = 2**16
"""Those of ours take more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What a call is answered that failed."""

    status: grpc.StatusCode
    details: str
    metadata: tuple[tuple[str, bytes], ...]

    @classmethod
    def of(cls, error: CarrelError, user_agent: str) -> Refusal:
        """What a client is told of *error*."""
        row = wire(error.code)
        document = render_error(error, retry=row.retry)
        most = OWN_ERROR_BYTES if user_agent.startswith(CLIENT) else ERROR_BYTES
        return cls(
            status=grpc.StatusCode[row.grpc_status],
            details=_plain(error.message[:DETAILS_CHARACTERS]),
            metadata=((ERROR, _fitting(document, most)),),
        )


def _plain(text: str) -> str:
    """What a header can hold."""
    return text.encode("utf-8", "backslashreplace").decode()


def _fitting(document: dict[str, Any], most: int) -> bytes:
    """The error in no more than *most* bytes: the request that was too long need not be repeated."""
    text = json.dumps(document).encode()
    if len(text) <= most:
        return text
    # Each character takes six bytes at most.
    room = most // 16
    cut = {name: value[:room] if isinstance(value, str) else value for name, value in document.items()}
    return json.dumps(cut).encode()
