"""`SandboxLogger`: structured events over stdlib logging or structlog.

It configures neither, adds no handler and changes no level. Every value is made printable on one line first,
so a file name cannot forge a second record or move the cursor of a terminal. In the line for people, a value
that could be taken for more than one field is quoted.
"""

from __future__ import annotations

import logging
import re
from typing import Any, Protocol

from carrel.audit.execution import Policy, Result, complete_fields, start_fields
from carrel.audit.printable import printable

_TAKEN = {"event", "message", "asctime", *vars(logging.makeLogRecord({}))}
"""Names that a log record or structlog keeps for itself."""
_UNCLEAR = re.compile(r'[ ="\\]')


class StructLogger(Protocol):
    """What structlog's loggers offer, as far as it is used here."""

    def info(self, event: str, **fields: Any) -> Any:  # Any: structlog's own signature
        """Log an ordinary event."""
        ...

    def warning(self, event: str, **fields: Any) -> Any:  # Any: structlog's own signature
        """Log something that somebody should look at."""
        ...

    def error(self, event: str, **fields: Any) -> Any:  # Any: structlog's own signature
        """Log something that went wrong."""
        ...


class SandboxLogger:
    """Writes `noun.verb` events with named fields."""

    def __init__(self, logger: logging.Logger | StructLogger | None = None) -> None:
        """Write to *logger*, or to the stdlib logger `carrel`."""
        self._logger = logging.getLogger("carrel") if logger is None else logger

    @classmethod
    def of(cls, logger: SandboxLogger | logging.Logger | StructLogger | None) -> SandboxLogger:
        """*logger* itself, or one around it."""
        return logger if isinstance(logger, SandboxLogger) else cls(logger)

    def log_event(self, event: str, level: int = logging.INFO, /, **fields: object) -> None:
        """Log an event: an ordinary one, a warning or an error."""
        self._log(event, level, fields)

    def log_security_event(self, problem: str, /, **details: object) -> None:
        """Log a refusal as the warning `security.<problem>`."""
        self._log(f"security.{problem}", logging.WARNING, details)

    def log_failure(self, event: str, error: Exception, /, **fields: object) -> None:
        """Log a mistake of ours: the kind of *error* and where it was made, never its words."""
        self._log(event, logging.ERROR, {**fields, "error": type(error).__name__, "place": place_of(error)})

    def log_execution_start(
        self, runtime: str, policy: Policy, session_id: str | None = None, **extra: object
    ) -> None:
        """Log that guest code begins, and what its *policy* lets it take, as `execution.start`."""
        if self.wants_events():
            fields = {"runtime": runtime, "session_id": session_id, **start_fields(policy)}
            self._log("execution.start", logging.INFO, {**fields, **extra, **fields})

    def log_execution_complete(
        self, result: Result, runtime: str | None = None, session_id: str | None = None, **extra: object
    ) -> None:
        """Log what guest code did, whether it failed or not, as `execution.complete`."""
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


def place_of(error: Exception) -> str | None:
    """The module and line in which *error* was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}"


def _to_stdlib(logger: logging.Logger, level: int, event: str, fields: dict[str, object]) -> None:
    """One line for people, and the same fields on the record for handlers that want them."""
    shown = _printable_fields(fields)
    words = (_word(value) for value in fields.values() if value is not None)
    text = " ".join([event, *(f"{name}={word}" for name, word in zip(shown, words, strict=True))])
    logger.log(level, "%s", text, extra={"event": event, **shown}, stacklevel=4)


def _printable_fields(fields: dict[str, object]) -> dict[str, object]:
    return {
        f"{name}_" if name in _TAKEN else name: _printable_value(value)
        for name, value in fields.items()
        if value is not None
    }


def _word(value: object) -> str:
    """*value* as one word, in quotes if it has anything that could end it or begin another field."""
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
