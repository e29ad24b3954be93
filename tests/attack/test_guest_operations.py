"""Every path of the table with every file operation of Python, from inside a guest."""

from __future__ import annotations

import glob
import io
import json
from pathlib import Path
from typing import NamedTuple

import pytest

from carrel.policy.execution import ExecutionPolicy
from carrel.runtimes.script import Script
from carrel.runtimes.wasm.runtime import PythonRuntime
from tests.attack.operations import prepare
from tests.attack.privilege import USERS
from tests.attack.test_guest_mount import LAYOUTS
from tests.attack.world import HOST_TEXTS, Door, MakeWorld, Variant, World
from tests.depth import IS_THOROUGH

pytestmark = [pytest.mark.attack, pytest.mark.deeper]

TEXT = Path(__file__).with_name("guest_operations.py").read_text("utf-8")
VARIANTS = [Variant(resolver, USERS[0], Door.SESSION) for resolver in ("kernel", "walk")]
ELSEWHERE = (
    "/app/../etc/passwd",
    "/workspace/../../x",
    "//etc/passwd",
    "///app/../../etc/passwd",
    "/app/f/../../etc/passwd",
    "/usr/../etc/passwd",
    "/tmp/../etc/passwd",
    "/tmp/../app/../etc/passwd",
    "/etc/passwd",
    "/etc",
    "/root",
    "/proc/self/environ",
    "/proc/self/fd/0",
    "/proc/1/root/etc/passwd",
    "/dev/mem",
    "/dev/fd/3",
    "/APP/f",
    "/WORKSPACE",
    "/tmpx/f",
    "/appx/f",
    "/app\\..\\..\\secret",
    "/app/%2e%2e/secret",
    "/app/..%2fsecret",
    "/app/\u2024\u2024/secret",
    "/app/\uff0e\uff0e/secret",
    "file:///etc/passwd",
    "C:\\f",
    "~/f",
    "\0",
    "/app/\0/f",
    "/app/f\0",
    "/app/\ud800",
    "/app/" + "n" * 256,
    "/app/" + "d/" * 3000,
    "/app/f/",
    "$WS/f",
    "$WS",
    "$OUT/secret",
    "$OUT",
)
"""Where a guest finds nothing, in spellings that no row of the table has."""
OWN = ("/", "/..", "/app/..", "/app/../app/f", "/App/../app/f", "", ".", "..")
"""Where it finds only what it has itself."""
LOOKING = {"open", "stat", "lstat", "listdir", "scandir", "readlink"}


class Tried(NamedTuple):
    """What a guest says of one operation."""

    operation: str
    path: str
    worked: bool
    value: object


class Barrier(io.BytesIO):
    """The input of a guest: whenever it is read, the guest waits, and the world is looked at and restored."""

    def __init__(self, here: World) -> None:
        super().__init__()
        self._here = here
        self._before = here.contents()

    def read(self, size: int | None = -1) -> bytes:
        """Let it go on."""
        self._here.require_untouched()
        if self._here.contents() != self._before:
            self._here.start_over()
            prepare(self._here.workspace)
        return b"\n"


def _run(engine: PythonRuntime, here: World, paths: list[str]) -> list[Tried]:
    prepare(here.workspace)
    # All operations on each path, or a third in turn.
    every = 1 if IS_THOROUGH else 3
    source = f"PATHS, FIRST, EVERY = {paths!r}, {len(here.layout)}, {every}\n{TEXT}"
    script = Script(source=source.encode(), cwd="/app", stdin=Barrier(here))
    result = engine.execute(script, here.workspace, ExecutionPolicy(), key=here.root)
    assert result.exit_code == 0, result.stderr
    here.require_untouched()
    for text in HOST_TEXTS:
        assert text not in (result.stdout + result.stderr).encode(), "told of the outside"
    return [Tried(*json.loads(line)) for line in result.stdout.splitlines()]


def _require_clean(tried: list[Tried]) -> None:
    """Fail if an operation ended in something that no code expects of it."""
    for one in tried:
        assert one.worked or (isinstance(one.value, list) and one.value[0] is True), one


@pytest.mark.parametrize(("layout", "paths"), [one for one in LAYOUTS if one.values[0] != "«deep»"])
def test_no_operation_of_a_guest_reaches_out(
    layout: str, paths: list[str], engine: PythonRuntime, world: MakeWorld
) -> None:
    """Each layout with one of the two resolvers; with both it is asked without a guest in between."""
    with world(layout, VARIANTS[len(layout) % 2]) as here:
        _require_clean(_run(engine, here, [f"/app/{here.fill(path)}" for path in paths]))


def test_a_guest_finds_nothing_elsewhere(engine: PythonRuntime, world: MakeWorld, guest_cache: Path) -> None:
    workers = glob.glob(f"{guest_cache}/guest/worker-*")
    with world("f; .carrel => ../.carrel", VARIANTS[0]) as here:
        around = [str(here.parent), f"{here.parent}/.carrel/sessions/ROOT", "/app/.carrel/sessions/ROOT"]
        hidden = [*(here.fill(path) for path in ELSEWHERE), *around, str(guest_cache), *workers]
        tried = _run(engine, here, [*hidden, *OWN])
        _require_clean(tried)
        shown = {path[:200] for path in hidden}
        assert not [one for one in tried if one.worked and one.operation in LOOKING and one.path in shown]


def test_a_guest_that_removes_a_tree_leaves_what_its_links_lead_to(
    engine: PythonRuntime, world: MakeWorld
) -> None:
    with world("e/f; t/d/f; t/l => ../e; t/m => ../e/f; t/self => .; t/out => $OUT", VARIANTS[0]) as here:
        script = Script(source=b"import shutil; shutil.rmtree('t')", cwd="/app")
        result = engine.execute(script, here.workspace, ExecutionPolicy(), key=here.root)
        assert result.success, result.stderr
        here.require_untouched()
        assert here.contents() == here.expected("e/f")
