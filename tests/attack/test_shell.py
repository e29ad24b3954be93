"""Every path of the table with every command of the shell: nothing outside is touched or told."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pytest

from tests.attack import shell_operations
from tests.attack.operations import prepare
from tests.attack.privilege import acting_as
from tests.attack.shell_operations import COMMANDS, READING
from tests.attack.test_every_operation import PARAMETERS, SHALLOW, SUFFIXES, in_turn
from tests.attack.world import RESOLVERS, MakeWorld, World
from tests.requirements import requirement

pytestmark = [pytest.mark.attack, pytest.mark.deeper]


@requirement("AP-13", "I-11")
@pytest.mark.parametrize("place", PARAMETERS)
def test_no_command_reaches_out(place: tuple[str, str], world: MakeWorld) -> None:
    """Each place with one of the two resolvers; with both it is asked of every operation of the gate."""
    layout, path = place
    with world(layout, RESOLVERS[len(layout + path) % 2]) as here:
        _try_all(here, path, in_turn(COMMANDS, layout, path))


@pytest.mark.thorough
@pytest.mark.parametrize("place", SHALLOW)
def test_no_command_reaches_out_by_a_slash_more(place: tuple[str, str], world: MakeWorld) -> None:
    layout, path = place
    with world(layout, RESOLVERS[len(layout) % 2]) as here:
        _try_all(here, path + SUFFIXES[len(path) % len(SUFFIXES)], in_turn(COMMANDS, layout, path))


def _try_all(here: World, path: str, commands: Sequence[str]) -> None:
    """Try each of *commands* on *path*; what changes the workspace is followed by a fresh one."""
    _prepare(here)
    before = here.contents()
    asked = here.fill(path)
    for command in commands:
        try:
            here.try_path(partial(_run, command), asked, asked)
        except (AssertionError, pytest.fail.Exception) as error:
            error.add_note(f"{command} with {asked[:80]!r}")
            raise
        if command not in READING and here.contents() != before:
            here.start_over()
            _prepare(here)


def _run(command: str, workspace: object, path: str) -> object:
    return shell_operations.run(workspace, command, path)  # type: ignore[arg-type]  # a workspace


def _prepare(here: World) -> None:
    with acting_as(here.variant.user):
        prepare(here.workspace)
