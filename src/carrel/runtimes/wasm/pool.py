"""`Pool`: worker processes, with interpreters that are opened and warmed up before a call needs one.

Opening an interpreter and loading what nearly every script needs takes ten times as long as a short script.
The pool does this in advance, in its worker processes, while a core is idle; under load it opens interpreters
without warming them up.

A worker process belongs to the owner of the first script that it receives, and never serves another owner.
Processes are started and ended outside the lock, so a slow start blocks no other call.
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
"""Approximate memory of a ready interpreter, in MiB."""
SPARE_MIB = 32
"""Approximate memory of a ready interpreter in its own process, in MiB."""


class Owner(NamedTuple):
    """The tenant and session whose scripts share a process."""

    tenant: Hashable = None
    session: Hashable = None


SHARED = Owner()
"""The owner when a program runs its own sessions, which share all processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSettings:
    """The limits of a pool."""

    workers: int = 0
    """Maximum number of processes; 0 means one per core."""
    ready: int = 2
    """Number of interpreters kept ready."""
    memory_mb: int = 64
    """Maximum memory of the ready interpreters together, in MiB."""

    @property
    def max_workers(self) -> int:
        """The maximum number of processes."""
        return self.workers or len(os.sched_getaffinity(0))

    def max_ready(self, owner: Owner) -> int:
        """Return how many interpreters to keep ready; each in its own process unless processes are shared."""
        return min(self.ready, self.memory_mb // (READY_MIB if owner == SHARED else SPARE_MIB))


class Pool:
    """Worker processes and the interpreters that wait in them; an interpreter serves one session."""

    def __init__(self, cache_directory: str, settings: PoolSettings | None = None) -> None:
        self._cache_directory = cache_directory
        self._settings = settings or PoolSettings()
        self._lock = Lock()
        self._workers: list[WasmWorker] = []
        """The most recently used are at the end."""
        self._starting = 0
        self._waiting: deque[InterpreterHandle] = deque()
        self._filling = 0
        self._opened: WeakSet[InterpreterHandle] = WeakSet()
        self._running = 0
        self._is_closed = False

    def take(self, *, metered: bool = False, owner: Owner = SHARED) -> InterpreterHandle:
        """Return an unused interpreter in a process of *owner*; the caller closes it.

        Raises:
            SandboxExecutionError: No process can be started, or the pool was closed.
        """
        worker = None
        with self._lock:
            self._require_open()
            surplus = self._remove_surplus()
            found = None if metered else self._take_waiting(owner)
            if found is None:
                worker = self._reserve_worker(owner)
            if (chosen := worker if found is None else found.worker) is not None:
                self._assign(chosen, owner)
        _end(surplus)
        return found or self._open(worker, owner, metered=metered)

    @contextmanager
    def running(self, interpreter: InterpreterHandle) -> Iterator[None]:
        """Count a script that runs in *interpreter* for the length of the block."""
        with self._lock:
            self._running += 1
            interpreter.worker.load += 1
        try:
            yield
        finally:
            with self._lock:
                self._running -= 1
                interpreter.worker.load -= 1
            # The call has its interpreter; that no other can be opened is not its error.
            with suppress(SandboxExecutionError):
                self.fill(interpreter.worker.owner or SHARED)

    def fill(self, owner: Owner = SHARED) -> None:
        """Start to open interpreters for *owner* ahead of use, without waiting for them.

        Raises:
            SandboxExecutionError: No process can be started.
        """
        while self._begin_filling(owner):
            try:
                worker = None
                with self._lock:
                    if owner == SHARED:
                        worker = self._reserve_worker(owner)
                    else:
                        self._starting += 1
                opened = self._open(worker, None, metered=False, warm=True)
            finally:
                with self._lock:
                    self._filling -= 1
            with self._lock:
                self._waiting.append(opened)

    def close(self) -> None:
        """End all processes and the scripts that run in them."""
        with self._lock:
            self._is_closed = True
            for interpreter in self._waiting:
                interpreter.close()
            self._waiting.clear()
            workers, self._workers = self._workers, []
        _end(workers)

    def abandon(self) -> None:
        """Start empty in a forked child; the processes belong to the parent."""
        for interpreter in self._opened:
            # Also those in use: a worker sees its socket closed only once no process has its peer open.
            interpreter.close()
        for worker in self._workers:
            worker.abandon()
        self._lock, self._running, self._starting, self._filling = Lock(), 0, 0, 0
        self._workers, self._waiting, self._opened = [], deque(), WeakSet()

    # With the lock held

    def _require_open(self) -> None:
        if self._is_closed:
            raise SandboxExecutionError("the pool of interpreters is closed")

    def _take_waiting(self, owner: Owner) -> InterpreterHandle | None:
        """Take a waiting interpreter: in a process of *owner*, or, without an idle one, in an unowned one."""
        is_shared = owner == SHARED
        own = [each for each in self._waiting if each.worker.owner in (owner, None if is_shared else owner)]
        found = next((each for each in own if each.is_ready()), None)
        if found is None and not is_shared and not self._has_idle(owner):
            spares = [each for each in self._waiting if each.worker.owner is None]
            # One that is being opened is ready sooner than a new one.
            found = next((each for each in spares if each.is_ready()), spares[0] if spares else None)
        if found is not None:
            self._waiting.remove(found)
        return found

    def _has_idle(self, owner: Owner) -> bool:
        return any(worker.owner == owner and not worker.load for worker in self._workers)

    def _reserve_worker(self, owner: Owner) -> WasmWorker | None:
        """Return the least busy process of *owner*; `None` to start one, which is counted as starting."""
        found = min(
            (worker for worker in self._workers if worker.owner in (None, owner)),
            key=lambda worker: (worker.load, worker.owner is None),
            default=None,
        )
        max_workers = self._settings.max_workers
        if found is None or (found.load and len(self._workers) + self._starting < max_workers):
            self._starting += 1
            return None
        found.opening += 1
        return found

    def _assign(self, worker: WasmWorker, owner: Owner) -> None:
        worker.owner = owner
        self._workers.remove(worker)
        self._workers.append(worker)

    def _remove_surplus(self) -> list[WasmWorker]:
        """Remove dead processes, and idle owned ones above the maximum; the caller ends them."""
        surplus = [worker for worker in self._workers if not worker.is_alive]
        owned = [each for each in self._workers if each.owner is not None and each not in surplus]
        if (count := len(owned) - self._settings.max_workers) > 0:
            spare = [each for each in self._waiting if each.worker.owner not in (None, SHARED)]
            used = {id(each.worker) for each in self._opened if not each.is_closed and each not in spare}
            surplus += [each for each in owned if not each.opening and id(each) not in used][:count]
        if surplus:
            self._workers = [worker for worker in self._workers if worker not in surplus]
            for interpreter in [one for one in self._waiting if one.worker in surplus]:
                self._waiting.remove(interpreter)
                interpreter.close()
        return surplus

    # Without the lock held

    def _begin_filling(self, owner: Owner) -> bool:
        """Count one more interpreter as being opened if one is missing and a core is free."""
        with self._lock:
            if self._is_closed or self._running > len(os.sched_getaffinity(0)) - 1:
                return False
            surplus = self._remove_surplus()
            usable = [each for each in self._waiting if each.worker.owner in (None, SHARED)]
            is_missing = len(usable) + self._filling < self._settings.max_ready(owner)
            self._filling += is_missing
        _end(surplus)
        return is_missing

    def _open(
        self, worker: WasmWorker | None, owner: Owner | None, *, metered: bool, warm: bool = False
    ) -> InterpreterHandle:
        """Open an interpreter in *worker*, or in a new process of *owner* that is counted as starting."""
        worker = worker or self._start(owner)
        opened = None
        try:
            opened = worker.open(metered=metered, warm=warm)
        finally:
            with self._lock:
                worker.opening -= 1
                if opened is not None:
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
