"""The guards that `make mutants` takes out are where it looks for them."""

from __future__ import annotations

import pytest

from tests.mutants.__main__ import SOURCES
from tests.mutants.mutant import Mutant
from tests.mutants.table import MUTANTS


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_text_of_a_mutant_is_there_exactly_once(mutant: Mutant) -> None:
    text = (SOURCES / "carrel" / mutant.file).read_text(encoding="utf-8")
    assert text.count(mutant.old) == 1


def test_every_mutant_has_a_name_of_its_own_and_changes_something() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert all(mutant.old != mutant.new for mutant in MUTANTS)
