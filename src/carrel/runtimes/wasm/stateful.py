"""`StatefulInterpreters`: keeps the interpreters of stateful sessions between calls."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock, Timer
from typing import NamedTuple

from carrel.runtimes.wasm.interpreter import InterpreterHandle

_MAX_REASONS = 10_000
"""Maximum number of sessions for which the reason of a lost interpreter is remembered."""


class _Kept(NamedTuple):
    interpreter: InterpreterHandle
    used: float
    tenant: Hashable


class StatefulInterpreters:
    """Keeps a limited number of interpreters, each until it has been idle for too long.

    If there are too many, the tenant with the most interpreters loses its least recently used one, so that no
    tenant can evict those of a tenant that has fewer.
    """

    def __init__(
        self, *, max_count: int = 16, idle_seconds: float = 900.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_count = max_count
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._lock = Lock()
        self._found: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._lost: OrderedDict[Hashable, str] = OrderedDict()
        self._timer: Timer | None = None

    def take(self, key: Hashable) -> InterpreterHandle | None:
        """Take the interpreter of a session, which the caller puts back or closes; `None` if none is kept."""
        with self._lock:
            self._evict()
            found = self._found.pop(key, None)
        if found is None:
            return None
        if not found.interpreter.worker.is_alive:
            found.interpreter.close()
            self.forget(key, "its process ended")
            return None
        return found.interpreter

    def put(self, key: Hashable, interpreter: InterpreterHandle, *, tenant: Hashable = None) -> None:
        """Keep the interpreter of a session of *tenant* until its next call."""
        with self._lock:
            self._found[key] = _Kept(interpreter, self._clock(), tenant)
            self._lost.pop(key, None)
            self._evict()
            self._schedule_eviction()

    def forget(self, key: Hashable, reason: str) -> None:
        """Remember why the interpreter of a session was lost."""
        with self._lock:
            self._remember(key, reason)

    def why_lost(self, key: Hashable) -> str | None:
        """Return once why the last interpreter of a session was lost; `None` if there is no reason left."""
        with self._lock:
            return self._lost.pop(key, None)

    def close(self) -> None:
        """End all interpreters."""
        with self._lock:
            for each in self._found.values():
                each.interpreter.close()
            self._found.clear()
            if self._timer is not None:
                self._timer.cancel()

    def abandon(self) -> None:
        """Start empty in a forked child; the interpreters belong to the parent."""
        for each in self._found.values():
            each.interpreter.close()
        self._lock, self._timer = Lock(), None
        self._found, self._lost = OrderedDict(), OrderedDict()

    def _evict(self) -> None:
        oldest = self._clock() - self._idle_seconds
        for key in [key for key, each in self._found.items() if each.used <= oldest]:
            self._end(key, "it was idle")
        while len(self._found) > self._max_count:
            counts = Counter(each.tenant for each in self._found.values())
            highest = max(counts.values())
            key = next(key for key, each in self._found.items() if counts[each.tenant] == highest)
            self._end(key, "it was evicted for others")

    def _end(self, key: Hashable, reason: str) -> None:
        self._found.pop(key).interpreter.close()
        self._remember(key, reason)

    def _remember(self, key: Hashable, reason: str) -> None:
        self._lost[key] = reason
        self._lost.move_to_end(key)
        if len(self._lost) > _MAX_REASONS:
            self._lost.popitem(last=False)

    def _schedule_eviction(self) -> None:
        if self._timer is None and self._found:
            self._timer = Timer(self._idle_seconds + 0.05, self._evict_idle)
            self._timer.daemon = True
            self._timer.start()

    def _evict_idle(self) -> None:
        with self._lock:
            self._timer = None
            self._evict()
            self._schedule_eviction()
