"""An operation that is done again and again under attack: it may be refused, and nothing else may happen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from carrel.errors import (
    BusyError,
    CarrelError,
    ChangedError,
    EditError,
    EscapeError,
    ExistsError,
    IsDirectoryError,
    LoopError,
    MissingError,
    NotDirectoryError,
    NotEmptyError,
)
from tests.race.arena import Arena
from tests.race.operations import Operation

MOST_PASSES = 50
"""How often all rounds are fought at most, where the attacker hardly gets a processor."""

ANSWERS = (
    BusyError,
    ChangedError,
    EditError,
    EscapeError,
    ExistsError,
    IsDirectoryError,
    LoopError,
    MissingError,
    NotDirectoryError,
    NotEmptyError,
)
"""What may be said about a name that is a directory now and a link then."""

Round = TypeVar("Round")


def passes(rounds: Callable[[], Iterable[Round]], seen: Callable[[], int], least: int) -> Iterator[Round]:
    """All *rounds*, and once more while no more was *seen* than *least*, which would prove nothing."""
    for _ in range(MOST_PASSES):
        yield from rounds()
        if seen() > least:
            return
    raise AssertionError(f"no more than {seen()} of {least} came in so many rounds, so nothing was shown")


def fight(
    arena: Arena, operation: Operation, rounds: tuple[int, int], swaps: Callable[[], int], least: int
) -> Counter[tuple[str, str]]:
    """What came of the rounds at each spot, by code; those beneath a swapped directory and the others."""
    outcomes: Counter[tuple[str, str]] = Counter()
    for path in passes(lambda: operation.spots.rounds(*rounds), swaps, least):
        try:
            learned = operation.act(arena, path)
        except CarrelError as error:
            if type(error) not in ANSWERS:
                raise
            outcomes[path, error.code] += 1
        else:
            arena.require_inside(learned)
            outcomes[path, "ok"] += 1
        operation.again(arena, path)
    print(operation.name, arena.workspace.confinement, f"{swaps()} swaps", dict(outcomes))
    assert outcomes[operation.spots.beneath, "ok"], "the operation never worked, so nothing was at stake"
    return outcomes
