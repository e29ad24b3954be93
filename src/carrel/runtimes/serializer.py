"""`SessionSerializer`: runs one script at a time per session, among the threads of this process."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from threading import Lock

from carrel.runtimes.call import CancellableCall

_SLICE_SECONDS = 0.05


class SessionSerializer:
    """One lock per session that is in use or waited for."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._locks: dict[Hashable, tuple[Lock, int]] = {}

    @contextmanager
    def hold(self, key: Hashable, call: CancellableCall, until: float) -> Iterator[bool]:
        """Wait for the session *key*; yield whether it was acquired before a cancellation and *until*."""
        lock = self._enter(key)
        is_acquired = False
        try:
            is_acquired = _acquire(lock, call, until)
            yield is_acquired
        finally:
            if is_acquired:
                lock.release()
            self._leave(key)

    def _enter(self, key: Hashable) -> Lock:
        with self._lock:
            lock, count = self._locks.get(key, (Lock(), 0))
            self._locks[key] = lock, count + 1
            return lock

    def _leave(self, key: Hashable) -> None:
        with self._lock:
            lock, count = self._locks.pop(key)
            if count > 1:
                self._locks[key] = lock, count - 1


def _acquire(lock: Lock, call: CancellableCall, until: float) -> bool:
    while not lock.acquire(timeout=_SLICE_SECONDS):
        if call.is_cancelled or time.monotonic() >= until:
            return False
    return True
