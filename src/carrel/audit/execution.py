"""What the log tells of a run of guest code.

No value of a variable, no output and no code gets into it, and of many files only some are named.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Protocol

from carrel.audit.printable import printable

PATHS = 20
"""Most paths of one kind that are named."""
PATH_CHARACTERS = 140
"""Longest path in the log."""
CUT = "...[truncated]"
"""How a longer one ends."""


class Policy(Protocol):
    """What is told of the policy of a run."""

    @property
    def fuel_budget(self) -> int | None: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def timeout_seconds(self) -> float: ...
    @property
    def stdout_max_bytes(self) -> int: ...
    @property
    def stderr_max_bytes(self) -> int: ...
    @property
    def guest_mount_path(self) -> str: ...
    @property
    def mount_data_dir(self) -> str | os.PathLike[str] | None: ...
    @property
    def guest_data_path(self) -> str | None: ...
    @property
    def preserve_logs(self) -> bool: ...


class Result(Protocol):
    """What is told of the outcome of a run."""

    @property
    def success(self) -> bool: ...
    @property
    def stdout(self) -> str: ...
    @property
    def stderr(self) -> str: ...
    @property
    def exit_code(self) -> int | None: ...
    @property
    def fuel_consumed(self) -> int | None: ...
    @property
    def memory_used_bytes(self) -> int | None: ...
    @property
    def duration_ms(self) -> float: ...
    @property
    def files_created(self) -> Sequence[str]: ...
    @property
    def files_modified(self) -> Sequence[str]: ...
    @property
    def files_deleted(self) -> Sequence[str]: ...
    @property
    def metadata(self) -> Mapping[str, object]: ...


def start_fields(policy: Policy) -> dict[str, object]:
    """What a run may take."""
    return {
        "fuel_budget": policy.fuel_budget,
        "memory_bytes": policy.memory_bytes,
        "timeout_seconds": policy.timeout_seconds,
        "stdout_max_bytes": policy.stdout_max_bytes,
        "stderr_max_bytes": policy.stderr_max_bytes,
        "guest_mount_path": policy.guest_mount_path,
        "mount_data_dir": policy.mount_data_dir,
        "guest_data_path": policy.guest_data_path,
        "preserve_logs": policy.preserve_logs,
    }


def complete_fields(result: Result) -> dict[str, object]:
    """What a run did."""
    return {
        "success": result.success,
        "exit_code": result.exit_code,
        "fuel_consumed": result.fuel_consumed,
        "memory_used_bytes": result.memory_used_bytes,
        "duration_ms": result.duration_ms,
        "stdout_bytes": _utf8_bytes(result.stdout),
        "stderr_bytes": _utf8_bytes(result.stderr),
        "stdout_truncated": bool(result.metadata.get("stdout_truncated")),
        "stderr_truncated": bool(result.metadata.get("stderr_truncated")),
        "trap_reason": result.metadata.get("trap_reason"),
        "files_created_count": len(result.files_created),
        "files_modified_count": len(result.files_modified),
        "files_deleted_count": len(result.files_deleted),
        "files_created_paths": _paths(result.files_created),
        "files_modified_paths": _paths(result.files_modified),
        "files_deleted_paths": _paths(result.files_deleted),
    }


def _utf8_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _paths(paths: Sequence[str]) -> list[str]:
    return [_cut(path) for path in paths[:PATHS]]


def _cut(path: str) -> str:
    """The path as it is printed, if that is short, or its beginning."""
    # What is cut off is not escaped first: a path may be long.
    shown = printable(path[: PATH_CHARACTERS + 1])
    return shown if len(shown) <= PATH_CHARACTERS else shown[: PATH_CHARACTERS - len(CUT)] + CUT
