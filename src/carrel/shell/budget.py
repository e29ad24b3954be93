"""Limits of one command line, and the meter that stops the line when a limit is reached.

`Stopped` derives from `BaseException`, so that no command can swallow it by accident.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import TIMEOUT_MAX, Event, Lock

from carrel.values import MIB

STATUS_TIMED_OUT = 124
"""Exit status of a command line that timed out, as of `timeout`."""
STATUS_CANCELLED = 130
"""Exit status of a command line that was cancelled, as after Ctrl-C."""
STATUS_LIMIT = 4
"""Exit status of a command line that reached another limit."""
CODE_TIME = "limit.time"
CODE_MEMORY = "limit.memory_bytes"
RECORD_BYTES = 64
"""Memory charged for each string in a list, besides its content."""


ChargeMemory = Callable[[int], object]
"""Charges bytes of memory before they are used; a negative number releases them."""


def charge_nothing(count: int) -> None:
    """Charge no memory, where there is no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits of one command line; `None` means no limit."""

    seconds: float | None = 30.0
    """Longest run time."""
    output_bytes: int | None = 16 * MIB
    """Most bytes of standard output and standard error together; the rest is cut off."""
    entries: int | None = 1_000_000
    """Most files and directories that may be examined or named."""
    memory_bytes: int | None = 256 * MIB
    """Most bytes of memory that the commands of the line may hold at once."""

    def __post_init__(self) -> None:
        for name in ("seconds", "output_bytes", "entries", "memory_bytes"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not value >= 0):
                raise ValueError(f"{name} must be a number of at least 0 or None, not {value!r}")


def memory_message(budget: Budget) -> str:
    """Return the message for a line that exceeds its memory limit."""
    return f"Command needs more than {budget.memory_bytes} bytes of memory, the limit"


class Stopped(BaseException):
    """The command line was cancelled or reached a limit."""

    def __init__(self, code: str, message: str, status: int) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status


class Meter:
    """Counts the resources that a command line uses; all threads of the line share one meter."""

    def __init__(self, budget: Budget, clock: Callable[[], float] = time.monotonic) -> None:
        self.budget = budget
        self._clock = clock
        self._deadline = None if budget.seconds is None else clock() + budget.seconds
        self._lock = Lock()
        self._entries = 0
        self._memory_bytes = 0
        self._output_bytes = 0
        self._stop: Stopped | None = None
        self._listeners: list[Callable[[], object]] = []

    @property
    def stopped(self) -> Stopped | None:
        """Why the line was stopped; `None` while it may run."""
        return self._stop

    def remaining_seconds(self) -> float | None:
        """Return the time left; `None` if there is no limit."""
        if self._deadline is None:
            return None
        return min(max(0.0, self._deadline - self._clock()), TIMEOUT_MAX)

    def check(self) -> None:
        """Raise if the line is out of time or was stopped.

        Raises:
            Stopped: The line must end.
        """
        if self._stop is not None:
            raise self._stop
        if self._deadline is not None and self._clock() > self._deadline:
            seconds = self.budget.seconds
            raise self._stop_line(CODE_TIME, f"Command timed out after {seconds:g}s", STATUS_TIMED_OUT)

    def cancel(self) -> None:
        """Stop the line, from any thread."""
        self._stop_line("shell.cancelled", "Command cancelled", STATUS_CANCELLED)

    def _stop_line(self, code: str, message: str, status: int) -> Stopped:
        """Stop all threads; only the first reason is kept."""
        with self._lock:
            if self._stop is not None:
                return self._stop
            self._stop = Stopped(code, message, status)
            listeners = list(self._listeners)
        for listener in listeners:
            listener()
        return self._stop

    def wait(self, seconds: float) -> None:
        """Sleep for *seconds*, or until the line is stopped."""
        woken = Event()
        self.on_stop(woken.set)
        remaining = self.remaining_seconds()
        woken.wait(min(seconds, TIMEOUT_MAX if remaining is None else remaining + 0.001))
        self.check()

    def on_stop(self, listener: Callable[[], object]) -> None:
        """Call *listener* when the line is stopped, to wake a waiting thread; at once if it already is."""
        with self._lock:
            self._listeners.append(listener)
            is_stopped = self._stop is not None
        if is_stopped:
            listener()

    def charge_entries(self, count: int) -> None:
        """Charge files and directories that were examined."""
        with self._lock:
            self._entries += count
        limit = self.budget.entries
        if limit is not None and self._entries > limit:
            raise self._stop_line(
                "limit.entries", f"Command looked at more than {limit} entries, the limit", STATUS_LIMIT
            )
        self.check()

    def charge_memory(self, count: int) -> None:
        """Charge bytes held in memory; a negative *count* releases them."""
        with self._lock:
            self._memory_bytes += count
        if count <= 0:
            # Releasing never raises: it happens in cleanup, after a stop or in a closed generator.
            return
        limit = self.budget.memory_bytes
        if limit is not None and self._memory_bytes > limit:
            raise self._stop_line(CODE_MEMORY, memory_message(self.budget), STATUS_LIMIT)
        self.check()

    @contextmanager
    def holding_memory(self, count: int) -> Iterator[None]:
        """Charge *count* bytes before the block runs, and release them after it."""
        self.charge_memory(count)
        try:
            yield
        finally:
            self.charge_memory(-count)

    def charge_output(self, count: int) -> int:
        """Charge bytes of output, and return how many of them fit into the limit."""
        limit = self.budget.output_bytes
        with self._lock:
            room = count if limit is None else max(0, min(count, limit - self._output_bytes))
            self._output_bytes += room
        return room

    def stop_output(self) -> Stopped:
        """Stop the line because it printed more than the limit."""
        limit = self.budget.output_bytes
        return self._stop_line(
            "limit.output_bytes", f"Command printed more than {limit} bytes, the limit", STATUS_LIMIT
        )
