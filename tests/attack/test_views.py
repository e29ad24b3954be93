"""Every path of the table through views: one that shows one directory, and one that is read-only.

What is outside of the directory is in the workspace here, so only the view keeps it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import TracebackType

import pytest

from carrel.errors import CarrelError
from carrel.policy.rules import AccessMode
from carrel.sessions.manager import WorkspaceManager
from carrel.values import Limits
from carrel.workspace.workspace import Workspace
from tests.attack import operations
from tests.attack.everything import try_everything
from tests.attack.operations import CHANGING, Operation, prepare
from tests.attack.privilege import acting_as
from tests.attack.test_every_operation import PARAMETERS, PLACES, in_turn, tried
from tests.attack.world import DEFAULT, RESOLVERS, VARIANTS, Door, MakeWorld, Variant, World
from tests.depth import IS_THOROUGH
from tests.requirements import requirement

pytestmark = [pytest.mark.attack, pytest.mark.deeper]

SHOWN = [
    variant for variant in VARIANTS if variant.door is Door.DIRECTORY and variant.user is RESOLVERS[0].user
]


WITHIN = [
    parameter
    for parameter, (layout, _) in zip(PARAMETERS, PLACES, strict=True)
    # In a directory, `proc/self` is spelled like a place of the host, which no message may name.
    if layout not in ("«deep»", "«bindproc»")
]


class ShownWorld(World):
    """A world whose workspace is a view of the session around it."""

    whole: Workspace | None = None

    def _open(self) -> Workspace:
        self._skipped |= {str(self.base / ".carrel")}
        self.root.mkdir()
        sessions = WorkspaceManager(self.base, confinement=self.variant.resolver)
        self.whole = sessions.open(self.parent.name, limits=self.limits)
        return self.whole.narrowed(within=[self.root.name])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.whole is not None:
            self.whole.close()
            self.whole = None
        super().__exit__(kind, error, traceback)


@pytest.fixture
def shown(places: Path, _numbers: Iterator[int], monkeypatch: pytest.MonkeyPatch) -> MakeWorld:
    """Make a world that is a view, in which the operations know where their own files are."""
    for name in ("MINE", "MINE_DIRECTORY", "AWAY"):
        monkeypatch.setattr(operations, name, f"ROOT/{getattr(operations, name)}")

    def make(layout: str, variant: Variant, limits: Limits = DEFAULT) -> World:
        return ShownWorld(places / str(next(_numbers)), layout, variant, limits)

    return make


def _inside(path: str) -> str:
    """What *path* is called where the directory is one of a larger workspace."""
    if path.startswith("/workspace"):
        return path.replace("/workspace", "/workspace/ROOT", 1)
    return path if path.startswith("/") or not path else f"ROOT/{path}"


@requirement("P-09", "SE-7")
@pytest.mark.parametrize(("place", "variant"), tried(WITHIN, SHOWN))
def test_no_operation_reaches_out_of_what_a_view_shows(
    place: tuple[str, str], variant: Variant, shown: MakeWorld
) -> None:
    layout, path = place
    paths = (_inside(path), path) if IS_THOROUGH or len(layout) % 2 else (_inside(path),)
    with shown(layout, variant) as here:
        try_everything(here, paths, in_turn(tuple(operations.EVERY), layout, path))


def _on(view: Workspace, operation: Operation, path: str, _workspace: Workspace) -> object:
    return operation(view, path)


@requirement("AP-16")
@pytest.mark.parametrize(("place", "variant"), tried(PARAMETERS, RESOLVERS))
def test_a_read_only_view_refuses_every_change(
    place: tuple[str, str], variant: Variant, world: MakeWorld
) -> None:
    layout, path = place
    with world(layout, variant) as here:
        with acting_as(variant.user):
            prepare(here.workspace)
        view = here.workspace.narrowed(mode=AccessMode.READ_ONLY)
        before = here.contents()
        for name, operation in in_turn(tuple(CHANGING.items()), layout, path):
            asked = here.fill(path)
            outcome = here.attempt(partial(_on, view, operation, asked), asked)
            assert isinstance(outcome.error, CarrelError), f"{name} of {path[:80]!r}"
        assert here.contents() == before
