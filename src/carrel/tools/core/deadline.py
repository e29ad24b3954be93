"""Deadlines of calls: time limit, cancellation, output, and which one applies to the current thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from threading import Lock

from carrel.errors import LimitError


class Deadline:
    """The time limit of one call; `stop` ends it early, from any thread."""

    def __init__(
        self,
        seconds: float | None,
        clock: Callable[[], float] = time.monotonic,
        on_output: Callable[[str, bytes], None] | None = None,
    ) -> None:
        self.on_output = on_output
        """Takes the output of the call as it arrives: `stdout` or `stderr`, and bytes; from any thread."""
        self._seconds = seconds
        self._clock = clock
        self._end = None if seconds is None else clock() + seconds
        self._is_stopped = False
        self._is_over = False
        self._lock = Lock()
        self._listeners: list[Callable[[], object]] = []

    def check(self) -> None:
        """Check that the deadline has not passed.

        Raises:
            LimitError: It has passed, or the call was cancelled.
        """
        if self._is_stopped:
            raise self.error()
        if self._end is not None and self._clock() > self._end:
            self._is_over = True
            raise self.error()

    @property
    def is_over(self) -> bool:
        """Whether a check found that the deadline has passed."""
        return self._is_over

    @property
    def is_stopped(self) -> bool:
        """Whether the call was cancelled."""
        return self._is_stopped

    def error(self) -> LimitError:
        """Return the error for a deadline that has passed or a call that was cancelled."""
        seconds = self._seconds or 0
        message = "Operation cancelled" if self._is_stopped else f"Operation timed out after {seconds:g}s"
        return LimitError("time", limit=round(seconds * 1000), asked=None, message=message)

    def stop(self) -> None:
        """Cancel the call; it ends at its next check."""
        with self._lock:
            self._is_stopped = True
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def on_stop(self, listener: Callable[[], object]) -> None:
        """Call *listener* when the call is stopped, to wake a waiting thread; at once if it already is."""
        with self._lock:
            self._listeners.append(listener)
            is_stopped = self._is_stopped
        if is_stopped:
            listener()


_CURRENT: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


class Deadlines:
    """The deadline of each context: a thread, and the threads that run in its context, as in a pipeline."""

    def __init__(self) -> None:
        self._running: set[Deadline] = set()

    @property
    def current(self) -> Deadline | None:
        """The deadline of the call that runs in this context."""
        return _CURRENT.get()

    def check(self) -> None:
        """Check the current deadline, if there is one.

        Raises:
            LimitError: It has passed.
        """
        if (deadline := _CURRENT.get()) is not None:
            deadline.check()

    def during(self, deadline: Deadline) -> AbstractContextManager[None]:
        """Return a context manager in which *deadline* is the current one."""
        return _During(self._running, deadline)

    def stop(self) -> None:
        """Cancel every running call, in all threads."""
        # A copy: calls leave the set when they end.
        for deadline in self._running.copy():
            deadline.stop()


class _During:
    """Context manager for the current deadline; a class, because it is entered once per call."""

    __slots__ = ("_deadline", "_running", "_token")

    def __init__(self, running: set[Deadline], deadline: Deadline) -> None:
        self._running = running
        self._deadline = deadline

    def __enter__(self) -> None:
        self._token = _CURRENT.set(self._deadline)
        self._running.add(self._deadline)

    def __exit__(self, *exception: object) -> None:
        self._running.discard(self._deadline)
        _CURRENT.reset(self._token)
