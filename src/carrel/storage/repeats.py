"""Collapse repeated refusals: record the first at once, and its repeats as a count.

Refusals are repeats if they have the same actor, operation, paths and error.

Not covered: a process that is killed loses the counts that it has not recorded yet. The first of each
refusal is in the journal.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from threading import RLock

from carrel.audit.event import Event

WINDOW_NS = 10 * 10**9
"""Nanoseconds after a refusal was recorded in which its repeats are only counted."""
MAX_REMEMBERED = 64
"""Maximum number of different refusals that are remembered."""

RepeatKey = tuple[str | None, ...]
"""The fields that repeats have in common."""


@dataclass(slots=True)
class _Counted:
    """A recorded refusal and the number of its repeats since."""

    recorded_ns: int
    latest: Event
    repeats: int = 0


class Repeats:
    """The latest refusals of one workspace in one process."""

    def __init__(self) -> None:
        # Reentrant, because a signal handler may interrupt a refusal in the same thread. What the handler
        # adds must not disturb a loop, so loops run over copies.
        self._lock = RLock()
        self._counted: dict[RepeatKey, _Counted] = {}
        self._process = os.getpid()

    def add(self, event: Event) -> list[Event]:
        """Return the events to record now: counts that are due, and *event* itself unless it is a repeat."""
        key = (event.actor, event.operation, event.path, event.other_path, event.error)
        self._reset_after_fork()
        with self._lock:
            due = self._drop_expired(event.time_ns)
            counted = self._counted.get(key)
            if counted is not None:
                counted.latest = event
                counted.repeats += 1
                return due
            while len(self._counted) >= MAX_REMEMBERED:
                due += self._drop(next(iter(self._counted)))
            self._counted[key] = _Counted(event.time_ns, event)
            return [*due, event]

    @property
    def has_counts(self) -> bool:
        """Whether there are counts that have not been recorded yet."""
        return any(counted.repeats for counted in list(self._counted.values()))

    def take_counts(self) -> list[Event]:
        """Return an event for each count that has not been recorded yet, and reset the counts."""
        self._reset_after_fork()
        with self._lock:
            return [event for counted in list(self._counted.values()) for event in _take_count(counted)]

    def _drop_expired(self, now_ns: int) -> list[Event]:
        """Drop refusals that were recorded before the window; return events for their counts."""
        expired = [
            key
            for key, counted in list(self._counted.items())
            # A negative age means that the clock was set back.
            if not 0 <= now_ns - counted.recorded_ns < WINDOW_NS
        ]
        return [event for key in expired for event in self._drop(key)]

    def _drop(self, key: RepeatKey) -> list[Event]:
        counted = self._counted.pop(key, None)
        return [] if counted is None else _take_count(counted)

    def _reset_after_fork(self) -> None:
        """Start empty in a forked child: counts and lock belong to the parent."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._lock = RLock()
            self._counted = {}


def _take_count(counted: _Counted) -> list[Event]:
    """Return an event for the repeats since the last one, if there were any, and reset the count."""
    repeats, counted.repeats = counted.repeats, 0
    return [replace(counted.latest, repeats=repeats)] if repeats else []
