"""Aims of the project, and whether a run meets them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench._rows import OURS, Row, amount, times

NOISE = 1.05
"""The ratio by which two runs may differ on a quiet machine."""
MET, CLOSE, MISSED, UNMEASURED = "met", "close", "MISSED", "?"


@dataclass(frozen=True, slots=True)
class Aim:
    """One aim of the project, and the result of this run."""

    text: str
    verdict: str
    """`met`, `close` if it is missed by no more than noise, `MISSED`, or `?` if unknown."""
    found: str
    """What was measured, as a person reads it."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most times another way's time that ours may take, over the rows of an operation."""

    text: str
    operation: str
    other: str
    most: float
    detail: str = ""
    """The only row that counts; all of the operation if it is empty."""

    def judge(self, rows: Sequence[Row]) -> Aim:
        """Hold the ceiling against its rows; the worst one counts."""
        meant = [row for row in rows if row.operation == self.operation and self.detail in ("", row.detail)]
        found = [row for row in meant if self.other in row.figures]
        if not found:
            why = next((row.missing[self.other] for row in meant if self.other in row.missing), "left out")
            return Aim(self.text, UNMEASURED, f"{self.other!r} was not measured: {why}")
        worst = max(row.ratio(self.other) for row in found)
        return Aim(
            self.text,
            verdict(worst, self.most),
            f"of the time of {self.other!r}: " + ", ".join(map(self._show, found)),
        )

    def _show(self, row: Row) -> str:
        ours, other = row.figures[OURS].decisive, row.figures[self.other].decisive
        where = f" at {row.detail}" if row.detail else ""
        return (
            f"{times(row.ratio(self.other))}{where} ({amount(ours, row.unit)} and {amount(other, row.unit)})"
        )


def verdict(found: float, most: float, noise: float = NOISE) -> str:
    """How what was found stands to the most that it may be."""
    return MET if found <= most else CLOSE if found <= most * noise else MISSED
