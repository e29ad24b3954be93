"""Limits of one command line, and the meter that stops it when one of them is reached.

What stops a command derives from `BaseException`, so that no command can swallow it by accident.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import TIMEOUT_MAX, Event, Lock

from carrel.values import MIB

STATUS_TIMED_OUT = 124
"""The exit status of a command line that took too long, as of `timeout`."""
STATUS_CANCELLED = 130
"""That of one which somebody stopped, as of a program that Ctrl-C ended."""
STATUS_LIMIT = 4
"""That of one which met another limit."""
CODE_TIME = "limit.time"
CODE_MEMORY = "limit.memory_bytes"
RECORD_BYTES = 64
"""Memory that each string in a list takes besides its content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Ceilings for one command line; `None` means no ceiling."""

    seconds: float | None = 30.0
    """Longest time."""
    output_bytes: int | None = 16 * MIB
    """Most bytes of standard output and error together; what comes after is cut off."""
    entries: int | None = 1_000_000
    """Most files and directories that are looked at or named."""
    memory_bytes: int | None = 256 * MIB
    """Most bytes of memory that the commands of the line hold at once."""

    def __post_init__(self) -> None:
        for name in ("seconds", "output_bytes", "entries", "memory_bytes"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not value >= 0):
                raise ValueError(f"{name} must be a number of at least 0 or None, not {value!r}")


def memory_message(budget: Budget) -> str:
    """What is told about a line that needs more memory than it may have."""
    return f"Command needs more than {budget.memory_bytes} bytes of memory, the limit"


class Stopped(BaseException):
    """A command line was ended before its time."""

    def __init__(self, code: str, message: str, status: int) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


class Meter:
    """Counts what a command line uses; all threads that work for it share one."""

    def __init__(self, budget: Budget, clock: Callable[[], float] = time.monotonic) -> None:
        self.budget = budget
        self._clock = clock
        self._deadline = None if budget.seconds is None else clock() + budget.seconds
        self._lock = Lock()
        self._entries = 0
        self._held = 0
        self._output = 0
        self._stop: Stopped | None = None
        self._listeners: list[Callable[[], object]] = []

    @property
    def stopped(self) -> Stopped | None:
        """Why it was stopped, if it was."""
        return self._stop

    def remaining_seconds(self) -> float | None:
        """How long it may still take."""
        if self._deadline is None:
            return None
        return min(max(0.0, self._deadline - self._clock()), TIMEOUT_MAX)

    def check(self) -> None:
        """Go on, unless the time is over or somebody said stop."""
        if self._stop is not None:
            raise self._stop
        if self._deadline is not None and self._clock() > self._deadline:
            seconds = self.budget.seconds
            raise self._end(CODE_TIME, f"Command timed out after {seconds:g}s", STATUS_TIMED_OUT)

    def cancel(self) -> None:
        """Stop, from any thread."""
        self._end("shell.cancelled", "Command cancelled", STATUS_CANCELLED)

    def _end(self, code: str, message: str, status: int) -> Stopped:
        """Stop all threads; the first reason is the one that is told."""
        with self._lock:
            if self._stop is not None:
                return self._stop
            self._stop = Stopped(code, message, status)
            listeners = list(self._listeners)
        for listener in listeners:
            listener()
        return self._stop

    def wait(self, seconds: float) -> None:
        """Do nothing for so long, or until all is stopped."""
        woken = Event()
        self.on_stop(woken.set)
        remaining = self.remaining_seconds()
        woken.wait(min(seconds, TIMEOUT_MAX if remaining is None else remaining + 0.001))
        self.check()

    def on_stop(self, listener: Callable[[], object]) -> None:
        """Call *listener* when all is stopped, to wake what waits; at once if it is stopped already."""
        with self._lock:
            self._listeners.append(listener)
            is_late = self._stop is not None
        if is_late:
            listener()

    def charge_entries(self, count: int) -> None:
        """Count files and directories that were looked at."""
        with self._lock:
            self._entries += count
        limit = self.budget.entries
        if limit is not None and self._entries > limit:
            raise self._end(
                "limit.entries", f"Command looked at more than {limit} entries, the limit", STATUS_LIMIT
            )
        self.check()

    def charge_memory(self, count: int) -> None:
        """Count bytes that are kept in memory; a negative number gives some back."""
        with self._lock:
            self._held += count
        if count <= 0:
            # What is given back may be so by one who has been stopped, or is no longer listened to.
            return
        limit = self.budget.memory_bytes
        if limit is not None and self._held > limit:
            raise self._end(CODE_MEMORY, memory_message(self.budget), STATUS_LIMIT)
        self.check()

    @contextmanager
    def holding_memory(self, count: int) -> Iterator[None]:
        """Count *count* bytes as kept in memory until the block ends; charged before it begins."""
        self.charge_memory(count)
        try:
            yield
        finally:
            self.charge_memory(-count)

    def charge_output(self, count: int) -> int:
        """Count bytes that are about to be given out, and return how many of them may be."""
        limit = self.budget.output_bytes
        with self._lock:
            room = count if limit is None else max(0, min(count, limit - self._output))
            self._output += room
        return room

    def end_output(self) -> Stopped:
        """Stop because there is more output than may be."""
        limit = self.budget.output_bytes
        return self._end(
            "limit.output_bytes", f"Command printed more than {limit} bytes, the limit", STATUS_LIMIT
        )
