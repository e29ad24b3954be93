"""Let ways take turns with single calls, so that the noise of a busy machine hits all of them alike."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from bench._children import Way
from bench._errors import UnmeasuredError
from bench._measure import order
from bench._rows import Figure, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """How often, and how."""

    rounds: int
    """Turns of each way, besides one call to warm up."""
    calls: int = 1
    """Calls in one turn, of each thread."""
    threads: int = 1
    pause_seconds: float = 0
    """Before each turn."""


def take_turns(
    operation: str, detail: str, ways: Mapping[str, Way], kind: str, code: str, turns: Turns
) -> Row:
    """Let *ways* make calls of one kind, in another order every round; one that fails drops out."""
    racing = dict(ways)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    elapsed = dict.fromkeys(ways, 0.0)
    missing: dict[str, str] = {}
    for turn in range(turns.rounds + 1):
        for name in order(list(racing), turn):
            time.sleep(turns.pause_seconds)
            calls = turns.calls if turn else 1
            try:
                found = racing[name].time(kind, code, calls=calls, threads=turns.threads)
            except UnmeasuredError as error:
                missing[name] = str(error)
                del racing[name], seconds[name]
                continue
            if turn:
                seconds[name] += found["seconds"]
                elapsed[name] += found["elapsed_seconds"]
    figures = {
        name: Figure.of(each, elapsed[name] if turns.calls > 1 else None) for name, each in seconds.items()
    }
    return Row(operation, detail, figures, missing)
