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

MAX_PASSES = 50
"""How often all rounds are fought at most, where one of both hardly gets a processor."""

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


def passes(rounds: Callable[[], Iterable[Round]], is_shown: Callable[[], bool]) -> Iterator[Round]:
    """All *rounds*, and once more while nothing *is_shown* by them."""
    for _ in range(MAX_PASSES):
        yield from rounds()
        if is_shown():
            return
    raise AssertionError("not enough happened in so many rounds, so nothing was shown")


def fight(
    arena: Arena, operation: Operation, rounds: tuple[int, int], swaps: Callable[[], int], least: int
) -> None:
    """Do the operation beneath a swapped directory and at the other spots; it may be refused.

    The rounds go on until the operation worked beneath it, and was refused there if it ever is.
    """
    outcomes: Counter[tuple[str, str]] = Counter()
    beneath = operation.spots.beneath

    def is_shown() -> bool:
        is_refused = outcomes[beneath, EscapeError.code] > 0 or not operation.is_refused
        return swaps() > least and outcomes[beneath, "ok"] > 0 and is_refused

    for path in passes(lambda: operation.spots.rounds(*rounds), is_shown):
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
