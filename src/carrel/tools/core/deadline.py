"""Deadlines of calls: time limit, cancellation, and which deadline applies to the current thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from threading import Lock

from carrel.errors import LimitError


class Deadline:
    """The time that one call may take; `stop` ends it before, from any thread."""

    def __init__(self, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._end = None if seconds is None else clock() + seconds
        self._is_stopped = False
        self._is_over = False
        self._lock = Lock()
        self._listeners: list[Callable[[], object]] = []

    def check(self) -> None:
        """Do nothing while there is time.

        Raises:
            LimitError: The time is over, or the caller does not want the answer any more.
        """
        if self._is_stopped:
            raise self.error()
        if self._end is not None and self._clock() > self._end:
            self._is_over = True
            raise self.error()

    @property
    def is_over(self) -> bool:
        """Whether a call was ended because its time was over."""
        return self._is_over

    @property
    def is_stopped(self) -> bool:
        """Whether the caller does not want the answer any more."""
        return self._is_stopped

    def error(self) -> LimitError:
        """What is raised when the time is over."""
        seconds = self._seconds or 0
        message = "Operation cancelled" if self._is_stopped else f"Operation timed out after {seconds:g}s"
        return LimitError("time", limit=round(seconds * 1000), asked=None, message=message)

    def stop(self) -> None:
        """End the call at its next step."""
        with self._lock:
            self._is_stopped = True
            listeners = list(self._listeners)
        for listener in listeners:
            listener()

    def on_stop(self, listener: Callable[[], object]) -> None:
        """Call *listener* when the call is stopped, to wake what waits; at once if it is already."""
        with self._lock:
            self._listeners.append(listener)
            is_late = self._is_stopped
        if is_late:
            listener()


_CURRENT: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


class Deadlines:
    """Which deadline holds in this thread, and in those that run in its context, as a pipeline's do."""

    def __init__(self) -> None:
        self._running: set[Deadline] = set()

    @property
    def current(self) -> Deadline | None:
        """That of the call which this thread is busy with."""
        return _CURRENT.get()

    def check(self) -> None:
        """Do nothing while there is time, or nobody set an end.

        Raises:
            LimitError: The time is over.
        """
        if (deadline := _CURRENT.get()) is not None:
            deadline.check()

    def during(self, deadline: Deadline) -> AbstractContextManager[None]:
        """Let *deadline* hold meanwhile."""
        return _During(self._running, deadline)

    def stop(self) -> None:
        """End every call that runs, in whatever thread."""
        # A copy, as they go while they are told.
        for deadline in self._running.copy():
            deadline.stop()


class _During:
    """While a deadline holds; no generator, as every call of a tool has one."""

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
