"""Print the results: a table with ratios, and the aims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench._aims import Aim
from bench._rows import OURS, Row, amount, times


def heading(machine: Mapping[str, object]) -> str:
    """What the numbers depend on, and the names of the columns."""
    about = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in machine.items())
    columns = (
        f"{'operation':<24} {'at':<20} {'way':<29} {'best':>12} {'median':>12} {'p99':>12}"
        f" {'a second':>9} {'ours is':>8}"
    )
    return f"{about}\n\n{columns}"


def lines(row: Row) -> str:
    """The row as text: one line a way, ours first."""
    shown = []
    title = f"{row.operation:<24} {row.detail:<20}"
    for way, figure in row.figures.items():
        ratio = "" if way == OURS else times(row.ratio(way))
        per_second = "" if figure.per_second is None else f"{figure.per_second:,.1f}"
        numbers = " ".join(
            f"{amount(value, row.unit):>12}" for value in (figure.best, figure.median, figure.p99)
        )
        shown.append(f"{title} {way:<29} {numbers} {per_second:>9} {ratio:>8}".rstrip())
        title = " " * len(title)
    shown += [f"{title} {way:<29} not measured: {why}" for way, why in row.missing.items()]
    return "\n".join(shown)


def verdicts(aims: Sequence[Aim]) -> str:
    """The aims as text, each with its answer."""
    return "\n".join(f"{aim.verdict:<7}{aim.text}\n{'':<7}{aim.found}" for aim in aims)
