"""What became of a command line."""

from __future__ import annotations

from dataclasses import dataclass


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
