"""The interpreters of stateful sessions, kept between calls."""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock, Timer
from typing import NamedTuple

from carrel.runtimes.wasm.interpreter import InterpreterHandle

_REMEMBERED = 10_000
"""Of how many sessions it is known why their interpreter is gone."""


class _Kept(NamedTuple):
    interpreter: InterpreterHandle
    used: float
    tenant: Hashable


class StatefulInterpreters:
    """At most so many, none idle for longer than so long.

    If there are too many, the tenant that has most loses the one that waited longest, so that no tenant can
    evict those of another that has fewer.
    """

    def __init__(
        self, *, most: int = 16, idle_seconds: float = 900.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._idle_seconds = idle_seconds
        self._clock = clock
        self._lock = Lock()
        self._found: OrderedDict[Hashable, _Kept] = OrderedDict()
        self._gone: OrderedDict[Hashable, str] = OrderedDict()
        self._timer: Timer | None = None

    def take(self, key: Hashable) -> InterpreterHandle | None:
        """The interpreter of a session, which the caller puts back or closes; `None` if there is none."""
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
            self._gone.pop(key, None)
            self._evict()
            self._wake_later()

    def forget(self, key: Hashable, reason: str) -> None:
        """Remember why the interpreter of a session is gone."""
        with self._lock:
            self._note(key, reason)

    def why_gone(self, key: Hashable) -> str | None:
        """Why the last interpreter of a session is gone, told once; `None` if it never had one."""
        with self._lock:
            return self._gone.pop(key, None)

    def close(self) -> None:
        """End all of them."""
        with self._lock:
            for each in self._found.values():
                each.interpreter.close()
            self._found.clear()
            if self._timer is not None:
                self._timer.cancel()

    def abandon(self) -> None:
        """Begin anew in a child that was forked; what there is is the parent's."""
        for each in self._found.values():
            each.interpreter.close()
        self._lock, self._timer = Lock(), None
        self._found, self._gone = OrderedDict(), OrderedDict()

    def _evict(self) -> None:
        oldest = self._clock() - self._idle_seconds
        for key in [key for key, each in self._found.items() if each.used <= oldest]:
            self._end(key, "it was idle")
        while len(self._found) > self._most:
            counts = Counter(each.tenant for each in self._found.values())
            most = max(counts.values())
            key = next(key for key, each in self._found.items() if counts[each.tenant] == most)
            self._end(key, "others needed its place")

    def _end(self, key: Hashable, reason: str) -> None:
        self._found.pop(key).interpreter.close()
        self._note(key, reason)

    def _note(self, key: Hashable, reason: str) -> None:
        self._gone[key] = reason
        self._gone.move_to_end(key)
        if len(self._gone) > _REMEMBERED:
            self._gone.popitem(last=False)

    def _wake_later(self) -> None:
        if self._timer is None and self._found:
            self._timer = Timer(self._idle_seconds + 0.05, self._wake)
            self._timer.daemon = True
            self._timer.start()

    def _wake(self) -> None:
        with self._lock:
            self._timer = None
            self._evict()
            self._wake_later()
