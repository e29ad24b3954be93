"""Build the `SandboxResult` of a run from its outcome, its policy and the files it changed."""

from __future__ import annotations

from typing import Protocol

from carrel.errors import CarrelError
from carrel.policy.execution import ExecutionPolicy
from carrel.runtimes.call import RunOutcome
from carrel.runtimes.result import SandboxResult, TrapReason
from carrel.workspace.workspace import Workspace

_PAGE_BYTES = 2**16
_TOLD = {
    TrapReason.TIMEOUT: "Timeout: the script took longer than {timeout_seconds:g} s",
    TrapReason.CANCELLED: "Cancelled: the call was cancelled",
    TrapReason.MEMORY: "MemoryLimit: the script needed more than {memory_bytes} bytes of memory",
    TrapReason.FUEL: "OutOfFuel: the script used up its budget of {fuel_budget} instructions",
    TrapReason.FILE_OPERATIONS: "FileOperations: the script made more than {file_operations} file operations",
    TrapReason.STACK: "StackOverflow: the script called deeper than the engine can",
    TrapReason.QUOTA: "QuotaExceeded: the script wrote more than the workspace may hold",
    TrapReason.ENGINE: "EngineCrash: the engine failed",
    TrapReason.ABORTED: "Aborted: the interpreter gave itself up",
}
"""What is added to standard error when a script does not end by itself."""


class ChangedFiles(Protocol):
    """The files that a script made, changed and removed."""

    @property
    def created(self) -> list[str]: ...

    @property
    def modified(self) -> list[str]: ...

    @property
    def deleted(self) -> list[str]: ...


def build_result(
    ending: RunOutcome,
    policy: ExecutionPolicy,
    workspace: Workspace,
    changes: ChangedFiles,
    state: dict[str, object],
    duration_ms: float,
    *,
    memory_bytes: int | None = None,
) -> SandboxResult:
    """The result of a script that ended so, with what it changed and what is known of its interpreter.

    Where it had other *memory_bytes* than those of the policy, they are told.
    """
    most_bytes = policy.memory_bytes if memory_bytes is None else memory_bytes
    stderr, told = ending.stderr.decode("utf-8", "replace"), _told(ending, policy, most_bytes)
    return SandboxResult(
        success=ending.reason is None and ending.exit_code == 0,
        stdout=ending.stdout.decode("utf-8", "replace"),
        stderr=_joined(stderr, told),
        exit_code=ending.exit_code,
        fuel_consumed=_fuel(ending, policy),
        memory_used_bytes=ending.memory_bytes,
        duration_ms=duration_ms,
        files_created=changes.created,
        files_modified=changes.modified,
        files_deleted=changes.deleted,
        workspace_path=_host_path(workspace),
        metadata={
            "session_id": workspace.session_id,
            "runtime": "python",
            "exit_code": ending.exit_code,
            "trapped": ending.reason not in (None, TrapReason.LOST_WRITE) and ending.exit_code is None,
            "trap_reason": ending.reason,
            "stdout_truncated": "stdout" in ending.truncated,
            "stderr_truncated": "stderr" in ending.truncated,
            "memory_pages": None if ending.memory_bytes is None else ending.memory_bytes // _PAGE_BYTES,
            "memory_limit_bytes": most_bytes,
            "fuel_budget": policy.fuel_budget,
            "file_operations": ending.file_operations,
            "lost_writes": ending.lost,
            "message": told or None,
            **state,
        },
    )


def _fuel(ending: RunOutcome, policy: ExecutionPolicy) -> int | None:
    return policy.fuel_budget if ending.reason is TrapReason.FUEL else ending.fuel_consumed


def _told(ending: RunOutcome, policy: ExecutionPolicy, memory_bytes: int) -> str:
    """Why the script ended, for those who read only standard error."""
    lines = [f"carrel: the write of {one['path']!r} was lost: {one['error']}\n" for one in ending.lost]
    if ending.reason in _TOLD:
        text = _TOLD[ending.reason].format(
            timeout_seconds=policy.timeout_seconds,
            memory_bytes=memory_bytes,
            fuel_budget=policy.fuel_budget,
            file_operations=policy.file_operations,
        )
        lines.append(f"carrel: {text}{': ' + ending.detail if ending.detail else ''}\n")
    return "".join(lines)


def _joined(stderr: str, told: str) -> str:
    """What the script wrote, and on a line of its own what is to be told."""
    return f"{stderr}\n{told}" if told and stderr and not stderr.endswith("\n") else stderr + told


def _host_path(workspace: Workspace) -> str:
    if workspace.within is not None:
        return ""
    try:
        return str(workspace.host_path("."))
    except (CarrelError, OSError):
        return ""
