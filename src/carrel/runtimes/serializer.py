"""Run one script at a time per session, among the threads and processes of this host."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from carrel.containers.usage_lock import exclusive_usage_lock
from carrel.runtimes.call import CancellableCall

_SLICE_SECONDS = 0.05


class SessionSerializer:
    """A lock for every session that somebody wants to use just now."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._locks: dict[Hashable, tuple[Lock, int]] = {}

    @contextmanager
    def hold(self, key: Hashable, call: CancellableCall, until: float) -> Iterator[bool]:
        """Wait for the session *key*; whether it was had before *call* was cancelled, and before *until*."""
        lock = self._enter(key)
        had = False
        try:
            had = _acquire(lock, call, until)
            yield had
        finally:
            if had:
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


@contextmanager
def cross_process_lock(path: Path, call: CancellableCall, until: float) -> Iterator[bool]:
    """Wait until no other process has the lock *path*; whether that was before *call* was cancelled.

    The kernel lets go of the lock of a process that is gone.
    """
    while True:
        with exclusive_usage_lock(path) as hold:
            if hold is not None:
                yield True
                return
        if call.is_cancelled or time.monotonic() >= until:
            yield False
            return
        time.sleep(_SLICE_SECONDS)
