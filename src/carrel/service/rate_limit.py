"""Rate limit: maximum number of requests per minute of each caller."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from carrel.errors import LimitError
from carrel.service.principal import Principal

MINUTE_NS = 60 * 10**9
MAX_TRACKED_CALLERS = 10_000
"""Maximum number of callers tracked at one time; the least recently seen is dropped first."""


class RateLimiter:
    """Limits each caller's requests; after an idle minute, a whole minute may come as one burst."""

    def __init__(self, per_minute: int | None, *, clock: Callable[[], int] = time.monotonic_ns) -> None:
        """Allow *per_minute* requests to callers without a rate of their own; `None` for no limit."""
        self._per_minute = per_minute
        self._clock = clock
        self._lock = Lock()
        self._paid_ns: OrderedDict[tuple[str | None, str], int] = OrderedDict()
        """Up to which time each caller has used its quota; a request costs an equal part of a minute."""

    def take(self, caller: Principal) -> None:
        """Count one request; the operator, who has no tenant, is not limited.

        Raises:
            LimitError: The rate is exceeded; `retry_after_seconds` says when the next request is allowed.
        """
        rate = self._per_minute if caller.rate_per_minute is None else caller.rate_per_minute
        if rate is None or caller.tenant is None:
            return
        cost_ns = MINUTE_NS // rate
        name = caller.tenant, caller.name
        with self._lock:
            now = self._clock()
            paid_ns = max(self._paid_ns.get(name, now), now)
            wait_ns = paid_ns - now - (rate - 1) * cost_ns
            if wait_ns <= 0:
                self._paid_ns[name] = paid_ns + cost_ns
                self._paid_ns.move_to_end(name)
                self._evict(now)
        if wait_ns > 0:
            raise _rate_error(rate, -(-wait_ns // 10**9))

    def _evict(self, now: int) -> None:
        """Drop up to two callers, more than one call adds: those with a full quota, or the oldest if full."""
        for _ in range(2):
            name, paid_ns = next(iter(self._paid_ns.items()))
            if paid_ns > now and len(self._paid_ns) <= MAX_TRACKED_CALLERS:
                return
            del self._paid_ns[name]


def _rate_error(rate: int, seconds: int) -> LimitError:
    message = f"too many requests: {rate} per minute are allowed; try again in {seconds} s"
    return LimitError("rate", limit=rate, asked=None, message=message, retry_after_seconds=seconds)
