"""`Pool`: worker processes, and interpreters that are opened and warmed before a call needs one.

To open an interpreter and load what nearly every script needs takes ten times as long as a short script. A
pool does it ahead, in its worker processes, while a core is idle; under load it opens them bare.

A worker process belongs to the owner of the first script that it is given, and never serves another.
Processes are started and ended outside the lock: a slow start holds up nobody else.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple
from weakref import WeakSet

from carrel.errors import SandboxExecutionError
from carrel.runtimes.wasm.interpreter import InterpreterHandle
from carrel.runtimes.wasm.worker_process import WasmWorker

READY_MIB = 8
"""What a ready interpreter takes, about."""
SPARE_MIB = 32
"""What a ready interpreter takes with a process of its own, about."""


class Owner(NamedTuple):
    """Whose scripts may run in one process."""

    tenant: Hashable = None
    session: Hashable = None


ANYBODY = Owner()
"""The owner where a program runs its own sessions: they share the processes."""


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

    def most_ready(self, owner: Owner) -> int:
        """How many interpreters are kept ready; each in a process of its own, unless anybody shares it."""
        return min(self.ready, self.memory_mb // (READY_MIB if owner == ANYBODY else SPARE_MIB))


class Pool:
    """Worker processes and the interpreters that wait in them; each serves one session only."""

    def __init__(self, cache_directory: str, settings: PoolSettings | None = None) -> None:
        self._cache_directory = cache_directory
        self._settings = settings or PoolSettings()
        self._lock = Lock()
        self._workers: list[WasmWorker] = []
        """Those that were used last are at the end."""
        self._starting = 0
        self._waiting: deque[InterpreterHandle] = deque()
        self._filling = 0
        self._opened: WeakSet[InterpreterHandle] = WeakSet()
        self._running = 0
        self._is_closed = False

    def take(self, *, metered: bool = False, owner: Owner = ANYBODY) -> InterpreterHandle:
        """An interpreter that nobody used before, in a process of *owner*; the caller closes it.

        Raises:
            SandboxExecutionError: No process can be started, or the pool was closed.
        """
        worker = None
        with self._lock:
            self._require_open()
            over = self._sift()
            found = None if metered else self._ready(owner)
            if found is None:
                worker = self._worker_of(owner)
            if (chosen := worker if found is None else found.worker) is not None:
                self._give(chosen, owner)
        _end(over)
        return found or self._open(worker, owner, metered=metered)

    @contextmanager
    def running(self, interpreter: InterpreterHandle) -> Iterator[None]:
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
            # A call that has an interpreter is not hindered if no other can be made.
            with suppress(SandboxExecutionError):
                self.fill(interpreter.worker.owner or ANYBODY)

    def fill(self, owner: Owner = ANYBODY) -> None:
        """Begin to make interpreters ready for such as *owner*; this does not wait for them.

        Raises:
            SandboxExecutionError: No process can be started.
        """
        while self._begin_filling(owner):
            try:
                worker = None
                with self._lock:
                    if owner == ANYBODY:
                        worker = self._worker_of(owner)
                    else:
                        self._starting += 1
                opened = self._open(worker, None, metered=False, warm=True)
            finally:
                with self._lock:
                    self._filling -= 1
            with self._lock:
                self._waiting.append(opened)

    def close(self) -> None:
        """End all processes and what runs in them."""
        with self._lock:
            self._is_closed = True
            for interpreter in self._waiting:
                interpreter.close()
            self._waiting.clear()
            over, self._workers = self._workers, []
        _end(over)

    def abandon(self) -> None:
        """Begin anew in a child that was forked; what there is is the parent's."""
        for interpreter in self._opened:
            # Also those in use: a worker sees the end of a line only when nobody has it any more.
            interpreter.close()
        for worker in self._workers:
            worker.abandon()
        self._lock, self._running, self._starting, self._filling = Lock(), 0, 0, 0
        self._workers, self._waiting, self._opened = [], deque(), WeakSet()

    # With the lock

    def _require_open(self) -> None:
        if self._is_closed:
            raise SandboxExecutionError("the pool of interpreters is closed")

    def _ready(self, owner: Owner) -> InterpreterHandle | None:
        """One that waits: in a process of *owner*, or, if that has none that is idle, in one of nobody."""
        is_shared = owner == ANYBODY
        own = [each for each in self._waiting if each.worker.owner in (owner, None if is_shared else owner)]
        found = next((each for each in own if each.is_ready()), None)
        if found is None and not is_shared and not self._has_idle(owner):
            spares = [each for each in self._waiting if each.worker.owner is None]
            # One that is just being opened comes sooner than a new one.
            found = next((each for each in spares if each.is_ready()), spares[0] if spares else None)
        if found is not None:
            self._waiting.remove(found)
        return found

    def _has_idle(self, owner: Owner) -> bool:
        return any(worker.owner == owner and not worker.load for worker in self._workers)

    def _worker_of(self, owner: Owner) -> WasmWorker | None:
        """The process of *owner* with the least to do; `None` if one is to be started, which is counted."""
        found = min(
            (worker for worker in self._workers if worker.owner in (None, owner)),
            key=lambda worker: (worker.load, worker.owner is None),
            default=None,
        )
        most = self._settings.most_workers
        if found is None or (found.load and len(self._workers) + self._starting < most):
            self._starting += 1
            return None
        found.opening += 1
        return found

    def _give(self, worker: WasmWorker, owner: Owner) -> None:
        worker.owner = owner
        self._workers.remove(worker)
        self._workers.append(worker)

    def _sift(self) -> list[WasmWorker]:
        """Take out the processes that ended, and idle ones of owners if there are too many; to be ended."""
        over = [worker for worker in self._workers if not worker.is_alive]
        spare = [each for each in self._waiting if each.worker.owner not in (None, ANYBODY)]
        used = {id(each.worker) for each in self._opened if not each.is_closed and each not in spare}
        owned = [each for each in self._workers if each.owner is not None and each not in over]
        surplus = len(owned) - self._settings.most_workers
        idle = [each for each in owned if not each.opening and id(each) not in used]
        over += idle[: max(surplus, 0)]
        self._workers = [worker for worker in self._workers if worker not in over]
        for interpreter in [one for one in self._waiting if one.worker in over]:
            self._waiting.remove(interpreter)
            interpreter.close()
        return over

    # Without the lock

    def _begin_filling(self, owner: Owner) -> bool:
        """Whether there is a core for one more interpreter and it is wanted; it is counted then."""
        with self._lock:
            if self._is_closed or self._running > len(os.sched_getaffinity(0)) - 1:
                return False
            over = self._sift()
            usable = [each for each in self._waiting if each.worker.owner in (None, ANYBODY)]
            is_wanted = len(usable) + self._filling < self._settings.most_ready(owner)
            self._filling += is_wanted
        _end(over)
        return is_wanted

    def _open(
        self, worker: WasmWorker | None, owner: Owner | None, *, metered: bool, warm: bool = False
    ) -> InterpreterHandle:
        """A new interpreter in *worker*, or in a new process of *owner*, which was counted."""
        worker = worker or self._start(owner)
        opened = worker.open(metered=metered, warm=warm)
        with self._lock:
            worker.opening -= 1
            self._opened.add(opened)
        return opened

    def _start(self, owner: Owner | None) -> WasmWorker:
        started = None
        try:
            started = WasmWorker(self._cache_directory)
        finally:
            with self._lock:
                self._starting -= 1
                if started is not None and not self._is_closed:
                    started.owner, started.opening = owner, 1
                    self._workers.append(started)
        with self._lock:
            is_closed = self._is_closed
        if is_closed:
            started.end()
            raise SandboxExecutionError("the pool of interpreters is closed")
        return started


def _end(workers: list[WasmWorker]) -> None:
    for worker in workers:
        worker.end()
