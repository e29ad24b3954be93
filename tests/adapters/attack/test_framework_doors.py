"""Paths of the table through the adapters for agent frameworks: nothing outside is touched or told.

Behind them is the gate, of which every path is asked with every operation; here one in five is tried.
"""

from __future__ import annotations

import posixpath

import pytest

from tests.adapters.attack.framework_operations import NO_PATH, OPERATIONS, Answer, refuses
from tests.attack.operations import prepare
from tests.attack.privilege import acting_as
from tests.attack.special import SPECIAL
from tests.attack.test_every_operation import SHALLOW
from tests.attack.tool_operations import told
from tests.attack.world import HOST_TEXTS, MARKER, RESOLVERS, MakeWorld, World, split
from tests.depth import IS_THOROUGH

pytestmark = pytest.mark.attack

STRIDE = 1 if IS_THOROUGH else 5


@pytest.mark.parametrize("place", SHALLOW[::STRIDE])
def test_no_operation_of_an_adapter_reaches_out(place: tuple[str, str], world: MakeWorld) -> None:
    layout, path = place
    with world(layout, RESOLVERS[len(layout + path) % 2]) as here:
        _try_all(here, here.fill(path))


def _try_all(here: World, asked: str) -> None:
    """Try each operation with the path as it is, and beneath the mount."""
    _prepare(here)
    before = here.contents()
    for name in OPERATIONS:
        for path in (asked, f"/workspace/{asked}"):
            try:
                _try(here, name, path)
            except (AssertionError, pytest.fail.Exception) as error:
                error.add_note(f"{name} of {path[:80]!r}")
                raise
            if here.contents() != before:
                here.start_over()
                _prepare(here)


def _try(here: World, name: str, path: str) -> None:
    with acting_as(here.variant.user):
        is_refused = name not in NO_PATH and refuses(here.workspace, name, path)
    outcome = here.attempt(lambda workspace: OPERATIONS[name](workspace, path), path)
    assert isinstance(outcome.value, Answer), f"no answer: {outcome}"
    assert outcome.value.failed or not is_refused, f"not refused: {outcome}"
    _require_silence(here, outcome.value, path)


def _require_silence(here: World, answer: Answer, asked: str) -> None:
    """Fail if the answer tells anything of the host, but for what was asked and what links say."""
    hidden = (str(here.base), "/proc/self", MARKER, *(text.decode() for text in HOST_TEXTS))
    links = [here.fill(line.partition(" => ")[2]) for line in split(here.layout)]
    if here.layout in SPECIAL:
        links.append(str(here.out))
    # What was asked may be repeated, also cut or without a slash too many.
    said = (
        asked,
        repr(asked)[1:-1],
        asked[:80],
        asked[:40],
        posixpath.normpath(asked),
        f"/workspace/{asked}",
        *links,
    )
    known = [words for words in said if any(each in words for each in hidden)]
    for text in told(answer.value):
        rest = text
        for words in known:
            rest = rest.replace(words, "")
        assert not any(secret in rest for secret in hidden), f"tells too much: {text}"


def _prepare(here: World) -> None:
    with acting_as(here.variant.user):
        prepare(here.workspace)
