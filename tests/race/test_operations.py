"""Every operation of the gate, while another process swaps directories and files for links to the outside."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.depth import pairs, rounds
from tests.race.arena import Arena, attack
from tests.race.fight import fight
from tests.race.operations import OPERATIONS, Operation
from tests.requirements import requirement

pytestmark = [pytest.mark.race, pytest.mark.slow, pytest.mark.deeper]

ROUNDS = rounds(10_000, 20)
"""Rounds beneath a swapped directory, for every operation and resolver."""
OTHER_ROUNDS = rounds(5_000, 20)
"""Rounds besides, through a swapped directory in the middle of a path, and at a swapped last name."""
SWAPS = rounds(1_000, 20)
"""An attack with fewer exchanges than this proves nothing."""

IN_SCRATCH = ("write", "write_without_overwriting", "remove_recursive", "remove_recursive_around", "copy_to")
"""Operations that work differently in a session, with drafts and trash beside the workspace."""


@requirement("P-21")
@pytest.mark.parametrize(
    ("operation", "confinement"),
    pairs(OPERATIONS, ["kernel", "walk"]),
    ids=lambda one: one if isinstance(one, str) else one.name,
)
def test_a_swapped_directory_never_leads_an_operation_outside(
    place: Path, operation: Operation, confinement: str
) -> None:
    run_race(Arena(place, confinement), operation)


@requirement("P-21")
@pytest.mark.parametrize("name", IN_SCRATCH)
def test_a_swapped_directory_never_leads_an_operation_of_a_session_outside(place: Path, name: str) -> None:
    (operation,) = (row for row in OPERATIONS if row.name == name)
    run_race(Arena(place, "kernel", session=True), operation)


def run_race(arena: Arena, operation: Operation) -> None:
    """Do the operation again and again; it is refused at times, and nothing else happens."""
    traps = arena.traps()
    with attack(arena.top, [traps[name] for name in operation.traps]) as attacker:
        fight(arena, operation, (ROUNDS, OTHER_ROUNDS), lambda: attacker.swaps, SWAPS)
    arena.require_untouched()
    arena.close()
