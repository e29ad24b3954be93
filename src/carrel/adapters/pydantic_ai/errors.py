"""Errors of carrel as those of Pydantic AI; the one place where they are translated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pydantic_ai.workspaces import (
    CommandResult,
    WorkspaceOutputLimitError,
    WorkspaceReadOnlyError,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)

from carrel.errors import AccessError, ClosedError, SessionMissingError, UnavailableError
from carrel.shell.budget import Budget
from carrel.shell.result import ShellResult


@contextmanager
def translated() -> Iterator[None]:
    """Raise what the framework knows; all other errors of ours are also the builtin ones that it expects.

    Raises:
        WorkspaceUnavailableError: The session was deleted or has expired, or was let go of.
        WorkspaceReadOnlyError: A rule allows no change.
    """
    try:
        yield
    except (ClosedError, SessionMissingError, UnavailableError) as error:
        raise WorkspaceUnavailableError(error.message) from error
    except AccessError as error:
        raise WorkspaceReadOnlyError(error.message) from error


def command_result(result: ShellResult, budget: Budget) -> CommandResult:
    """What a command line did under *budget*; any exit status is a result.

    Raises:
        WorkspaceTimeoutError: It took longer than it may.
        WorkspaceOutputLimitError: It printed more than it may.
    """
    stdout, stderr = (data.decode("utf-8", "replace") for data in (result.stdout, result.stderr))
    if result.error_code == "limit.time":
        raise WorkspaceTimeoutError(result.message or "", stdout=stdout, stderr=stderr)
    if result.error_code == "limit.output_bytes":
        limit = budget.output_bytes or 0
        raise WorkspaceOutputLimitError(result.message or "", limit=limit, stdout=stdout, stderr=stderr)
    return CommandResult(exit_code=result.exit_code, stdout=stdout, stderr=stderr)
