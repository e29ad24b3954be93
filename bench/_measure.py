"""Race several ways of doing the same thing, so that the noise of a busy machine hits all of them alike.

The ways take turns in small batches, in another order every round. A way's time is that of its best batch:
what made another batch slower was not its own work. The median stands beside it, to show how they differ.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import median
from time import monotonic, perf_counter_ns

from bench._rows import Figure, Row

FEWEST_ROUNDS = 2


@dataclass(frozen=True, slots=True)
class Way:
    """One way of doing the operation."""

    batch: Callable[[], object]
    """Does it as often as the race says."""
    prepare: Callable[[], object] | None = None
    """Runs before each batch, off the clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How long to race."""

    rounds: int
    """Batches of each way, besides one to warm up."""
    seconds: float
    """After this long the race ends, unless it had hardly any rounds."""


def race(operation: str, detail: str, ways: Mapping[str, Way], *, count: int, effort: Effort) -> Row:
    """Let *ways* take turns; a batch is *count* operations."""
    samples: dict[str, list[float]] = {name: [] for name in ways}
    deadline = monotonic() + effort.seconds
    gc.collect()
    gc.disable()
    try:
        for turn in range(effort.rounds + 1):
            if turn > FEWEST_ROUNDS and monotonic() > deadline:
                break
            for name in order(list(ways), turn):
                elapsed_us = _time(ways[name]) / 1000
                if turn:
                    samples[name].append(elapsed_us / count)
    finally:
        gc.enable()
    figures = {name: Figure(median(found), best=min(found)) for name, found in samples.items()}
    return Row(operation, detail, figures, unit="µs")


def repeated(call: Callable[[], object], count: int) -> Callable[[], None]:
    """A batch of the same call."""

    def batch() -> None:
        for _ in range(count):
            call()

    return batch


def order(names: list[str], turn: int) -> list[str]:
    """The names, beginning with another one each turn, every second time backwards."""
    start = turn % len(names)
    found = names[start:] + names[:start]
    return found[::-1] if turn % 2 else found


def _time(way: Way) -> int:
    if way.prepare is not None:
        way.prepare()
    start = perf_counter_ns()
    way.batch()
    return perf_counter_ns() - start
