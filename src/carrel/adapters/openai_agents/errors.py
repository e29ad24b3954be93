"""Translates errors of carrel into those of the Agents SDK."""

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
"""Codes of paths outside the workspace."""
_MISSING = frozenset({"path.missing", "path.not_directory", "path.loop"})
_RETRYABLE = frozenset({"path.busy", "path.changed"})
"""Codes of operations that may succeed on retry."""


@contextmanager
def reading(path: str) -> Iterator[None]:
    """Translate errors of reading *path* in the body.

    Raises:
        SandboxError: Reading failed; the cause is the error of carrel.
    """
    try:
        yield
    except CarrelError as error:
        if error.code in _MISSING:
            raise WorkspaceReadNotFoundError(path=Path(path), context=_context(error), cause=error) from error
        raise _about_path(error, path) or WorkspaceArchiveReadError(
            path=Path(path), context=_context(error), cause=error, retryable=error.code in _RETRYABLE
        ) from error


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Translate errors of writing *path* in the body.

    Raises:
        SandboxError: Writing failed; the cause is the error of carrel.
    """
    try:
        yield
    except CarrelError as error:
        raise _about_path(error, path) or WorkspaceArchiveWriteError(
            path=Path(path),
            context=_context(error),
            cause=error,
            retryable=error.code in _RETRYABLE,
            message=f"cannot write {path!r}: {error.message}",
        ) from error


@contextmanager
def emulating(*command: str) -> Iterator[None]:
    """Translate errors of the body, which stands for *command*; its last word is a path.

    Raises:
        SandboxError: The failure of the command; the cause is the error of carrel.
    """
    try:
        yield
    except CarrelError as error:
        result = ExecResult(stdout=b"", stderr=error.message.encode("utf-8", "replace"), exit_code=1)
        raise _about_path(error, command[-1]) or ExecNonZeroError(
            result, command=command, context=_context(error), cause=error
        ) from error


def start_error(path: str, error: CarrelError) -> WorkspaceStartError:
    """The error for a session that cannot be created or opened."""
    return WorkspaceStartError(
        path=Path(path),
        context=_context(error),
        cause=error,
        message=f"cannot start the session: {error.message}",
    )


def transport_error(command: Sequence[str], error: CarrelError) -> ExecTransportError:
    """The error for a command that cannot be run at all."""
    return ExecTransportError(command=command, context=_context(error), cause=error, message=error.message)


def exec_result(command: Sequence[str], result: ShellResult, seconds: float | None) -> ExecResult:
    """The SDK's result for a command that ran.

    Raises:
        ExecTimeoutError: The command ran into its time limit of *seconds*.
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
