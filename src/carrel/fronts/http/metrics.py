"""Request counts and durations for Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from carrel.service.service import Service

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_BOUNDS = (*map(str, _SECONDS), "+Inf")


class _Row:
    """Counts of the requests with the same route, method and status."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * len(_BOUNDS)
        """Number of requests by duration, one per bucket."""
        self.seconds = 0.0


class Metrics(Collector):
    """The metrics of one service.

    Counted here and not with the library's classes, whose locks cost more than the rest of a small request;
    only one event loop counts.
    """

    def __init__(self, service: Service) -> None:
        self.running = 0
        """Number of requests in progress."""
        self._service = service
        self._sent_bytes = 0
        self._rows: dict[tuple[str, str, int], _Row] = {}
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def observe(self, route: str, method: str, status: int, seconds: float, sent_bytes: int) -> None:
        """Count one request."""
        row = self._rows.get((route, method, status))
        if row is None:
            row = self._rows[route, method, status] = _Row()
        row.counts[bisect_left(_SECONDS, seconds)] += 1
        row.seconds += seconds
        self._sent_bytes += sent_bytes

    def render(self) -> bytes:
        """Render all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics for the library."""
        labels = ("route", "method", "status")
        seconds = HistogramMetricFamily(
            "carrel_http_request_seconds", "How long requests took.", labels=labels
        )
        for (route, method, status), row in self._rows.items():
            buckets = list(zip(_BOUNDS, accumulate(row.counts), strict=True))
            seconds.add_metric((route, method, str(status)), buckets, row.seconds)
        yield seconds
        yield CounterMetricFamily("carrel_http_sent_bytes", "Bytes of all answers.", self._sent_bytes)
        yield GaugeMetricFamily("carrel_http_requests_running", "Requests now.", self.running)
        yield GaugeMetricFamily(
            "carrel_executions_running", "Commands and code now.", len(self._service.executions)
        )
        yield GaugeMetricFamily(
            "carrel_sessions_open", "Sessions that are open now.", len(self._service.open_sessions)
        )
        counts = self._service.logger.counts
        yield _by_code(
            "carrel_refusals", "Operations that were refused, by error code.", counts.of(mistakes=False)
        )
        yield _by_code("carrel_mistakes", "Invalid command lines, by error code.", counts.of(mistakes=True))


def _by_code(name: str, words: str, numbers: dict[str, int]) -> Metric:
    family = CounterMetricFamily(name, words, labels=("code",))
    for code, number in sorted(numbers.items()):
        family.add_metric((code,), number)
    return family
