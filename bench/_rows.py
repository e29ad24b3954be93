"""Rows: one operation, the figures of each way, and how ours compares with the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles

OURS = "ours"
MICROSECONDS = {"s": 1e6, "ms": 1e3, "µs": 1.0}
ENOUGH = 100
"""Number of calls from which on the 99th percentile is reported."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What one way takes, in the unit of its row."""

    median: float
    best: float | None = None
    """Its best batch, where it was measured in batches; ratios go by it then."""
    p99: float | None = None
    per_second: float | None = None

    @property
    def decisive(self) -> float:
        """What ratios go by."""
        return self.median if self.best is None else self.best

    @classmethod
    def of(cls, seconds: Sequence[float], elapsed_seconds: float | None = None) -> Figure:
        """In milliseconds, from single calls and what they took together."""
        p99 = quantiles(seconds, n=100, method="inclusive")[98] * 1000 if len(seconds) >= ENOUGH else None
        per_second = len(seconds) / elapsed_seconds if elapsed_seconds else None
        return cls(median(seconds) * 1000, p99=p99, per_second=per_second)


@dataclass(frozen=True, slots=True)
class Row:
    """One operation, and what each way took for it."""

    operation: str
    detail: str
    """At which depth, or what it was about."""
    figures: Mapping[str, Figure]
    missing: Mapping[str, str] = field(default_factory=dict)
    """Ways that could not be measured, and why."""
    unit: str = "ms"

    def ratio(self, other: str, way: str = OURS) -> float:
        """How many times what *other* takes that *way* takes."""
        return self.figures[way].decisive / self.figures[other].decisive

    @property
    def is_time(self) -> bool:
        """Whether the unit is one of time."""
        return self.unit in MICROSECONDS

    @property
    def others(self) -> list[str]:
        """The ways other than ours."""
        return [way for way in self.figures if way != OURS]


def row_of(rows: Sequence[Row], operation: str, detail: str = "") -> Row:
    """The row of that operation; the one with that detail if several have it."""
    (row,) = (row for row in rows if row.operation == operation and detail in ("", row.detail))
    return row


def amount(value: float | None, unit: str) -> str:
    """A figure in the unit that suits it, with three digits; nothing for `None`."""
    if value is None:
        return ""
    for name, size in MICROSECONDS.items() if unit in MICROSECONDS else ():
        if value * MICROSECONDS[unit] >= size:
            value, unit = value * MICROSECONDS[unit] / size, name
            break
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:,.{digits}f} {unit}"


def times(ratio: float) -> str:
    """A ratio as a person reads it."""
    return f"{ratio:.2f}x" if ratio >= 0.1 else f"1/{1 / ratio:,.0f}"
