"""`SandboxLogger`: log events through stdlib logging or structlog, always printable on one line.

Values of variables, output and code are never logged, and of many files only some are named.

The logger configures neither library, adds no handler and changes no level. Every value is made printable
first, so a file name cannot forge a second record or move the cursor of a terminal. In the line for people, a
value that could be read as more than one field is quoted.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from carrel.audit.counts import RefusalCounts


def printable(text: str) -> str:
    """Return *text* on one line, with all unprintable characters escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


PATHS = 20
"""Maximum number of paths that are logged of each kind of change."""
PATH_CHARACTERS = 140
"""Maximum length of a path in the log, in characters."""
CUT = "...[truncated]"
"""Suffix of a path that was cut."""


class LoggedPolicy(Protocol):
    """The fields of an execution policy that are logged."""

    @property
    def fuel_budget(self) -> int | None: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def timeout_seconds(self) -> float: ...
    @property
    def stdout_max_bytes(self) -> int: ...
    @property
    def stderr_max_bytes(self) -> int: ...
    @property
    def guest_mount_path(self) -> str: ...
    @property
    def mount_data_dir(self) -> str | os.PathLike[str] | None: ...
    @property
    def guest_data_path(self) -> str | None: ...
    @property
    def preserve_logs(self) -> bool: ...


class LoggedResult(Protocol):
    """The fields of the result of a run that are logged."""

    @property
    def success(self) -> bool: ...
    @property
    def stdout(self) -> str: ...
    @property
    def stderr(self) -> str: ...
    @property
    def exit_code(self) -> int | None: ...
    @property
    def fuel_consumed(self) -> int | None: ...
    @property
    def memory_used_bytes(self) -> int | None: ...
    @property
    def duration_ms(self) -> float: ...
    @property
    def files_created(self) -> Sequence[str]: ...
    @property
    def files_modified(self) -> Sequence[str]: ...
    @property
    def files_deleted(self) -> Sequence[str]: ...
    @property
    def metadata(self) -> Mapping[str, object]: ...


def start_fields(policy: LoggedPolicy) -> dict[str, object]:
    """Return the fields of `execution.start`."""
    return {
        "fuel_budget": policy.fuel_budget,
        "memory_bytes": policy.memory_bytes,
        "timeout_seconds": policy.timeout_seconds,
        "stdout_max_bytes": policy.stdout_max_bytes,
        "stderr_max_bytes": policy.stderr_max_bytes,
        "guest_mount_path": policy.guest_mount_path,
        "mount_data_dir": policy.mount_data_dir,
        "guest_data_path": policy.guest_data_path,
        "preserve_logs": policy.preserve_logs,
    }


def complete_fields(result: LoggedResult) -> dict[str, object]:
    """Return the fields of `execution.complete`."""
    return {
        "success": result.success,
        "exit_code": result.exit_code,
        "fuel_consumed": result.fuel_consumed,
        "memory_used_bytes": result.memory_used_bytes,
        "duration_ms": result.duration_ms,
        "stdout_bytes": _utf8_bytes(result.stdout),
        "stderr_bytes": _utf8_bytes(result.stderr),
        "stdout_truncated": bool(result.metadata.get("stdout_truncated")),
        "stderr_truncated": bool(result.metadata.get("stderr_truncated")),
        "trap_reason": result.metadata.get("trap_reason"),
        "files_created_count": len(result.files_created),
        "files_modified_count": len(result.files_modified),
        "files_deleted_count": len(result.files_deleted),
        "files_created_paths": _paths(result.files_created),
        "files_modified_paths": _paths(result.files_modified),
        "files_deleted_paths": _paths(result.files_deleted),
    }


def _utf8_bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _paths(paths: Sequence[str]) -> list[str]:
    return [_cut(path) for path in paths[:PATHS]]


def _cut(path: str) -> str:
    """Return the path as printable text, cut if it is long."""
    # Cut before it is escaped, because a path may be very long.
    text = printable(path[: PATH_CHARACTERS + 1])
    return text if len(text) <= PATH_CHARACTERS else text[: PATH_CHARACTERS - len(CUT)] + CUT


_RESERVED = {"event", "message", "asctime", *vars(logging.makeLogRecord({}))}
"""Field names that log records or structlog reserve."""
_UNCLEAR = re.compile(r'[ ="\\]')


class StructLogger(Protocol):
    """The methods of structlog's loggers that are used here."""

    def info(self, event: str, **fields: Any) -> Any:  # Any: structlog's own signature
        """Log an event at level INFO."""
        ...

    def warning(self, event: str, **fields: Any) -> Any:  # Any: structlog's own signature
        """Log an event at level WARNING."""
        ...

    def error(self, event: str, **fields: Any) -> Any:  # Any: structlog's own signature
        """Log an event at level ERROR."""
        ...


class SandboxLogger:
    """Writes `noun.verb` events with named fields."""

    def __init__(self, logger: logging.Logger | StructLogger | None = None) -> None:
        """Write to *logger*, or to the stdlib logger `carrel`."""
        self._logger = logging.getLogger("carrel") if logger is None else logger
        self.counts = RefusalCounts()
        """The refusals and mistakes of all workspaces that log here, whatever the level of the logger."""

    @classmethod
    def of(cls, logger: SandboxLogger | logging.Logger | StructLogger | None) -> SandboxLogger:
        """Return *logger* itself, or a `SandboxLogger` that wraps it."""
        return logger if isinstance(logger, SandboxLogger) else cls(logger)

    def log_event(self, event: str, level: int = logging.INFO, /, **fields: object) -> None:
        """Log an event at *level*."""
        self._log(event, level, fields)

    def log_security_event(self, problem: str, /, **details: object) -> None:
        """Log a refusal as the warning `security.<problem>`."""
        self._log(f"security.{problem}", logging.WARNING, details)

    def log_failure(self, event: str, error: Exception, /, **fields: object) -> None:
        """Log an internal error: the type of *error* and where it was raised, never its message."""
        self._log(event, logging.ERROR, {**fields, "error": type(error).__name__, "place": raised_at(error)})

    def log_execution_start(
        self, runtime: str, policy: LoggedPolicy, session_id: str | None = None, **extra: object
    ) -> None:
        """Log the start of a run and the limits of its *policy* as `execution.start`."""
        if self.wants_events():
            fields = {"runtime": runtime, "session_id": session_id, **start_fields(policy)}
            self._log("execution.start", logging.INFO, {**fields, **extra, **fields})

    def log_execution_complete(
        self, result: LoggedResult, runtime: str | None = None, session_id: str | None = None, **extra: object
    ) -> None:
        """Log the *result* of a run, successful or not, as `execution.complete`."""
        if self.wants_events():
            fields = {"runtime": runtime, "session_id": session_id, **complete_fields(result)}
            self._log("execution.complete", logging.INFO, {**fields, **extra, **fields})

    def _log(self, event: str, level: int, fields: dict[str, object]) -> None:
        logger = self._logger
        if not isinstance(logger, logging.Logger):
            methods = {logging.WARNING: logger.warning, logging.ERROR: logger.error}
            methods.get(level, logger.info)(event, **_printable_fields(fields))
        elif logger.isEnabledFor(level):
            _to_stdlib(logger, level, event, fields)

    def wants_events(self) -> bool:
        """Whether `log_event` would write anything."""
        logger = self._logger
        return not isinstance(logger, logging.Logger) or logger.isEnabledFor(logging.INFO)


def raised_at(error: Exception) -> str | None:
    """Return the module and line in which *error* was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}"


def _to_stdlib(logger: logging.Logger, level: int, event: str, fields: dict[str, object]) -> None:
    """Log one line for people, with the fields as attributes of the record for handlers."""
    attributes = _printable_fields(fields)
    words = (_word(value) for value in fields.values() if value is not None)
    text = " ".join([event, *(f"{name}={word}" for name, word in zip(attributes, words, strict=True))])
    logger.log(level, "%s", text, extra={"event": event, **attributes}, stacklevel=4)


def _printable_fields(fields: dict[str, object]) -> dict[str, object]:
    return {
        f"{name}_" if name in _RESERVED else name: _printable_value(value)
        for name, value in fields.items()
        if value is not None
    }


def _word(value: object) -> str:
    """Render *value* as one word, quoted if it contains anything that could end it or begin another field."""
    text = str(value)
    if text and not _UNCLEAR.search(text) and text.isprintable():
        return text
    escaped = text.replace("\\", r"\\").replace('"', r"\"")
    return f'"{printable(escaped)}"'


def _printable_value(value: object) -> object:
    if isinstance(value, int | float):
        return value
    if isinstance(value, list | tuple):
        return [_printable_value(item) for item in value]
    return printable(str(value))
