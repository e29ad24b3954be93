"""Why a program or code did not succeed."""

from __future__ import annotations

from collections.abc import Mapping

from carrel.runtimes.result import SandboxResult, TrapReason
from carrel.tools.printed import Problem, gist

_CODES: Mapping[TrapReason, str] = {
    TrapReason.TIMEOUT: "limit.time",
    TrapReason.CANCELLED: "limit.time",
    TrapReason.MEMORY: "limit.memory_bytes",
    TrapReason.FUEL: "limit.fuel",
    TrapReason.FILE_OPERATIONS: "limit.file_operations",
    TrapReason.STACK: "limit.stack",
    TrapReason.QUOTA: "quota.bytes",
    TrapReason.ENGINE: "runtime.failed",
}
"""The codes of runs that were ended; any other failed by itself."""


def problem_of(result: SandboxResult, what: str, seconds: float, stderr: bytes) -> Problem | None:
    """Why *what*, which had so many *seconds*, did not succeed; `None` if it did."""
    reason = result.trap_reason
    if result.success:
        return None
    if reason is TrapReason.TIMEOUT:
        return Problem("limit.time", f"{what} timed out after {seconds:g}s")
    if reason is not None:
        told = str(result.metadata.get("message") or reason).splitlines()[-1].removeprefix("carrel: ")
        return Problem(_CODES.get(reason, "tool.status"), told)
    message = f"{what} exited with status {result.exit_code}"
    said = gist(stderr)
    return Problem("tool.status", f"{message}: {said}" if said else message)
