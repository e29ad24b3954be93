"""Collapse repeated refusals: record the first at once, and its repeats as a count.

Nothing that differs in its actor, operation, path or error counts as a repeat.

Not covered: a process that is killed loses the numbers that it had not recorded yet. The first of each
refusal is in the journal.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from threading import RLock

from carrel.audit.event import Event

WINDOW_NS = 10 * 10**9
"""So long after a refusal was recorded the same is only counted."""
MAX_REMEMBERED = 64
"""Most different refusals that are remembered."""

RepeatKey = tuple[str | None, ...]
"""What repeats have in common."""


@dataclass(slots=True)
class _Counted:
    """A refusal that was recorded, and how often it came again since."""

    recorded_ns: int
    latest: Event
    repeats: int = 0


class Repeats:
    """The latest refusals of one workspace in one process."""

    def __init__(self) -> None:
        # One that its own thread may take again, as a signal handler does in the middle of a refusal; what it
        # adds then must not disturb a loop, so these go over copies.
        self._lock = RLock()
        self._counted: dict[RepeatKey, _Counted] = {}
        self._process = os.getpid()

    def add(self, event: Event) -> list[Event]:
        """What has to be recorded now: numbers that are due, and *event* itself unless it is a repeat."""
        key = (event.actor, event.operation, event.path, event.other_path, event.error)
        self._forget_parent()
        with self._lock:
            due = self._forget_old(event.time_ns)
            known = self._counted.get(key)
            if known is not None:
                known.latest = event
                known.repeats += 1
                return due
            while len(self._counted) >= MAX_REMEMBERED:
                due += self._forget(next(iter(self._counted)))
            self._counted[key] = _Counted(event.time_ns, event)
            return [*due, event]

    @property
    def has_counts(self) -> bool:
        """Whether there are numbers that were not recorded yet."""
        return any(known.repeats for known in list(self._counted.values()))

    def counts(self) -> list[Event]:
        """The numbers that were not recorded yet; what comes again is still counted."""
        self._forget_parent()
        with self._lock:
            return [told for known in list(self._counted.values()) for told in _told(known)]

    def _forget_old(self, now_ns: int) -> list[Event]:
        """Forget what was recorded too long ago; the numbers that are due then."""
        old = [
            key
            for key, known in list(self._counted.items())
            # A clock that was set back tells nothing.
            if not 0 <= now_ns - known.recorded_ns < WINDOW_NS
        ]
        return [told for key in old for told in self._forget(key)]

    def _forget(self, key: RepeatKey) -> list[Event]:
        known = self._counted.pop(key, None)
        return [] if known is None else _told(known)

    def _forget_parent(self) -> None:
        """Leave to the parent of a forked process what it has counted, and its lock."""
        if self._process != os.getpid():
            self._process = os.getpid()
            self._lock = RLock()
            self._counted = {}


def _told(known: _Counted) -> list[Event]:
    """The record of all repeats since the last one, if there were any."""
    repeats, known.repeats = known.repeats, 0
    return [replace(known.latest, repeats=repeats)] if repeats else []
