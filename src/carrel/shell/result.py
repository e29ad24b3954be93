"""How a command line ended: `ShellResult` for callers, `LineOutcome` inside, and the request to exit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from carrel.shell.budget import CODE_MEMORY, STATUS_LIMIT, Budget, Stopped, memory_message


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellResult:
    """What a command line printed, and how it ended."""

    stdout: bytes
    stderr: bytes
    exit_code: int
    error_code: str | None = None
    """Why it was refused or stopped: `shell.*` or `limit.*`, or `runtime.failed` if its process ended
    unexpectedly; `None` if it ran to its end."""
    message: str | None = None
    """What to tell about that; it is also the last line of `stderr`."""
    cwd: str = "/workspace"
    """Where the shell is now."""
    duration_ms: float = 0.0
    ended: bool = False
    """Whether it asked to leave the shell, by `exit`."""
    truncated: bool = False
    """Whether there was more output than the budget allows."""

    @property
    def success(self) -> bool:
        """Whether the exit status is 0."""
        return self.exit_code == 0


class ExitRequest(BaseException):
    """The command `exit` ends the whole line."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class LineOutcome(NamedTuple):
    """How a command line ended."""

    status: int
    error_code: str | None = None
    message: str | None = None
    exits: bool = False
    """Whether it asked to leave the shell, by `exit`."""
    is_truncated: bool = False
    """Whether another process cut its output."""

    @classmethod
    def of(cls, stopped: Stopped) -> LineOutcome:
        """That of a line which was stopped."""
        return cls(stopped.status, stopped.code, stopped.message)


def out_of_memory(budget: Budget) -> LineOutcome:
    """That of a line which took more memory than its process may have."""
    return LineOutcome(STATUS_LIMIT, CODE_MEMORY, memory_message(budget))
