"""Every row of the table, by each resolver, as each user, through each door."""

from __future__ import annotations

import pytest

from tests.attack.more import MORE
from tests.attack.operations import TABLE
from tests.attack.row import Row
from tests.attack.special import marks
from tests.attack.table import ROWS
from tests.attack.world import PAIRS, VARIANTS, MakeWorld, Variant
from tests.depth import IS_THOROUGH
from tests.requirements import requirement

pytestmark = [pytest.mark.attack, pytest.mark.deeper]


@requirement("P-03", "P-05", "P-07", "P-09", "P-12", "P-13", "P-14", "P-15", "P-16", "P-17", "P-19")
@requirement("P-20", "P-22", "P-23", "P-24", "P-25", "R-05", "W-09", "W-14", "D-08")
@pytest.mark.parametrize("variant", VARIANTS if IS_THOROUGH else PAIRS, ids=str)
@pytest.mark.parametrize(
    "row", [pytest.param(row, id=str(row), marks=marks(row.layout)) for row in (*ROWS, *MORE)]
)
def test_every_row_ends_as_required(row: Row, variant: Variant, world: MakeWorld) -> None:
    operation, arguments, options = row.request
    with world(row.layout, variant) as here:
        before = here.contents()
        paths = tuple(here.fill(path) for path in arguments)
        outcome = here.attempt(lambda workspace: TABLE[operation](workspace, *paths, **options), *paths)
        assert outcome.names & row.endings, f"{row.call} must end in {row.required}, not {outcome}"
        if row.gives is not None:
            assert outcome.value == row.gives
        if not outcome.ok:
            assert here.contents() == before, "refused, and yet the workspace was changed"
        elif row.leaves is not None:
            assert here.contents() == here.expected(row.leaves)
