"""Build the `SandboxResult` of a run from its outcome, its policy and the files it changed."""

from __future__ import annotations

from typing import Protocol

from carrel.errors import CarrelError
from carrel.policy.execution import ExecutionPolicy
from carrel.runtimes.call import RunOutcome
from carrel.runtimes.result import SandboxResult, TrapReason
from carrel.workspace.workspace import Workspace

_PAGE_BYTES = 2**16
_MESSAGES = {
    TrapReason.TIMEOUT: "Timeout: the script took longer than {timeout_seconds:g} s",
    TrapReason.CANCELLED: "Cancelled: the call was cancelled",
    TrapReason.MEMORY: "MemoryLimit: the script needed more than {memory_bytes} bytes of memory",
    TrapReason.FUEL: "OutOfFuel: the script used up its budget of {fuel_budget} instructions",
    TrapReason.FILE_OPERATIONS: "FileOperations: the script made more than {file_operations} file operations",
    TrapReason.STACK: "StackOverflow: the script called deeper than the engine can",
    TrapReason.QUOTA: "QuotaExceeded: the script wrote more than the workspace may hold",
    TrapReason.ENGINE: "EngineCrash: the engine failed",
    TrapReason.ABORTED: "Aborted: the interpreter aborted",
}
"""Text that is appended to standard error when a script was ended."""


class ChangedFiles(Protocol):
    """The files that a script created, modified and deleted."""

    @property
    def created(self) -> list[str]: ...

    @property
    def modified(self) -> list[str]: ...

    @property
    def deleted(self) -> list[str]: ...


def build_result(
    outcome: RunOutcome,
    policy: ExecutionPolicy,
    workspace: Workspace,
    changes: ChangedFiles,
    state: dict[str, object],
    duration_ms: float,
    *,
    memory_bytes: int | None = None,
) -> SandboxResult:
    """Build the result of a script from its outcome, its changes and the *state* of its interpreter.

    *memory_bytes* is the effective memory limit, if it differs from that of the policy.
    """
    max_memory_bytes = policy.memory_bytes if memory_bytes is None else memory_bytes
    stderr, message = outcome.stderr.decode("utf-8", "replace"), _message(outcome, policy, max_memory_bytes)
    return SandboxResult(
        success=outcome.reason is None and outcome.exit_code == 0,
        stdout=outcome.stdout.decode("utf-8", "replace"),
        stderr=_append_line(stderr, message),
        exit_code=outcome.exit_code,
        fuel_consumed=_fuel(outcome, policy),
        memory_used_bytes=outcome.memory_bytes,
        duration_ms=duration_ms,
        files_created=changes.created,
        files_modified=changes.modified,
        files_deleted=changes.deleted,
        workspace_path=_host_path(workspace),
        metadata={
            "session_id": workspace.session_id,
            "runtime": "python",
            "exit_code": outcome.exit_code,
            "trapped": outcome.reason not in (None, TrapReason.LOST_WRITE) and outcome.exit_code is None,
            "trap_reason": outcome.reason,
            "stdout_truncated": "stdout" in outcome.truncated,
            "stderr_truncated": "stderr" in outcome.truncated,
            "memory_pages": None if outcome.memory_bytes is None else outcome.memory_bytes // _PAGE_BYTES,
            "memory_limit_bytes": max_memory_bytes,
            "fuel_budget": policy.fuel_budget,
            "file_operations": outcome.file_operations,
            "lost_writes": outcome.lost,
            "message": message or None,
            **state,
        },
    )


def _fuel(outcome: RunOutcome, policy: ExecutionPolicy) -> int | None:
    return policy.fuel_budget if outcome.reason is TrapReason.FUEL else outcome.fuel_consumed


def _message(outcome: RunOutcome, policy: ExecutionPolicy, memory_bytes: int) -> str:
    """Return why the script was ended, for readers of standard error only."""
    lines = [f"carrel: the write of {one['path']!r} was lost: {one['error']}\n" for one in outcome.lost]
    if outcome.reason in _MESSAGES:
        text = _MESSAGES[outcome.reason].format(
            timeout_seconds=policy.timeout_seconds,
            memory_bytes=memory_bytes,
            fuel_budget=policy.fuel_budget,
            file_operations=policy.file_operations,
        )
        lines.append(f"carrel: {text}{': ' + outcome.detail if outcome.detail else ''}\n")
    return "".join(lines)


def _append_line(stderr: str, message: str) -> str:
    """Append *message* to *stderr*, on a line of its own."""
    return f"{stderr}\n{message}" if message and stderr and not stderr.endswith("\n") else stderr + message


def _host_path(workspace: Workspace) -> str:
    if workspace.within is not None:
        return ""
    try:
        return str(workspace.host_path("."))
    except (CarrelError, OSError):
        return ""
