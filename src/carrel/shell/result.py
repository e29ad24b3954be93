"""Outcome of a command line: `ShellResult` for callers, `LineOutcome` for the runners, and `exit`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from carrel.shell.budget import CODE_MEMORY, STATUS_LIMIT, Budget, Stopped, memory_message


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellResult:
    """Output and exit status of a command line."""

    stdout: bytes
    stderr: bytes
    exit_code: int
    error_code: str | None = None
    """Why the line was refused or stopped: `shell.*` or `limit.*`, or `runtime.failed` if its process ended
    unexpectedly; `None` if it ran to completion."""
    message: str | None = None
    """Message of that error; also the last line of `stderr`."""
    cwd: str = "/workspace"
    """Working directory of the shell after the line."""
    duration_ms: float = 0.0
    ended: bool = False
    """Whether the line left the shell with `exit`."""
    truncated: bool = False
    """Whether output was cut off at the limit of the budget."""

    @property
    def success(self) -> bool:
        """Whether the exit status is 0."""
        return self.exit_code == 0


class ExitRequest(BaseException):
    """Raised by the command `exit` to end the whole line."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class LineOutcome(NamedTuple):
    """How a command line ended."""

    status: int
    error_code: str | None = None
    message: str | None = None
    exits: bool = False
    """Whether the line left the shell with `exit`."""
    is_truncated: bool = False
    """Whether a worker process truncated the output."""

    @classmethod
    def of(cls, stopped: Stopped) -> LineOutcome:
        """Return the outcome of a line that was stopped."""
        return cls(stopped.status, stopped.code, stopped.message)


def out_of_memory(budget: Budget) -> LineOutcome:
    """Return the outcome of a line that exceeded the memory of its process."""
    return LineOutcome(STATUS_LIMIT, CODE_MEMORY, memory_message(budget))
