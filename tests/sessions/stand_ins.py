"""A clock that can be set, and a logger that remembers."""

from __future__ import annotations

import time
from typing import Any

HOUR = 3_600.0


class SetClock:
    """The time of the host, and as much later or earlier as a test says."""

    def __init__(self) -> None:
        self.ahead_ns = 0

    def __call__(self) -> int:
        return time.time_ns() + self.ahead_ns

    def advance(self, seconds: float) -> None:
        self.ahead_ns += int(seconds * 1e9)


class Events:
    """What was logged, in the manner of structlog: level, event and fields."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str, dict[str, Any]]] = []  # Any: as they were logged

    def info(self, event: str, **fields: Any) -> None:
        self.all.append(("info", event, fields))

    def warning(self, event: str, **fields: Any) -> None:
        self.all.append(("warning", event, fields))

    def error(self, event: str, **fields: Any) -> None:
        self.all.append(("error", event, fields))

    def named(self, event: str) -> list[dict[str, Any]]:
        """The fields of each event of one name."""
        return [fields for _, name, fields in self.all if name == event]
