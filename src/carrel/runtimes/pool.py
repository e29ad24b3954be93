"""Interpreters that are ready before somebody wants one.

To open an interpreter and load what nearly every script needs takes ten times as long as a short script. A
pool does it ahead, in its worker processes, while a core is idle; under load it opens them bare.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock
from weakref import WeakSet

from carrel.errors import SandboxExecutionError
from carrel.runtimes.interpreter import Interpreter
from carrel.runtimes.worker import Worker

READY_MIB = 8
"""What a ready interpreter takes, about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """How much a pool may take."""

    workers: int = 0
    """Most processes; 0 means one a core."""
    ready: int = 2
    """Interpreters kept ready."""
    memory_mb: int = 64
    """Most MiB that those may take together."""

    @property
    def most_workers(self) -> int:
        """Most processes."""
        return self.workers or len(os.sched_getaffinity(0))

    @property
    def most_ready(self) -> int:
        """How many interpreters are kept ready."""
        return min(self.ready, self.memory_mb // READY_MIB)


class Pool:
    """Worker processes and the interpreters that wait in them; each serves one session only."""

    def __init__(self, cache_directory: str, settings: PoolSettings | None = None) -> None:
        self._cache_directory = cache_directory
        self._settings = settings or PoolSettings()
        self._lock = Lock()
        self._workers: list[Worker] = []
        self._waiting: deque[Interpreter] = deque()
        self._opened: WeakSet[Interpreter] = WeakSet()
        self._running = 0
        self._is_closed = False

    def take(self, *, metered: bool = False) -> Interpreter:
        """An interpreter that nobody used before; the caller closes it.

        Raises:
            SandboxExecutionError: No process can be started, or the pool was closed.
        """
        with self._lock:
            if self._is_closed:
                raise SandboxExecutionError("the pool of interpreters is closed")
            self._bury()
            found = None if metered else self._ready()
            return found or self._open(metered=metered, warm=False)

    @contextmanager
    def running(self, interpreter: Interpreter) -> Iterator[None]:
        """Know that a script runs in *interpreter* meanwhile."""
        with self._lock:
            self._running += 1
            interpreter.worker.load += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                interpreter.worker.load -= 1
                self._fill_if_possible()

    def fill(self) -> None:
        """Begin to make interpreters ready; this does not wait for them.

        Raises:
            SandboxExecutionError: No process can be started.
        """
        with self._lock:
            self._fill()

    def close(self) -> None:
        """End all processes and what runs in them."""
        with self._lock:
            self._is_closed = True
            for interpreter in self._waiting:
                interpreter.close()
            self._waiting.clear()
            for worker in self._workers:
                worker.end()
            self._workers.clear()

    def abandon(self) -> None:
        """Begin anew in a child that was forked; what there is is the parent's."""
        for interpreter in self._opened:
            # Also those in use: a worker sees the end of a line only when nobody has it any more.
            interpreter.close()
        for worker in self._workers:
            worker.abandon()
        self._lock, self._running = Lock(), 0
        self._workers, self._waiting, self._opened = [], deque(), WeakSet()

    def _ready(self) -> Interpreter | None:
        for interpreter in self._waiting:
            if interpreter.is_ready():
                self._waiting.remove(interpreter)
                return interpreter
        return None

    def _fill_if_possible(self) -> None:
        """Make interpreters ready; a call that has one is not hindered if no other can be made."""
        with suppress(SandboxExecutionError):
            self._fill()

    def _fill(self) -> None:
        if self._is_closed or self._running > len(os.sched_getaffinity(0)) - 1:
            return
        self._bury()
        while len(self._waiting) < self._settings.most_ready:
            self._waiting.append(self._open(metered=False, warm=True))

    def _open(self, *, metered: bool, warm: bool) -> Interpreter:
        opened = self._worker().open(metered=metered, warm=warm)
        self._opened.add(opened)
        return opened

    def _bury(self) -> None:
        """Forget the processes that ended, and what was in them."""
        for worker in [worker for worker in self._workers if not worker.is_alive]:
            self._workers.remove(worker)
            worker.end()
            for interpreter in [one for one in self._waiting if one.worker is worker]:
                self._waiting.remove(interpreter)
                interpreter.close()

    def _worker(self) -> Worker:
        """The process with the least to do; a new one, if all are busy and there may be more."""
        found = min(self._workers, key=lambda worker: worker.load, default=None)
        if found is None or (found.load and len(self._workers) < self._settings.most_workers):
            found = Worker(self._cache_directory)
            self._workers.append(found)
        return found
