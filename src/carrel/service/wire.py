"""The one table from error codes to what a front tells the other side.

Fronts do not branch on classes. A code of the form `area.*` stands for every code of that area that has
no row of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType


class ExitStatus(IntEnum):
    """What the command line exits with."""

    DONE = 0
    FAILED = 1
    """The operation failed: missing, exists already, not a directory, ..."""
    INVALID = 2
    """Bad usage, or input that can never work."""
    REFUSED = 3
    """It leads out of the workspace, or a rule says no."""
    LIMIT = 4
    """A ceiling would be passed."""
    UNAVAILABLE = 5
    """The place cannot be used now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """What one error looks like outside."""

    exit_status: ExitStatus
    retry: bool = False
    """Whether the same call may work later, so that an agent may try it again."""


_FAILED = Wire(exit_status=ExitStatus.FAILED)
_INVALID = Wire(exit_status=ExitStatus.INVALID)
_REFUSED = Wire(exit_status=ExitStatus.REFUSED)
_LIMIT = Wire(exit_status=ExitStatus.LIMIT)
_UNAVAILABLE = Wire(exit_status=ExitStatus.UNAVAILABLE)

TABLE: Mapping[str, Wire] = MappingProxyType(
    {
        "access.denied": _REFUSED,
        "access.outside": _REFUSED,
        "archive.invalid": _INVALID,
        "carrel.error": _FAILED,
        "config.invalid": _INVALID,
        "disk.error": _UNAVAILABLE,
        "disk.full": _UNAVAILABLE,
        "disk.low": _UNAVAILABLE,
        "edit.*": _FAILED,
        "journal.rotated": _FAILED,
        "limit.*": _LIMIT,
        "limit.sessions": Wire(exit_status=ExitStatus.LIMIT, retry=True),
        "path.absolute": _REFUSED,
        "path.busy": Wire(exit_status=ExitStatus.UNAVAILABLE, retry=True),
        "path.changed": Wire(exit_status=ExitStatus.FAILED, retry=True),
        "path.escape": _REFUSED,
        "path.exists": _FAILED,
        "path.into_itself": _FAILED,
        "path.invalid": _INVALID,
        "path.is_directory": _FAILED,
        "path.loop": _FAILED,
        "path.missing": _FAILED,
        "path.not_directory": _FAILED,
        "path.not_empty": _FAILED,
        "path.not_regular": _FAILED,
        "path.permission": _FAILED,
        "pattern.invalid": _INVALID,
        "policy.invalid": _INVALID,
        "quota.*": _LIMIT,
        "runtime.disabled": _REFUSED,
        "runtime.failed": _UNAVAILABLE,
        "runtime.missing": _UNAVAILABLE,
        "session.exists": _FAILED,
        "session.invalid_id": _INVALID,
        "session.missing": _FAILED,
        "sessions.unavailable": Wire(exit_status=ExitStatus.UNAVAILABLE, retry=True),
        "shell.command": _REFUSED,
        "shell.metacharacter": _INVALID,
        "shell.syntax": _INVALID,
        "text.encoding": _INVALID,
        "tool.*": _INVALID,
        "tool.failed": _FAILED,
        "tool.status": _FAILED,
        "tool.unknown": _REFUSED,
        "workspace.closed": _UNAVAILABLE,
    }
)


def wire(code: str) -> Wire:
    """The row for *code*, or for its area; one that nobody foresaw simply failed."""
    area = code.partition(".")[0]
    return TABLE.get(code) or TABLE.get(f"{area}.*") or TABLE["carrel.error"]
