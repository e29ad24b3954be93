"""All operations on a path, one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.attack.operations import CHANGING, EVERY, Operation, prepare
from tests.attack.privilege import acting_as
from tests.attack.world import World


def try_everything(here: World, paths: Sequence[str], names: Sequence[str] = tuple(EVERY)) -> None:
    """Try the operations with each of *paths*; what changes the workspace is followed by a fresh one."""
    with acting_as(here.variant.user):
        prepare(here.workspace)
    before = here.contents()
    for path in paths:
        asked = here.fill(path)
        for name in names:
            _try(here, name, EVERY[name], asked)
            if name in CHANGING and here.contents() != before:
                here.start_over()
                with acting_as(here.variant.user):
                    prepare(here.workspace)


def _try(here: World, name: str, operation: Operation, path: str) -> None:
    try:
        outcome = here.try_path(operation, path, path)
        assert name != "host_path" or outcome.value in (True, None), "a path of the host outside"
    except (AssertionError, pytest.fail.Exception) as error:
        error.add_note(f"{name} of {path[:80]!r}")
        raise
