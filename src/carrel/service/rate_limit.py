"""Rate limit: how many requests a caller may make per minute."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from carrel.errors import LimitError
from carrel.service.principal import Principal

MINUTE_NS = 60 * 10**9
MAX_TRACKED_CALLERS = 10_000
"""Most callers that are counted at one time; the one that came longest ago is forgotten first."""


class RateLimiter:
    """Counts requests: a caller who was quiet for a minute may make all of that minute's at once."""

    def __init__(self, per_minute: int | None, *, clock: Callable[[], int] = time.monotonic_ns) -> None:
        """Allow *per_minute* to everybody who has no rate of their own; `None` means no ceiling."""
        self._per_minute = per_minute
        self._clock = clock
        self._lock = Lock()
        self._paid_ns: OrderedDict[tuple[str | None, str], int] = OrderedDict()
        """Until when each caller has used up its time, if each request takes an equal part of a minute."""

    def take(self, caller: Principal) -> None:
        """Count one request; the operator, who has no tenant, is not counted.

        Raises:
            LimitError: The caller makes too many; `retry_after_seconds` says when one more is allowed.
        """
        rate = self._per_minute if caller.rate_per_minute is None else caller.rate_per_minute
        if rate is None or caller.tenant is None:
            return
        part_ns = MINUTE_NS // rate
        name = caller.tenant, caller.name
        with self._lock:
            now = self._clock()
            paid_ns = max(self._paid_ns.get(name, now), now)
            wait_ns = paid_ns - now - (rate - 1) * part_ns
            if wait_ns <= 0:
                self._paid_ns[name] = paid_ns + part_ns
                self._paid_ns.move_to_end(name)
                self._forget(now)
        if wait_ns > 0:
            raise _too_many(rate, -(-wait_ns // 10**9))

    def _forget(self, now: int) -> None:
        """Let go of callers who are as if they had never come, as many as keeps pace, and of too many."""
        for _ in range(2):
            name, paid_ns = next(iter(self._paid_ns.items()))
            if paid_ns > now and len(self._paid_ns) <= MAX_TRACKED_CALLERS:
                return
            del self._paid_ns[name]


def _too_many(rate: int, seconds: int) -> LimitError:
    message = f"too many requests: {rate} a minute are allowed; try again in {seconds} s"
    return LimitError("rate", limit=rate, asked=None, message=message, retry_after_seconds=seconds)
