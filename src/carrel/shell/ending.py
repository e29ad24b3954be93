"""How a command line ends, and ways to end it that no command can swallow."""

from __future__ import annotations

from typing import NamedTuple

from carrel.shell.budget import LIMIT, MEMORY, Budget, Stopped, memory_message


class ExitAsked(BaseException):
    """The command `exit` ends the whole line."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class Ending(NamedTuple):
    """How a command line ended."""

    status: int
    error_code: str | None = None
    message: str | None = None
    leaves: bool = False
    """Whether it asked to leave the shell, by `exit`."""
    is_cut: bool = False
    """Whether another process cut its output."""

    @classmethod
    def of(cls, stopped: Stopped) -> Ending:
        """That of a line which was stopped."""
        return cls(stopped.status, stopped.code, stopped.message)


def out_of_memory(budget: Budget) -> Ending:
    """That of a line which took more memory than its process may have."""
    return Ending(LIMIT, MEMORY, memory_message(budget))
