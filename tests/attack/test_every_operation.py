"""Every path of the table with every operation: whatever the answer, nothing outside is touched or told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet

from tests.attack.everything import try_everything
from tests.attack.more import MORE
from tests.attack.operations import EVERY
from tests.attack.special import marks
from tests.attack.table import ROWS
from tests.attack.world import PAIRS, RESOLVERS, MakeWorld, Variant
from tests.depth import IS_THOROUGH, pairs
from tests.requirements import requirement

pytestmark = [pytest.mark.attack, pytest.mark.deeper]

Call = TypeVar("Call")
SUFFIXES = ("/", "//", "/.", "/./")
OPERATIONS = tuple(EVERY)


def suffixes(path: str) -> Sequence[str]:
    """All of them, or one in turn."""
    return SUFFIXES if IS_THOROUGH else (SUFFIXES[len(path) % len(SUFFIXES)],)


def in_turn(calls: Sequence[Call], *place: str) -> Sequence[Call]:
    """All of them, or a third, another one for the next place: behind all of them is the same gate."""
    return calls if IS_THOROUGH else calls[sum(map(len, place)) % 3 :: 3]


def _places() -> Iterator[tuple[str, str]]:
    """Each layout with each path that a row tries in it, once."""
    for row in (*ROWS, *MORE):
        for path in row.request.arguments or (".",):
            yield row.layout, path


PLACES = sorted(set(_places()))
PARAMETERS = [
    pytest.param((layout, path), id=f"{layout}: {path[:40]!r}", marks=marks(layout))
    for layout, path in PLACES
]
SHALLOW = [parameter for parameter, (layout, _) in zip(PARAMETERS, PLACES, strict=True) if layout != "«deep»"]
LINKED = [parameter for parameter, (layout, _) in zip(PARAMETERS, PLACES, strict=True) if " => " in layout]


def tried(places: list[ParameterSet], variants: Sequence[Variant]) -> list[ParameterSet]:
    """The places with the variants of a workspace in which they are tried."""
    return [
        pytest.param(place.values[0], variant, id=f"{place.id}-{variant}", marks=place.marks)
        for place, variant in pairs(places, variants)
    ]


@requirement("P-09", "D-07", "D-17", "AP-13", "SE-7", "L-19")
@pytest.mark.parametrize(("place", "variant"), tried(PARAMETERS, PAIRS))
def test_no_operation_reaches_out(place: tuple[str, str], variant: Variant, world: MakeWorld) -> None:
    layout, path = place
    with world(layout, variant) as here:
        try_everything(here, [path], in_turn(OPERATIONS, layout, path))


@pytest.mark.parametrize(("place", "variant"), tried(SHALLOW, RESOLVERS))
def test_no_operation_reaches_out_by_a_slash_more(
    place: tuple[str, str], variant: Variant, world: MakeWorld
) -> None:
    """E21: what follows the path may only make it a directory's."""
    layout, path = place
    with world(layout, variant) as here:
        paths = [path + suffix for suffix in suffixes(path)]
        try_everything(here, paths, in_turn(OPERATIONS, layout, *paths))


@pytest.mark.parametrize(("place", "variant"), tried(LINKED, RESOLVERS))
def test_no_operation_reaches_out_by_a_slash_more_in_a_link(
    place: tuple[str, str], variant: Variant, world: MakeWorld
) -> None:
    """E20, E21: nor may what follows the text of a link."""
    layout, path = place
    for suffix in suffixes(layout):
        lines = (line + suffix if " => " in line else line for line in layout.split("; "))
        with world("; ".join(lines), variant) as here:
            try_everything(here, [path], in_turn(OPERATIONS, layout, path, suffix))
