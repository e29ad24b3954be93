"""The table from error codes to exit status, HTTP status, gRPC status and retry.

Fronts look errors up here instead of branching on classes. A code of the form `area.*` stands for every code
of that area without a row of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType


class ExitStatus(IntEnum):
    """Exit statuses of the command line."""

    DONE = 0
    FAILED = 1
    """The operation failed: missing, exists already, not a directory, ..."""
    INVALID = 2
    """Bad usage, or input that can never work."""
    REFUSED = 3
    """The path leads out of the workspace, or a rule forbids the operation."""
    LIMIT = 4
    """A limit would be exceeded."""
    UNAVAILABLE = 5
    """Something that the operation needs cannot be used now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorStatus:
    """How one error is reported by each front."""

    exit_status: ExitStatus
    http_status: int
    grpc_status: str
    """The name of the gRPC status."""
    retry: bool = False
    """Whether the same call may succeed later."""


_FAILED, _INVALID, _REFUSED = ExitStatus.FAILED, ExitStatus.INVALID, ExitStatus.REFUSED
_LIMIT, _UNAVAILABLE = ExitStatus.LIMIT, ExitStatus.UNAVAILABLE


def _row(exit_status: ExitStatus, http_status: int, grpc_status: str, *, retry: bool = False) -> ErrorStatus:
    return ErrorStatus(exit_status=exit_status, http_status=http_status, grpc_status=grpc_status, retry=retry)


TABLE: Mapping[str, ErrorStatus] = MappingProxyType(
    {
        "access.denied": _row(_REFUSED, 403, "PERMISSION_DENIED"),
        "access.outside": _row(_REFUSED, 400, "INVALID_ARGUMENT"),
        "access.role": _row(_REFUSED, 403, "PERMISSION_DENIED"),
        "archive.invalid": _row(_INVALID, 400, "INVALID_ARGUMENT"),
        "caller.unknown": _row(_REFUSED, 401, "UNAUTHENTICATED"),
        "carrel.error": _row(_FAILED, 500, "INTERNAL"),
        "config.invalid": _row(_INVALID, 500, "INTERNAL"),
        "container.*": _row(_UNAVAILABLE, 503, "UNAVAILABLE"),
        "disk.error": _row(_UNAVAILABLE, 507, "UNAVAILABLE"),
        "disk.full": _row(_UNAVAILABLE, 507, "RESOURCE_EXHAUSTED"),
        "disk.low": _row(_UNAVAILABLE, 507, "RESOURCE_EXHAUSTED"),
        "edit.*": _row(_FAILED, 422, "FAILED_PRECONDITION"),
        "engine.*": _row(_UNAVAILABLE, 503, "UNAVAILABLE", retry=True),
        "journal.rotated": _row(_FAILED, 410, "OUT_OF_RANGE"),
        "key.exists": _row(_FAILED, 409, "ALREADY_EXISTS"),
        "key.missing": _row(_FAILED, 404, "NOT_FOUND"),
        "limit.*": _row(_LIMIT, 413, "RESOURCE_EXHAUSTED"),
        "limit.executions": _row(_LIMIT, 503, "RESOURCE_EXHAUSTED", retry=True),
        "limit.rate": _row(_LIMIT, 429, "RESOURCE_EXHAUSTED", retry=True),
        "limit.requests": _row(_LIMIT, 503, "RESOURCE_EXHAUSTED", retry=True),
        "limit.sessions": _row(_LIMIT, 429, "RESOURCE_EXHAUSTED", retry=True),
        "limit.time": _row(_LIMIT, 504, "DEADLINE_EXCEEDED"),
        "limit.uploads": _row(_LIMIT, 429, "RESOURCE_EXHAUSTED", retry=True),
        "path.absolute": _row(_REFUSED, 400, "INVALID_ARGUMENT"),
        "path.busy": _row(_UNAVAILABLE, 503, "UNAVAILABLE", retry=True),
        "path.changed": _row(_FAILED, 412, "ABORTED", retry=True),
        "path.escape": _row(_REFUSED, 400, "INVALID_ARGUMENT"),
        "path.exists": _row(_FAILED, 409, "ALREADY_EXISTS"),
        "path.into_itself": _row(_FAILED, 409, "FAILED_PRECONDITION"),
        "path.invalid": _row(_INVALID, 400, "INVALID_ARGUMENT"),
        "path.is_directory": _row(_FAILED, 400, "FAILED_PRECONDITION"),
        "path.loop": _row(_FAILED, 400, "FAILED_PRECONDITION"),
        "path.missing": _row(_FAILED, 404, "NOT_FOUND"),
        "path.not_directory": _row(_FAILED, 400, "FAILED_PRECONDITION"),
        "path.not_empty": _row(_FAILED, 409, "FAILED_PRECONDITION"),
        "path.not_regular": _row(_FAILED, 400, "FAILED_PRECONDITION"),
        "path.permission": _row(_FAILED, 403, "PERMISSION_DENIED"),
        "pattern.invalid": _row(_INVALID, 400, "INVALID_ARGUMENT"),
        "policy.invalid": _row(_INVALID, 400, "INVALID_ARGUMENT"),
        "quota.*": _row(_LIMIT, 507, "RESOURCE_EXHAUSTED"),
        "request.invalid": _row(_INVALID, 400, "INVALID_ARGUMENT"),
        "request.unknown": _row(_INVALID, 404, "UNIMPLEMENTED"),
        "runtime.disabled": _row(_REFUSED, 403, "PERMISSION_DENIED"),
        "runtime.failed": _row(_UNAVAILABLE, 503, "UNAVAILABLE"),
        "runtime.missing": _row(_UNAVAILABLE, 503, "UNAVAILABLE"),
        "service.stopping": _row(_UNAVAILABLE, 503, "UNAVAILABLE", retry=True),
        "service.unreachable": _row(_UNAVAILABLE, 502, "UNAVAILABLE", retry=True),
        "session.exists": _row(_FAILED, 409, "ALREADY_EXISTS"),
        "session.invalid_id": _row(_INVALID, 400, "INVALID_ARGUMENT"),
        "session.missing": _row(_FAILED, 404, "NOT_FOUND"),
        "sessions.unavailable": _row(_UNAVAILABLE, 503, "UNAVAILABLE", retry=True),
        "shell.command": _row(_REFUSED, 403, "PERMISSION_DENIED"),
        "shell.metacharacter": _row(_INVALID, 400, "INVALID_ARGUMENT"),
        "shell.syntax": _row(_INVALID, 400, "INVALID_ARGUMENT"),
        "text.encoding": _row(_INVALID, 400, "INVALID_ARGUMENT"),
        "tool.*": _row(_INVALID, 400, "INVALID_ARGUMENT"),
        "tool.failed": _row(_FAILED, 500, "INTERNAL"),
        "tool.status": _row(_FAILED, 422, "FAILED_PRECONDITION"),
        "tool.unknown": _row(_REFUSED, 404, "UNIMPLEMENTED"),
        "workspace.closed": _row(_UNAVAILABLE, 503, "UNAVAILABLE"),
    }
)


def error_status(code: str) -> ErrorStatus:
    """Return the row for *code*, or for its area, or for `carrel.error` if neither has one."""
    area = code.partition(".")[0]
    return TABLE.get(code) or TABLE.get(f"{area}.*") or TABLE["carrel.error"]
