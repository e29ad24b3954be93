"""The same attack on the usual way, resolve then check then open, shows that the attack is real."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from tests.race.arena import MARKER, Arena, attack

pytestmark = [pytest.mark.race, pytest.mark.slow]

ROUNDS = 200_000
"""Some hundred are enough as a rule; a test that waits for bad luck has to end some time."""


def check_then_open(workspace: Path, relative_path: str) -> bytes:
    """Read a file as those do who trust a path after checking it."""
    resolved = (workspace / relative_path).resolve()
    if not resolved.is_relative_to(workspace.resolve()):
        raise ValueError(f"Path escapes session workspace: {relative_path}")
    return resolved.read_bytes()


@pytest.mark.parametrize("path", ["d/f", "m/n/sub/g", "l"])
def test_checking_a_path_before_opening_it_loses_the_race(place: Path, path: str) -> None:
    arena = Arena(place, "kernel")
    lost_in = None
    with attack(place, arena.traps().values()):
        for number in range(ROUNDS):
            with suppress(ValueError, OSError):
                if MARKER in check_then_open(arena.inside, path):
                    lost_in = number + 1
                    break
    arena.close()
    print(f"{path}: lost in round {lost_in}")
    assert lost_in is not None
