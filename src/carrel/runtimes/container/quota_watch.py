"""`QuotaWatch`: kills a program that grows its workspace beyond the quota.

The program does not write through the gate, so its usage is measured while it runs. This is not exact: the
workspace may exceed its quota by what is written between two measurements, and until the container is dead.
Measuring takes at most a tenth of the time, but starts at once when the host disk has lost more free space
than the workspace had left. A program that moves files around may hide some from a measurement, so now and
then, and after failed measurements, the container is paused for one. The limits of a single file and of a
volume in memory are exact, because the kernel enforces them.
"""

from __future__ import annotations

import time
from contextlib import suppress
from threading import Event, Thread

from carrel.containers.container import Container
from carrel.errors import CarrelError, ClosedError
from carrel.fs.cancellable import WalkCancelledError, cancelled_when
from carrel.values import Usage
from carrel.workspace.unmediated_run import UnmediatedRun

_MIN_PAUSE_SECONDS = 0.05
_PAUSE_FACTOR = 10
"""Pause before the next measurement, as a multiple of the duration of the last one."""
_TRIES = 3
"""Measurements that may fail, as they do while directories are moved, before the container is paused."""
_FROZEN_EVERY = 20
"""The container is paused for one in this many measurements."""


class QuotaWatch:
    """Measures in a separate thread until the context is left."""

    def __init__(self, run: UnmediatedRun, container: Container) -> None:
        self.problem: str | None = None
        """The exceeded limit, with both numbers; the container has been killed then."""
        self.may_freeze = False
        """Whether the program has started; the engine hangs if a container is paused while it starts one."""
        self._run = run
        self._container = container
        self._stopped = Event()
        self._thread = Thread(target=self._watch, name="carrel-quota", daemon=True)
        self._failures = 0
        self._measurements = 0
        self._next_at = 0.0
        self._earliest_at = 0.0
        self._min_free_bytes: int | None = None
        """Free space of the disk below which the program could have used up its quota."""

    def __enter__(self) -> QuotaWatch:
        if self._run.has_quota:
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Stop measuring at once; the container is not paused afterwards."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(_MIN_PAUSE_SECONDS):
            try:
                with cancelled_when(self._stopped.is_set):
                    usage = self._measure() if self._is_due() else None
            except (ClosedError, WalkCancelledError):
                return
            except Exception:  # the program must not run unmeasured, whatever failed
                self._kill("the usage of the workspace could not be measured")
                return
            if usage is not None and (problem := self._run.problem(usage)):
                self._kill(problem)
                return

    def _kill(self, problem: str) -> None:
        self.problem = problem
        # The whole container: this needs no extra process in it, and is one request.
        with suppress(CarrelError):
            self._container.kill()

    def _is_due(self) -> bool:
        now = time.monotonic()
        if now >= self._next_at:
            return True
        access = self._run.access
        if access is None or self._min_free_bytes is None or now < self._earliest_at:
            return False
        return access.free_bytes() < self._min_free_bytes

    def _measure(self) -> Usage | None:
        """Measure the usage; `None` if that failed, which is tolerated a few times."""
        started = time.monotonic()
        self._measurements += 1
        is_frozen = self.may_freeze and (self._failures >= _TRIES or self._measurements % _FROZEN_EVERY == 0)
        try:
            usage = self._measure_frozen() if is_frozen else self._run.measure()
        except ClosedError:
            raise
        except CarrelError:
            if is_frozen and self._failures >= _TRIES:
                raise
            self._failures += 1
            return None
        self._failures = 0
        now = time.monotonic()
        self._next_at = now + max(_MIN_PAUSE_SECONDS, _PAUSE_FACTOR * (now - started))
        self._earliest_at = now + (now - started)
        room, access = self._run.room_bytes(usage), self._run.access
        self._min_free_bytes = None if room is None or access is None else access.free_bytes() - room
        return usage

    def _measure_frozen(self) -> Usage:
        """Measure while the container is paused."""
        self._container.pause()
        try:
            return self._run.measure()
        finally:
            self._container.unpause()
