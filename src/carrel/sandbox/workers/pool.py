"""`ShellWorkers`: leases worker processes to command lines: bounded, reused, each for one tenant."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Condition

from carrel.audit.logger import SandboxLogger
from carrel.errors import StoppingError
from carrel.sandbox.workers.process import WorkerProcess, Zygote
from carrel.shell.budget import Meter

IDLE_SECONDS = 60.0
"""Idle time after which a worker is ended."""
_SLICE_SECONDS = 0.05
"""Interval at which a command line that waits for a worker checks its limits."""


class ShellWorkers:
    """The workers of a service.

    A tenant has at most half of them, so that no tenant can block all others. An idle worker is evicted for
    another tenant; a busy one never is.
    """

    def __init__(
        self,
        max_workers: int,
        memory_bytes: int,
        *,
        logger: SandboxLogger | None = None,
        preload: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Run at most *max_workers* workers, each of which may grow by *memory_bytes*.

        The modules of *preload* are imported before the first worker is forked.
        """
        self.memory_bytes = memory_bytes
        self.logger = SandboxLogger.of(logger)
        self._max_workers = max_workers
        self._max_per_tenant = max(1, max_workers // 2)
        self._clock = clock
        self._zygote = Zygote(memory_bytes, preload)
        self._changed = Condition()
        self._idle: list[WorkerProcess] = []
        """The most recently used is last."""
        self._busy: Counter[str] = Counter()
        self._leased: set[WorkerProcess] = set()
        self._is_closed = False

    def pids(self) -> dict[str, list[int]]:
        """Return the process ids of each tenant's workers."""
        with self._changed:
            found: dict[str, list[int]] = {}
            for worker in (*self._idle, *self._leased):
                found.setdefault(worker.tenant, []).append(worker.pid)
            return found

    @contextmanager
    def lease(self, tenant: str, meter: Meter) -> Iterator[WorkerProcess]:
        """Lease a worker of *tenant* for one command line, waiting as long as *meter* allows.

        Raises:
            Stopped: The command line timed out or was cancelled.
            StoppingError: The workers were closed.
            SandboxExecutionError: No process can be started.
        """
        worker = self._take(tenant, meter)
        try:
            if worker is None:
                worker = self._zygote.fork(tenant)
                with self._changed:
                    self._leased.add(worker)
                    is_closed = self._is_closed
                if is_closed:
                    worker.kill()
                    # The fork may have restarted it.
                    self._zygote.close()
            yield worker
        finally:
            self._return(tenant, worker)

    def _take(self, tenant: str, meter: Meter) -> WorkerProcess | None:
        """Reserve a place and return an idle worker of *tenant*; `None` if the caller is to fork one."""
        while True:
            meter.check()
            with self._changed:
                if self._is_closed:
                    raise StoppingError("the service is stopping")
                has_room, found, evicted = self._find(tenant)
                if not has_room:
                    self._changed.wait(_SLICE_SECONDS)
                    continue
                self._busy[tenant] += 1
                if found is not None:
                    self._leased.add(found)
            if evicted is not None:
                evicted.end()
            if found is None or found.is_alive():
                return found
            self._return(tenant, found)

    def _find(self, tenant: str) -> tuple[bool, WorkerProcess | None, WorkerProcess | None]:
        """Return whether there is room for a command line, an idle worker for it, and a worker to evict."""
        if self._busy[tenant] >= self._max_per_tenant:
            return False, None, None
        for worker in reversed(self._idle):
            if worker.tenant == tenant:
                self._idle.remove(worker)
                return True, worker, None
        if self._busy.total() + len(self._idle) < self._max_workers:
            return True, None, None
        return (True, None, self._idle.pop(0)) if self._idle else (False, None, None)

    def _return(self, tenant: str, worker: WorkerProcess | None) -> None:
        is_reusable = worker is not None and worker.is_usable and worker.is_alive()
        if worker is not None and not is_reusable:
            worker.end()
        with self._changed:
            self._busy[tenant] -= 1
            if not self._busy[tenant]:
                del self._busy[tenant]
            if worker is not None:
                self._leased.discard(worker)
                if is_reusable and not self._is_closed:
                    worker.idle_since = self._clock()
                    self._idle.append(worker)
            self._changed.notify_all()

    def end_idle(self) -> None:
        """End the workers that have been idle for `IDLE_SECONDS`."""
        with self._changed:
            oldest = self._clock() - IDLE_SECONDS
            expired = [worker for worker in self._idle if worker.idle_since < oldest]
            for worker in expired:
                self._idle.remove(worker)
        for worker in expired:
            worker.end()

    def close(self) -> None:
        """End all workers and the command lines that run in them."""
        with self._changed:
            self._is_closed = True
            idle, leased = self._idle[:], list(self._leased)
            self._idle.clear()
        for worker in idle:
            worker.end()
        for worker in leased:
            worker.kill()
        self._zygote.close()
