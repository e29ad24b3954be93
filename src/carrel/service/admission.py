"""Concurrency limits for requests: in total, per tenant and per caller, for all fronts.

A request takes a place: there are so many for all, half of them for one tenant, and an eighth for one caller.
`threads` says whose work is done next.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar

from carrel.errors import LimitError
from carrel.service.principal import Principal
from carrel.service.thread_pools import decrement

CALLER_SHARES = 8
"""One caller may make this part of all requests at one time, or two of them if that is more."""
RETRY_SECONDS = 1
"""When somebody may try again who found no place."""

T = TypeVar("T")


class Admission:
    """The places of a service; belongs to its event loop."""

    def __init__(self, most: int) -> None:
        """Let *most* requests in at one time."""
        self._most = most
        self._running = 0
        self._of_tenants: Counter[str] = Counter()
        self._of_callers: Counter[tuple[str | None, str]] = Counter()

    def enter(self) -> AdmissionTicket:
        """Take a place before it is known who calls.

        Raises:
            LimitError: There is none.
        """
        _require(self._running + 1, self._most, "")
        self._running += 1
        return AdmissionTicket(self)

    def take(self, caller: Principal) -> None:
        """Count a request of *caller*; the operator is not limited.

        Raises:
            LimitError: The caller or its tenant has too many already.
        """
        tenant, who = caller.tenant, (caller.tenant, caller.name)
        if tenant is not None:
            _require(self._of_tenants[tenant] + 1, -(-self._most // 2), "of yours ")
            _require(self._of_callers[who] + 1, max(2, self._most // CALLER_SHARES), "of yours ")
            self._of_tenants[tenant] += 1
            self._of_callers[who] += 1

    def leave(self, caller: Principal | None) -> None:
        """Give back a place, which *caller* had taken if that is known."""
        self._running -= 1
        if caller is not None:
            self.give_back(caller)

    def give_back(self, caller: Principal) -> None:
        """End a request of *caller* that was counted by `take`."""
        if caller.tenant is not None:
            decrement(self._of_tenants, caller.tenant)
            decrement(self._of_callers, (caller.tenant, caller.name))


class AdmissionTicket:
    """The place of one request, until it leaves."""

    __slots__ = ("_admission", "_caller", "_is_left")

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._caller: Principal | None = None
        self._is_left = False

    def take(self, caller: Principal) -> None:
        """Tell whose request it is.

        Raises:
            LimitError: The caller or its tenant has too many already.
        """
        self._admission.take(caller)
        self._caller = caller

    def leave(self) -> None:
        """End; once is enough, and more does nothing."""
        if not self._is_left:
            self._is_left = True
            self._admission.leave(self._caller)


def _require(running: int, most: int, whose: str) -> None:
    if running > most:
        raise LimitError(
            "requests",
            limit=most,
            asked=running,
            message=f"too many requests {whose}at one time; try again in a moment",
            retry_after_seconds=RETRY_SECONDS,
        )


class SingleFlight:
    """Work that gives the same to everybody who asks for it before it begins.

    Of each kind one runs and one waits for it to end: whoever asks meanwhile is given what the second gives.
    """

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[Any]] = {}
        self._next: dict[Hashable, asyncio.Task[Any]] = {}

    async def run(self, kind: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What *work* gives, or other work of that *kind* which has not begun yet."""
        task: asyncio.Task[T] | None = self._next.get(kind)
        if task is None:
            before = self._running.get(kind)
            task = asyncio.create_task(self._run(kind, before, work))
            (self._running if before is None else self._next)[kind] = task
        return await asyncio.shield(task)

    async def _run(
        self, kind: Hashable, before: asyncio.Task[Any] | None, work: Callable[[], Coroutine[Any, Any, T]]
    ) -> T:
        if before is not None:
            await asyncio.wait([before])
            self._running[kind] = self._next.pop(kind)
        try:
            return await work()
        finally:
            del self._running[kind]
