"""Tell what was measured: a table with ratios, the aims, and the same for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench._measure import Row

OURS = "ours"
NOISE = 1.05
"""What two runs of the same thing may differ by on a quiet machine."""


@dataclass(frozen=True, slots=True)
class Aim:
    """One aim of the project, and how this run stands to it."""

    text: str
    verdict: str
    """`met`, `close` if it is missed by no more than noise, or `MISSED`."""
    found: str
    """What was measured, as a person reads it."""


@dataclass(frozen=True, slots=True)
class Ceiling:
    """The most times another way's time that ours may take, over some rows."""

    text: str
    operation: str
    other: str
    most: float

    def judge(self, rows: Sequence[Row]) -> Aim:
        """Hold the ceiling against each row of its operation; the worst one counts."""
        found = [row for row in rows if row.operation == self.operation]
        worst = max(row.ratio(OURS, self.other) for row in found) / self.most
        verdict = "met" if worst <= 1 else "close" if worst <= NOISE else "MISSED"
        return Aim(self.text, verdict, f"times {self.other!r}: " + ", ".join(map(self._show, found)))

    def _show(self, row: Row) -> str:
        best, middle = row.ratio(OURS, self.other), row.median_ratio(OURS, self.other)
        return f"{best:.2f} at {row.detail} (by medians {middle:.2f})"


def heading(machine: Mapping[str, object]) -> str:
    """What the numbers depend on, and the names of the columns."""
    about = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in machine.items())
    columns = f"{'operation':<24} {'at':<16} {'way':<29} {'best µs':>11} {'median µs':>11} {'ours is':>8}"
    return f"{about}\n\n{columns}"


def lines(row: Row) -> str:
    """The row as text: one line a way, ours first."""
    shown = []
    title = f"{row.operation:<24} {row.detail:<16}"
    for way, timing in row.timings.items():
        ratio = "" if way == OURS else f"{row.ratio(OURS, way):.2f}x"
        times = f"{_number(timing.best_us):>11} {_number(timing.median_us):>11}"
        shown.append(f"{title} {way:<29} {times} {ratio:>8}".rstrip())
        title = " " * len(title)
    return "\n".join(shown)


def _number(us: float) -> str:
    return f"{us:,.2f}" if us < 10 else f"{us:,.1f}"


def verdicts(aims: Sequence[Aim]) -> str:
    """The aims as text, each with its answer."""
    return "\n".join(f"{aim.verdict:<7}{aim.text}\n{'':<7}{aim.found}" for aim in aims)


def for_programs(
    rows: Sequence[Row], aims: Sequence[Aim], machine: Mapping[str, object]
) -> dict[str, object]:
    """Everything as plain values."""
    return {
        "machine": machine,
        "rows": [
            {
                "operation": row.operation,
                "detail": row.detail,
                "ways": {
                    way: asdict(timing) | {"ours_is": row.ratio(OURS, way)}
                    for way, timing in row.timings.items()
                },
            }
            for row in rows
        ],
        "aims": [asdict(aim) for aim in aims],
    }


def machine(directory: Path) -> dict[str, object]:
    """What the numbers depend on."""
    return {
        "python": platform.python_version(),
        "kernel": platform.release(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "file_system": _file_system(directory),
    }


def _file_system(directory: Path) -> str:
    """The type of the file system that holds *directory*, by the longest mount point above it."""
    best, kind = "", "unknown"
    for line in Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines():
        _, point, found, *_ = line.split(" ")
        if directory.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, found
    return kind
