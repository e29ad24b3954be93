"""Concurrency limits for requests: in total, per tenant and per caller, for all fronts.

Each request holds one place while it runs. A tenant may hold half of all places, a caller one eighth of them.
`thread_pools` decides in which order the admitted requests get threads.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, TypeVar

from carrel.config.serve_keys import MAX_REQUESTS
from carrel.errors import LimitError
from carrel.service.principal import Principal
from carrel.service.thread_pools import decrement

CALLER_SHARES = 8
"""A caller may hold one place in this many, but always two."""
RETRY_SECONDS = 1
"""Suggested wait, in seconds, before a rejected request is retried."""

T = TypeVar("T")


class Admission:
    """Counts the requests that run in a service; used from its event loop only."""

    def __init__(self, max_requests: int) -> None:
        """Admit up to *max_requests* at one time."""
        self._max_requests = max_requests
        self._running = 0
        self._per_tenant: Counter[str] = Counter()
        self._per_caller: Counter[tuple[str | None, str]] = Counter()

    def admit(self) -> AdmissionTicket:
        """Admit a request whose caller is not yet known.

        Raises:
            LimitError: Too many requests are running.
        """
        _require_room(self._running + 1, self._max_requests, "")
        self._running += 1
        return AdmissionTicket(self)

    def count(self, caller: Principal) -> None:
        """Count a running request of *caller*; the operator is not limited.

        Raises:
            LimitError: The caller or its tenant has too many requests running.
        """
        tenant, key = caller.tenant, (caller.tenant, caller.name)
        if tenant is not None:
            max_of_tenant = -(-self._max_requests // 2)
            max_of_caller = max(2, self._max_requests // CALLER_SHARES)
            _require_room(self._per_tenant[tenant] + 1, max_of_tenant, "of yours ")
            _require_room(self._per_caller[key] + 1, max_of_caller, "of yours ")
            self._per_tenant[tenant] += 1
            self._per_caller[key] += 1

    def discount(self, caller: Principal) -> None:
        """Stop counting a request that `count` counted."""
        if caller.tenant is not None:
            decrement(self._per_tenant, caller.tenant)
            decrement(self._per_caller, (caller.tenant, caller.name))

    def release(self, caller: Principal | None) -> None:
        """Release the place of a request, which was counted for *caller* unless that is `None`."""
        self._running -= 1
        if caller is not None:
            self.discount(caller)


class AdmissionTicket:
    """The place of one running request."""

    __slots__ = ("_admission", "_caller", "_is_released")

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._caller: Principal | None = None
        self._is_released = False

    def assign(self, caller: Principal) -> None:
        """Count the request for *caller*.

        Raises:
            LimitError: The caller or its tenant has too many requests running.
        """
        self._admission.count(caller)
        self._caller = caller

    def release(self) -> None:
        """Release the place; further calls do nothing."""
        if not self._is_released:
            self._is_released = True
            self._admission.release(self._caller)


def _require_room(running: int, limit: int, whose: str) -> None:
    if running > limit:
        raise LimitError(
            "requests",
            limit=limit,
            asked=running,
            message=f"too many requests {whose}at one time: the limit by {MAX_REQUESTS.name} is {limit};"
            " try again in a moment",
            retry_after_seconds=RETRY_SECONDS,
        )


class SingleFlight:
    """Shares one run of some work between all callers that requested it before it began.

    For each key, one run is in progress and at most one is pending; every caller that arrives in the
    meantime gets the result of the pending one.
    """

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Task[Any]] = {}
        self._pending: dict[Hashable, asyncio.Task[Any]] = {}

    async def run(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of *work*, or of other work for *key* that has not begun yet."""
        task: asyncio.Task[T] | None = self._pending.get(key)
        if task is None:
            before = self._running.get(key)
            task = asyncio.create_task(self._run(key, before, work))
            (self._running if before is None else self._pending)[key] = task
        return await asyncio.shield(task)

    async def _run(
        self, key: Hashable, before: asyncio.Task[Any] | None, work: Callable[[], Coroutine[Any, Any, T]]
    ) -> T:
        if before is not None:
            await asyncio.wait([before])
            self._running[key] = self._pending.pop(key)
        try:
            return await work()
        finally:
            del self._running[key]
