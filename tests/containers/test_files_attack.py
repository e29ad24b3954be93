"""The table of attacks with every operation, on files in a container.

Usually one place of some is tried; all of them when tests are thorough.
"""

from __future__ import annotations

import pytest

from tests.attack.everything import try_everything
from tests.attack.privilege import IS_ROOT, User
from tests.attack.special import SPECIAL, marks
from tests.attack.test_every_operation import PLACES
from tests.attack.world import Door, Variant
from tests.containers.worlds import ContainerWorld
from tests.contract.slots import Slot, take_slot
from tests.depth import IS_THOROUGH

pytestmark = pytest.mark.attack

USER = User.ROOT if IS_ROOT else User.NOBODY
VARIANT = Variant("container", USER, Door.DIRECTORY)
NOT_HERE = ("«deep»", "«bindout»", "«bindproc»", "«sparse»")
"""Deeper than the longest path; what the host mounts later, which a container does not see; and a file of a
terabyte, of which the first megabytes may take longer from a container than an attempt may on a busy host."""
PLAIN = [(layout, path) for layout, path in PLACES if layout not in SPECIAL]
ODD = [(layout, path) for layout, path in PLACES if layout in SPECIAL and layout not in NOT_HERE]
TRIED = [*ODD[:: 1 if IS_THOROUGH else 3], *PLAIN[:: 1 if IS_THOROUGH else 12]]


@pytest.fixture
def slot() -> Slot:
    """A directory in a container."""
    return take_slot("container")


@pytest.mark.parametrize(
    "place",
    [
        pytest.param((layout, path), id=f"{layout}: {path[:40]!r}", marks=marks(layout))
        for layout, path in TRIED
    ],
)
def test_no_operation_reaches_out_of_the_files_in_a_container(place: tuple[str, str], slot: Slot) -> None:
    layout, path = place
    with ContainerWorld(slot.base / "world", layout, VARIANT, slot=slot) as here:
        try_everything(here, [path])
