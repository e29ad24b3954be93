"""`QuotaWatch`: kills a program that makes its workspace larger than its quota.

The program does not ask the gate, so what it has written is measured while it runs. That is not exact: the
workspace may pass its quota by what is written between two looks, and until the container is dead. Each look
takes at most a tenth of the time, but one comes at once when the host's disk has lost more than the workspace
still had room for. A program that moves its files about may hide some from a look, so now and then, and where
a look failed, everything is frozen for one. What one file may hold, and a volume in memory, is exact: there
the kernel counts.
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

_LEAST_SECONDS = 0.05
_SHARE = 10
"""A look waits for so many times as long as the last one took."""
_TRIES = 3
"""Looks that fail, as they do while directories are moved, before everything is frozen for one."""
_FROZEN_EVERY = 20
"""One of so many looks is taken while everything is frozen, whatever the others saw."""


class QuotaWatch:
    """Measures from a thread of its own, until it is left."""

    def __init__(self, use: UnmediatedRun, container: Container) -> None:
        self.problem: str | None = None
        """What was too much, with both numbers; everything has been ended then."""
        self.may_freeze = False
        """Whether the program has begun; the engine hangs if a container is frozen while it starts one."""
        self._use = use
        self._container = container
        self._over = Event()
        self._thread = Thread(target=self._watch, name="carrel-quota", daemon=True)
        self._failed = 0
        self._looks = 0
        self._next_at = 0.0
        self._soonest = 0.0
        self._floor: int | None = None
        """How much the disk has free when the program alone could have used up its room."""

    def __enter__(self) -> QuotaWatch:
        if self._use.has_quota:
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Look no more, not even to the end; nothing is frozen afterwards."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_LEAST_SECONDS):
            try:
                with cancelled_when(self._over.is_set):
                    used = self._measured() if self._is_due() else None
            except (ClosedError, WalkCancelledError):
                return
            except CarrelError:
                self._end("the workspace could not be counted")
                return
            if used is not None and (problem := self._use.problem(used)):
                self._end(problem)
                return

    def _end(self, problem: str) -> None:
        self.problem = problem
        # Not only its processes: this needs no room for another one, and is one request.
        with suppress(CarrelError):
            self._container.kill()

    def _is_due(self) -> bool:
        now = time.monotonic()
        if now >= self._next_at:
            return True
        bypass = self._use.bypass
        if bypass is None or self._floor is None or now < self._soonest:
            return False
        return bypass.free_bytes() < self._floor

    def _measured(self) -> Usage | None:
        """Look; `None` if that failed, as it may for some times."""
        started = time.monotonic()
        self._looks += 1
        is_frozen = self.may_freeze and (self._failed >= _TRIES or self._looks % _FROZEN_EVERY == 0)
        try:
            used = self._measured_frozen() if is_frozen else self._use.measure()
        except ClosedError:
            raise
        except CarrelError:
            if is_frozen and self._failed >= _TRIES:
                raise
            self._failed += 1
            return None
        self._failed = 0
        now = time.monotonic()
        self._next_at = now + max(_LEAST_SECONDS, _SHARE * (now - started))
        self._soonest = now + (now - started)
        room, bypass = self._use.room_bytes(used), self._use.bypass
        self._floor = None if room is None or bypass is None else bypass.free_bytes() - room
        return used

    def _measured_frozen(self) -> Usage:
        """Look while nothing in the container can move."""
        self._container.pause()
        try:
            return self._use.measure()
        finally:
            self._container.unpause()
