"""The thread pool for awaited calls that may block, separate from the event loop's default pool."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import RLock

from carrel.process import PROCESS

MAX_THREADS = 256
"""Maximum number of awaited calls that block at the same time."""


class CallThreads:
    """The thread pool of this process, created on first use."""

    def __init__(self) -> None:
        self._lock = RLock()  # a signal handler may interrupt its own thread
        self._pool: ThreadPoolExecutor | None = None

    @property
    def pool(self) -> ThreadPoolExecutor:
        """The threads."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(MAX_THREADS, thread_name_prefix="carrel-call")
            return self._pool

    def close(self) -> None:
        """Let the threads end once their calls have returned."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False)

    def abandon(self) -> None:
        """Start empty in a forked child, which has none of its parent's threads."""
        self._lock, self._pool = RLock(), None


def call_threads() -> ThreadPoolExecutor:
    """Return the thread pool of this process for awaited calls that may block."""
    return PROCESS.get(CallThreads).pool
