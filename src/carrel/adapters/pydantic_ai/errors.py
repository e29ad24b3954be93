"""Translates errors of carrel into those of Pydantic AI."""

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
def translated_errors() -> Iterator[None]:
    """Raise errors of the framework; other errors of carrel are also the builtin errors that it expects.

    Raises:
        WorkspaceUnavailableError: The session was deleted or has expired, or was closed.
        WorkspaceReadOnlyError: A rule forbids the change.
    """
    try:
        yield
    except (ClosedError, SessionMissingError, UnavailableError) as error:
        raise WorkspaceUnavailableError(error.message) from error
    except AccessError as error:
        raise WorkspaceReadOnlyError(error.message) from error


def command_result(result: ShellResult, budget: Budget) -> CommandResult:
    """Convert the result of a command line run with *budget*; any exit status is a result.

    Raises:
        WorkspaceTimeoutError: The time limit was reached.
        WorkspaceOutputLimitError: The output limit was reached.
    """
    stdout, stderr = (data.decode("utf-8", "replace") for data in (result.stdout, result.stderr))
    if result.error_code == "limit.time":
        raise WorkspaceTimeoutError(result.message or "", stdout=stdout, stderr=stderr)
    if result.error_code == "limit.output_bytes":
        limit = budget.output_bytes or 0
        raise WorkspaceOutputLimitError(result.message or "", limit=limit, stdout=stdout, stderr=stderr)
    return CommandResult(exit_code=result.exit_code, stdout=stdout, stderr=stderr)
