"""Limits and rules hold for a guest exactly as for a tool call: the same operations, by both ways."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from carrel.errors import CarrelError
from carrel.policy.execution import ExecutionPolicy
from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.runtimes.result import SandboxResult
from carrel.runtimes.script import Script
from carrel.runtimes.wasm.runtime import PythonRuntime
from carrel.testing import tree
from carrel.values import Limits
from carrel.workspace.workspace import Workspace
from tests.attack.world import contents

pytestmark = pytest.mark.attack

LIMITS = Limits(disk_bytes=1000, entries=8, file_bytes=500, read_bytes=600, list_entries=6, depth=3)
LAYOUT = ("f = old", "d/g = old", "d/e/", "l => f", "large = " + "x" * 450)
PREFACE = """
import errno, os, sys
def write(path, data, mode='w'):
    with open(path, mode) as file:
        file.write(data)
try:
    {}
    print('ok')
except OSError as error:
    print(errno.errorcode[error.errno])
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One operation, as a tool and as a guest would do it."""

    name: str
    tool: Callable[[Workspace], object]
    guest: str
    answer: str = "ok"
    """What the guest is told; a tool is refused whenever this is not `ok`."""
    leaves_empty: str | None = None
    """A file that the guest opened before it was refused, and that is now there with nothing in it."""


INSIDE = [
    Row("write", lambda w: w.write("new", b"x"), "write('new', 'x')"),
    Row("overwrite", lambda w: w.write("f", b"x"), "write('f', 'x')"),
    Row("append", lambda w: w.append("f", b"x"), "write('f', 'x', 'a')"),
    Row("append through a link", lambda w: w.append("l", b"x"), "write('l', 'x', 'a')"),
    Row("overwrite through a link", lambda w: w.write("l", b"x"), "write('l', 'x')"),
    Row("mkdir", lambda w: w.mkdir("new", parents=False), "os.mkdir('new')"),
    Row("remove", lambda w: w.remove("f"), "os.remove('f')"),
    Row("remove a link", lambda w: w.remove("l"), "os.remove('l')"),
    Row("rmdir", lambda w: w.remove("d/e"), "os.rmdir('d/e')"),
    Row("rmdir with content", lambda w: w.remove("d"), "os.rmdir('d')", "ENOTEMPTY"),
    Row("move", lambda w: w.move("f", "d/f"), "os.rename('f', 'd/f')"),
    Row("move over a file", lambda w: w.move("f", "d/g", overwrite=True), "os.replace('f', 'd/g')"),
    Row("move a directory", lambda w: w.move("d", "moved"), "os.rename('d', 'moved')"),
    Row("move into itself", lambda w: w.move("d", "d/e/d"), "os.rename('d', 'd/e/d')", "EINVAL"),
    Row("read what is missing", lambda w: w.read("no"), "open('no')", "ENOENT"),
    Row("list a file", lambda w: w.list("f"), "os.listdir('f')", "ENOTDIR"),
    Row("read a directory", lambda w: w.read("d"), "open('d')", "EISDIR"),
    Row(
        "write past the quota",
        lambda w: [w.write("a", bytes(490)), w.write("b", bytes(490))],
        "write('a', 'x' * 490); write('b', 'x' * 490)",
        "EDQUOT",
        leaves_empty="b",
    ),
    Row(
        "write a file that is too large",
        lambda w: w.write("new", bytes(501)),
        "write('new', 'x' * 501)",
        "EFBIG",
        leaves_empty="new",
    ),
    Row(
        "append past the size of a file",
        lambda w: w.append("large", bytes(51)),
        "write('large', 'x' * 51, 'a')",
        "EFBIG",
    ),
    Row(
        "make more entries than may be",
        lambda w: [w.mkdir(name) for name in "abc"],
        "[os.mkdir(name) for name in 'abc']",
        "EDQUOT",
    ),
    Row(
        "write deeper than may be",
        lambda w: w.write("d/e/a/f", b"", parents=False),
        "write('d/e/a/f', '')",
        "EFBIG",
    ),
    Row(
        "make directories deeper than may be",
        lambda w: [w.mkdir("d/e/a"), w.mkdir("d/e/a/b")],
        "os.mkdir('d/e/a'); os.mkdir('d/e/a/b')",
        "EFBIG",
    ),
]


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """Two equal directories."""
    pair = tmp_path / "by-tool", tmp_path / "by-guest"
    for place in pair:
        tree(place, *LAYOUT)
    return pair


def _by_tool(workspace: Workspace, row: Row) -> bool:
    try:
        row.tool(workspace)
    except (CarrelError, OSError):
        return False
    return True


def _by_guest(engine: PythonRuntime, workspace: Workspace, guest: str) -> str:
    script = Script(source=PREFACE.format(guest).encode(), cwd="/app")
    result = engine.execute(script, workspace, ExecutionPolicy(), key=id(workspace))
    assert result.exit_code == 0, result.stderr
    return result.stdout.strip()


@pytest.mark.parametrize("row", INSIDE, ids=lambda row: row.name)
def test_limits_hold_as_for_a_tool(row: Row, engine: PythonRuntime, places: tuple[Path, Path]) -> None:
    by_tool, by_guest = places
    with Workspace.open(by_tool, limits=LIMITS) as workspace:
        assert _by_tool(workspace, row) == (row.answer == "ok")
        used = workspace.usage()
    with Workspace.open(by_guest, limits=LIMITS) as workspace:
        assert _by_guest(engine, workspace, row.guest) == row.answer
        if row.leaves_empty is not None:
            assert (by_guest / row.leaves_empty).read_bytes() == b""
            workspace.remove(row.leaves_empty)
        assert workspace.usage() == used
    assert _names(by_guest) == _names(by_tool)


def _names(place: Path) -> dict[str, str]:
    """What is there; the tools write NULs where the guest writes letters."""
    return {name: text.replace("\0", "x") for name, text in contents(place).items()}


@pytest.mark.parametrize("row", [row for row in INSIDE if "past" not in row.name], ids=lambda row: row.name)
def test_a_read_only_workspace_is_not_changed(
    row: Row, engine: PythonRuntime, places: tuple[Path, Path]
) -> None:
    by_tool, by_guest = places
    before = contents(by_guest)
    for place in places:
        rules = SandboxPolicy.for_workspace(place, AccessMode.READ_ONLY)
        with Workspace.open(place, policy=rules) as workspace:
            if place == by_tool:
                assert not _by_tool(workspace, row)
            else:
                assert _by_guest(engine, workspace, row.guest) != "ok"
    assert contents(by_guest) == contents(by_tool) == before


ALLOWED = [
    ("open('{rw}/f').read()", "ok"),
    ("open('{ro}/f').read()", "ok"),
    ("os.listdir('{ro}')", "ok"),
    ("write('{rw}/f', 'x')", "ok"),
    ("write('{rw}/f', 'x', 'a')", "ok"),
    ("write('{ro}/f', 'x')", "EACCES"),
    ("write('{ro}/f', 'x', 'a')", "EACCES"),
    ("write('{ro}/new', 'x')", "EACCES"),
    ("os.mkdir('{ro}/new')", "EACCES"),
    ("os.remove('{ro}/f')", "EACCES"),
    ("os.rmdir('{ro}/d')", "EACCES"),
    ("os.rename('{ro}/f', 'f2')", "EACCES"),
    ("os.rename('f', '{ro}/f')", "EACCES"),
    ("os.rename('{rw}/f', '{ro}/f')", "EACCES"),
    ("os.truncate('{ro}/f', 0)", "EACCES"),
    ("open('{ro}/../secret').read()", "ENOENT"),
    ("open('{ro}/out').read()", "EACCES"),
    ("open('{rw}x/f')", "ENOENT"),
    ("os.rmdir('{ro}')", "EACCES"),
    ("os.rename('{rw}', '/app/x')", "EINVAL"),
    ("open('/data/f').read()", "ok"),
    ("write('/data/f', 'x')", "EROFS"),
    ("os.mkdir('/data/new')", "EROFS"),
    ("os.remove('/data/f')", "EROFS"),
    ("os.rename('/data/f', 'f2')", "EROFS"),
    ("os.rename('f', '/data/f')", "EROFS"),
    ("os.truncate('/data/f', 0)", "EROFS"),
    ("open('/data/../secret')", "ENOENT"),
    ("open('/data/out')", "EACCES"),
]


@pytest.fixture
def apart() -> Iterator[Path]:
    """A directory that does not lie in `/tmp`, where the guest has its own."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        yield Path(made)


def test_allowed_paths_and_data_keep_their_rules(engine: PythonRuntime, apart: Path) -> None:
    tree(apart, "ws/f", "secret = secret")
    for name in ("ro", "rw", "data"):
        tree(apart / name, "f", "d/", "out => ../secret")
    modes = {"ro": AccessMode.READ_ONLY, "rw": AccessMode.READ_WRITE}
    allow = [PathRule(str(apart / name), mode) for name, mode in modes.items()]
    rules = SandboxPolicy.for_workspace(apart / "ws", allow=allow)
    filled = (code.format(ro=apart / "ro", rw=apart / "rw") for code, _ in ALLOWED)
    source = "".join(PREFACE.format(code) for code in filled)
    policy = ExecutionPolicy(mount_data_dir=apart / "data")
    with Workspace.open(apart / "ws", policy=rules) as workspace:
        result = engine.execute(Script(source=source.encode(), cwd="/app"), workspace, policy, key=apart)
    assert result.exit_code == 0, result.stderr
    assert list(zip((code for code, _ in ALLOWED), result.stdout.split(), strict=True)) == ALLOWED
    assert contents(apart / "ro") == contents(apart / "data")
    assert (apart / "ro/f").read_text() == "in"


@pytest.mark.parametrize("mode", ["r+", "w"])
def test_a_file_kept_open_does_not_overwrite_what_a_tool_wrote(
    mode: str, engine: PythonRuntime, workspace: Workspace
) -> None:
    """A stateful guest may hold a file from one script to the next."""

    def run(source: str) -> SandboxResult:
        script = Script(source=source.encode(), cwd="/app")
        return engine.execute(script, workspace, ExecutionPolicy(), key="kept open", stateful=True)

    workspace.write("f", b"old")
    assert run(f"file = open('f', {mode!r}); file.write('first')").success
    workspace.write("f", b"by a tool")
    refused = run("file.write('second'); file.close()")
    engine.reset("kept open")
    assert not refused.success
    assert workspace.read("f") == b"by a tool"
