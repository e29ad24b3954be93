"""Paths of the table from the code of a smolagents agent: nothing outside is touched or told.

What a guest can do with a path is tried with every operation elsewhere; here it comes by the executor.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.adapters.smolagents import CarrelExecutor
from tests.attack.operations import prepare
from tests.attack.privilege import USERS
from tests.attack.test_guest_mount import LAYOUTS
from tests.attack.test_guest_operations import ELSEWHERE
from tests.attack.world import HOST_TEXTS, Door, MakeWorld, Variant, World

pytestmark = pytest.mark.attack

HERE = Variant("kernel", USERS[0], Door.SESSION)
CODE = """
import os, shutil

def put(path):
    with open(path, "w") as file:
        file.write("new")

def get(path):
    with open(path) as file:
        return file.read(4096)

told = []
for path in PATHS:
    for act in (get, os.stat, os.listdir, os.readlink, put, os.mkdir, tool):
        try:
            told.append((act.__name__, path, True, str(act(path))))
        except (OSError, ValueError) as error:
            told.append((act.__name__, path, False, str(error)))
told
"""


def tried(here: World, paths: list[str]) -> list[tuple[str, str, bool, str]]:
    """What the code says that it could do."""
    prepare(here.workspace)
    with CarrelExecutor("ROOT", workspace_root=here.parent) as executor:
        executor.send_tools({"tool": lambda path: f"a tool gets {path!r} as text"})
        executor.send_variables({"PATHS": paths})
        told: list[tuple[str, str, bool, str]] = executor(CODE).output
    here.require_untouched()
    for text in HOST_TEXTS:
        assert text not in repr(told).encode(), "told of the outside"
    return told


@pytest.fixture(autouse=True)
def guest(guest_cache: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the guest that is compiled, in one process that is there already, with none kept ready."""
    monkeypatch.setenv("CARREL_CACHE", str(guest_cache))
    monkeypatch.setenv("CARREL_PYTHON_WORKERS", "1")
    monkeypatch.setenv("CARREL_PYTHON_READY", "0")
    with CarrelExecutor(workspace_root=place / "sessions") as executor:
        executor("1")


@pytest.mark.parametrize(("layout", "paths"), [one for one in LAYOUTS if one.values[0] != "«deep»"][::8])
def test_no_step_of_an_agent_reaches_out(layout: str, paths: list[str], world: MakeWorld) -> None:
    with world(layout, HERE) as here:
        tried(here, [f"/workspace/{here.fill(path)}" for path in paths])


def test_a_step_finds_nothing_elsewhere(world: MakeWorld) -> None:
    with world("f", HERE) as here:
        paths = [here.fill(path) for path in ELSEWHERE if "\ud800" not in path]
        told = tried(here, paths)
        assert {path for _, path, _, _ in told} == set(paths)
        assert not [one for one in told if one[2] and one[0] not in ("tool", "put", "mkdir")]
