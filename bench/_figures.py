"""Rows of what single calls took: medians, the worst hundredth, calls a second, and ours beside others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median, quantiles

from bench._report import NOISE, OURS, Aim

ENOUGH = 100
"""Calls of which the worst hundredth can be told."""


@dataclass(frozen=True, slots=True)
class Figure:
    """What one way takes, in the unit of its row."""

    median: float
    p99: float | None = None
    per_second: float | None = None

    @classmethod
    def of(cls, seconds: Sequence[float], elapsed_seconds: float | None = None) -> Figure:
        """In milliseconds, from single calls and what they took together."""
        p99 = quantiles(seconds, n=100, method="inclusive")[98] * 1000 if len(seconds) >= ENOUGH else None
        return cls(median(seconds) * 1000, p99, len(seconds) / elapsed_seconds if elapsed_seconds else None)


@dataclass(frozen=True, slots=True)
class Row:
    """One operation, and what each way took for it."""

    operation: str
    detail: str
    figures: Mapping[str, Figure]
    missing: Mapping[str, str] = field(default_factory=dict)
    """Ways that could not be measured, and why."""
    unit: str = "ms"

    def ratio(self, other: str) -> float:
        """How many times what *other* takes that ours takes, by their medians."""
        return self.figures[OURS].median / self.figures[other].median


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most times another way's time that ours may take in one row."""

    text: str
    operation: str
    detail: str
    other: str
    most: float

    def judge(self, rows: Sequence[Row]) -> Aim:
        """Hold the ceiling against its row."""
        row = row_of(rows, self.operation, self.detail)
        if self.other not in row.figures:
            why = row.missing.get(self.other, "it was left out")
            return Aim(self.text, "?", f"{self.other} was not measured: {why}")
        ratio, ours, other = row.ratio(self.other), row.figures[OURS].median, row.figures[self.other].median
        excess = ratio / self.most
        verdict = "met" if excess <= 1 else "close" if excess <= NOISE else "MISSED"
        found = f"{_times(ratio)} that of {self.other!r} ({ours:,.2f} and {other:,.2f} {row.unit})"
        return Aim(self.text, verdict, found)


def row_of(rows: Sequence[Row], operation: str, detail: str) -> Row:
    (row,) = (row for row in rows if (row.operation, row.detail) == (operation, detail))
    return row


def heading(machine: Mapping[str, object]) -> str:
    """What the numbers depend on, and the names of the columns."""
    about = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in machine.items())
    columns = (
        f"{'operation':<22} {'at':<20} {'way':<26} {'median':>12} {'p99':>12} {'a second':>9} {'ours is':>9}"
    )
    return f"{about}\n\n{columns}"


def lines(row: Row) -> str:
    """The row as text: one line a way, ours first."""
    shown = []
    title = f"{row.operation:<22} {row.detail:<20}"
    for way, figure in row.figures.items():
        ratio = "" if way == OURS else _times(row.ratio(way))
        per_second = "" if figure.per_second is None else f"{figure.per_second:,.1f}"
        numbers = f"{_number(figure.median, row.unit):>12} {_number(figure.p99, row.unit):>12}"
        shown.append(f"{title} {way:<26} {numbers} {per_second:>9} {ratio:>9}".rstrip())
        title = " " * len(title)
    shown += [f"{title} {way:<26} not measured: {why}" for way, why in row.missing.items()]
    return "\n".join(shown)


def _number(value: float | None, unit: str) -> str:
    return "" if value is None else f"{value:,.2f} {unit}"


def _times(ratio: float) -> str:
    return f"{ratio:.2f}x" if ratio >= 0.1 else f"1/{1 / ratio:,.0f}"


def for_programs(
    rows: Sequence[Row], aims: Sequence[Aim], machine: Mapping[str, object]
) -> dict[str, object]:
    """Everything as plain values."""
    return {
        "machine": machine,
        "rows": [asdict(row) | {"ours_is": {way: row.ratio(way) for way in row.figures}} for row in rows],
        "aims": [asdict(aim) for aim in aims],
    }
