"""Errors of carrel as those of the Agents SDK; the one place where they are translated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from agents.sandbox.errors import (
    ExecNonZeroError,
    ExecTimeoutError,
    ExecTransportError,
    InvalidManifestPathError,
    SandboxError,
    WorkspaceArchiveReadError,
    WorkspaceArchiveWriteError,
    WorkspaceReadNotFoundError,
    WorkspaceStartError,
)
from agents.sandbox.types import ExecResult

from carrel.errors import CarrelError
from carrel.shell.result import ShellResult

_PATHS = frozenset({"path.invalid", "path.absolute", "path.escape", "access.outside"})
"""Codes that say of a path that it is not one of the workspace."""
_MISSING = frozenset({"path.missing", "path.not_directory", "path.loop"})
_AGAIN = frozenset({"path.busy", "path.changed"})
"""Codes of what may work if it is tried again."""


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Read *path* meanwhile.

    Raises:
        SandboxError: It cannot be read; the cause is the error of carrel.
    """
    try:
        yield
    except CarrelError as error:
        if error.code in _MISSING:
            raise WorkspaceReadNotFoundError(path=Path(path), context=_context(error), cause=error) from error
        raise _about_path(error, path) or WorkspaceArchiveReadError(
            path=Path(path), context=_context(error), cause=error, retryable=error.code in _AGAIN
        ) from error


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Change *path* meanwhile.

    Raises:
        SandboxError: It cannot be changed; the cause is the error of carrel.
    """
    try:
        yield
    except CarrelError as error:
        raise _about_path(error, path) or WorkspaceArchiveWriteError(
            path=Path(path),
            context=_context(error),
            cause=error,
            retryable=error.code in _AGAIN,
            message=f"cannot write {path!r}: {error.message}",
        ) from error


@contextmanager
def doing(*command: str) -> Iterator[None]:
    """Do meanwhile what the SDK would do by *command*, whose last word is a path.

    Raises:
        SandboxError: It fails as the command would; the cause is the error of carrel.
    """
    try:
        yield
    except CarrelError as error:
        failed = ExecResult(stdout=b"", stderr=error.message.encode("utf-8", "replace"), exit_code=1)
        raise _about_path(error, command[-1]) or ExecNonZeroError(
            failed, command=command, context=_context(error), cause=error
        ) from error


def start_error(path: str, error: CarrelError) -> WorkspaceStartError:
    """What is raised where a session cannot be made or opened."""
    return WorkspaceStartError(
        path=Path(path),
        context=_context(error),
        cause=error,
        message=f"cannot start the session: {error.message}",
    )


def transport_error(command: Sequence[str], error: CarrelError) -> ExecTransportError:
    """What is raised where no command can be run at all."""
    return ExecTransportError(command=command, context=_context(error), cause=error, message=error.message)


def exec_result(command: Sequence[str], result: ShellResult, seconds: float | None) -> ExecResult:
    """What the SDK is told of a command that ran.

    Raises:
        ExecTimeoutError: It took more than *seconds*.
    """
    if result.error_code == "limit.time":
        raise ExecTimeoutError(command=command, timeout_s=seconds, context={"code": result.error_code})
    return ExecResult(stdout=result.stdout, stderr=result.stderr, exit_code=result.exit_code)


def _about_path(error: CarrelError, path: str) -> SandboxError | None:
    if error.code not in _PATHS:
        return None
    reason: Literal["absolute", "escape_root"] = (
        "absolute" if error.code == "access.outside" else "escape_root"
    )
    return InvalidManifestPathError(rel=path, reason=reason, context=_context(error), cause=error)


def _context(error: CarrelError) -> dict[str, object]:
    return {"code": error.code, "reason": error.message}
