"""A slash too many: at the end of a path, and at the end of a link's text (E19 to E21)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product

import pytest

from carrel.workspace.workspace import Workspace
from tests.attack.more import MORE
from tests.attack.operations import TABLE
from tests.attack.row import Row
from tests.attack.special import marks
from tests.attack.table import ROWS
from tests.attack.world import DOORS, RESOLVERS, MakeWorld, Outcome, Variant, World

pytestmark = pytest.mark.attack

SUFFIXES = ("/", "//", "/.", "/./")
ANY_REFUSAL = frozenset({"ValueError", "ENOTDIR", "EISDIR", "ENOENT", "ELOOP"})
"""What a slash may turn an answer into; never into success."""


@pytest.mark.parametrize("variant", DOORS, ids=str)
@pytest.mark.parametrize("target", ["$OUT/dir", "../outside/dir", "$OUT/secret", "../outside/none", "d", "f"])
@pytest.mark.parametrize("slash", SUFFIXES)
def test_a_link_spelled_with_a_slash_never_moves_its_target(
    slash: str, target: str, variant: Variant, world: MakeWorld
) -> None:
    """E19: as source and as destination, by moving and by copying."""
    with world(f"f; d/x; l => {target}", variant) as here:
        for overwrite in (False, True):
            for source, goal in ((f"l{slash}", "m"), ("f", f"l{slash}"), ("d", f"l{slash}")):
                for recursive in (None, False, True):
                    _move_or_copy(here, source, goal, overwrite=overwrite, recursive=recursive)
                    found = here.contents()
                    assert found.get("l", "").startswith("=> ") or found.get("m", "").startswith("=> ")
                    here.start_over()


def _move_or_copy(here: World, source: str, goal: str, *, overwrite: bool, recursive: bool | None) -> Outcome:
    if recursive is None:
        return here.attempt(lambda workspace: workspace.move(source, goal, overwrite=overwrite), source, goal)
    return here.attempt(
        lambda workspace: workspace.copy(source, goal, overwrite=overwrite, recursive=recursive), source, goal
    )


@pytest.mark.parametrize("variant", DOORS, ids=str)
@pytest.mark.parametrize(
    "text", ["$OUT/", "../outside/", "../outside//", "../outside/.", "../outside/./", "../"]
)
@pytest.mark.parametrize("place", ["last", "middle", "chain"])
def test_a_link_whose_text_ends_in_a_slash_leads_nowhere_outside(
    place: str, text: str, variant: Variant, world: MakeWorld
) -> None:
    """E20."""
    layout, path = {
        "last": (f"l => {text}", "l"),
        "middle": (f"l => {text}", "l/secret"),
        "chain": (f"a => b/; b => l/; l => {text}", "a/secret"),
    }[place]
    with world(layout, variant) as here:
        for operation in ("read", "stat", "listdir", "write", "append"):
            outcome = here.try_path(TABLE[operation], path, path)
            assert "ValueError" in outcome.names, f"{operation}({path!r}) of {layout}: {outcome}"
        made = here.try_path(TABLE["mkdir_all"], path, path)
        assert made.names & {"ValueError", "EEXIST"}, f"mkdir_all({path!r}) of {layout}: {made}"


SLASHED = [
    pytest.param(row, id=str(row), marks=marks(row.layout))
    for row in (*ROWS, *MORE)
    if row.request.arguments and row.kind != "depth"
]


@pytest.mark.parametrize("variant", RESOLVERS, ids=str)
@pytest.mark.parametrize("row", SLASHED)
def test_a_refused_path_stays_refused_with_a_slash_more(row: Row, variant: Variant, world: MakeWorld) -> None:
    """E21: the same answer, or that this is no directory."""
    operation, arguments, options = row.request
    call = partial(TABLE[operation], **options)
    with world(row.layout, variant) as here:
        before = here.contents()
        for suffix, position in product(SUFFIXES, range(len(arguments))):
            paths = [here.fill(path) for path in arguments]
            paths[position] += suffix
            outcome = here.attempt(partial(_call, call, paths), *paths)
            allowed = row.endings | ANY_REFUSAL
            assert outcome.names & allowed, f"{operation}{paths} must end in {row.required}, not {outcome}"
            if not outcome.ok:
                assert here.contents() == before
            elif here.contents() != before:
                here.start_over()


def _call(operation: Callable[..., object], paths: list[str], workspace: Workspace) -> object:
    return operation(workspace, *paths)
