"""The guards that `make mutants` takes out are where it looks for them."""

from __future__ import annotations

from tests.mutants.__main__ import SOURCES
from tests.mutants.mutant import StaleError
from tests.mutants.table import MUTANTS


def test_the_text_of_every_mutant_is_in_the_sources_exactly_once() -> None:
    stale = []
    for mutant in MUTANTS:
        try:
            mutant.applied(SOURCES)
        except StaleError as error:
            stale.append(str(error))
    assert not stale


def test_every_mutant_has_a_name_of_its_own_and_changes_something() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert all(mutant.old != mutant.new for mutant in MUTANTS)
