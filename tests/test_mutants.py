"""Each guard taken out is noticed by a test."""

from __future__ import annotations

import pytest

from tests.mutants import MUTANTS, Mutant, survives


@pytest.mark.mutant
@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_guard_that_is_taken_out_is_missed(mutant: Mutant) -> None:
    assert not survives(mutant)


def test_every_mutant_has_a_name_of_its_own_and_changes_something() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert all(mutant.old != mutant.new for mutant in MUTANTS)
