"""`ShellWorkers`: lends worker processes to command lines: one tenant each, bounded, reused."""

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
"""A worker that is not used for so long is ended."""
_SLICE_SECONDS = 0.05
"""How often a line that waits for a worker looks whether it still may run."""


class ShellWorkers:
    """The workers of a service.

    A tenant has at most half of them, so that no one tenant keeps all others waiting. An idle worker makes
    room for one of another tenant; a busy one never does.
    """

    def __init__(
        self,
        most: int,
        memory_bytes: int,
        *,
        logger: SandboxLogger | None = None,
        preload: Sequence[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Run at most *most* workers, each of which may grow by *memory_bytes*.

        The modules of *preload* are loaded before the first worker is forked.
        """
        self.memory_bytes = memory_bytes
        self.logger = SandboxLogger.of(logger)
        self._most = most
        self._most_per_tenant = max(1, most // 2)
        self._clock = clock
        self._zygote = Zygote(memory_bytes, preload)
        self._changed = Condition()
        self._idle: list[WorkerProcess] = []
        """The one that was used last comes last."""
        self._busy: Counter[str] = Counter()
        self._lent: set[WorkerProcess] = set()
        self._is_closed = False

    def pids(self) -> dict[str, list[int]]:
        """The processes of each tenant."""
        with self._changed:
            found: dict[str, list[int]] = {}
            for worker in (*self._idle, *self._lent):
                found.setdefault(worker.tenant, []).append(worker.pid)
            return found

    @contextmanager
    def lent(self, tenant: str, meter: Meter) -> Iterator[WorkerProcess]:
        """A worker of *tenant* for one line, waited for as long as *meter* allows.

        Raises:
            Stopped: The time of the line is over, or somebody cancelled it.
            StoppingError: The workers were closed.
            SandboxExecutionError: No process can be started.
        """
        worker = self._taken(tenant, meter)
        try:
            if worker is None:
                worker = self._zygote.fork(tenant)
                with self._changed:
                    self._lent.add(worker)
                    is_late = self._is_closed
                if is_late:
                    worker.kill()
            yield worker
        finally:
            self._give_back(tenant, worker)

    def _taken(self, tenant: str, meter: Meter) -> WorkerProcess | None:
        """An idle worker of *tenant*, or `None` if one more may be made; then there is room for it."""
        while True:
            meter.check()
            with self._changed:
                if self._is_closed:
                    raise StoppingError("the service is about to end")
                is_free, found, evicted = self._find(tenant)
                if not is_free:
                    self._changed.wait(_SLICE_SECONDS)
                    continue
                self._busy[tenant] += 1
                if found is not None:
                    self._lent.add(found)
            if evicted is not None:
                evicted.end()
            if found is None or found.is_alive():
                return found
            self._give_back(tenant, found)

    def _find(self, tenant: str) -> tuple[bool, WorkerProcess | None, WorkerProcess | None]:
        """Whether there is room for a line, the worker for it if there is one, and one that has to go."""
        if self._busy[tenant] >= self._most_per_tenant:
            return False, None, None
        for worker in reversed(self._idle):
            if worker.tenant == tenant:
                self._idle.remove(worker)
                return True, worker, None
        if self._busy.total() + len(self._idle) < self._most:
            return True, None, None
        return (True, None, self._idle.pop(0)) if self._idle else (False, None, None)

    def _give_back(self, tenant: str, worker: WorkerProcess | None) -> None:
        keeps = worker is not None and worker.is_usable and worker.is_alive()
        if worker is not None and not keeps:
            worker.end()
        with self._changed:
            self._busy[tenant] -= 1
            if not self._busy[tenant]:
                del self._busy[tenant]
            if worker is not None:
                self._lent.discard(worker)
                if keeps and not self._is_closed:
                    worker.idle_since = self._clock()
                    self._idle.append(worker)
            self._changed.notify_all()

    def end_idle(self) -> None:
        """End the workers that were not used for long."""
        with self._changed:
            until = self._clock() - IDLE_SECONDS
            ended = [worker for worker in self._idle if worker.idle_since < until]
            for worker in ended:
                self._idle.remove(worker)
        for worker in ended:
            worker.end()

    def close(self) -> None:
        """End all of them, and what runs in them."""
        with self._changed:
            self._is_closed = True
            idle, lent = self._idle[:], list(self._lent)
            self._idle.clear()
        for worker in idle:
            worker.end()
        for worker in lent:
            worker.kill()
        self._zygote.close()
