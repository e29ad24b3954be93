"""The disk fills up in the middle of a write (E38)."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from carrel.audit.logger import SandboxLogger
from carrel.errors import DiskFullError, EscapeError
from carrel.sessions.manager import WorkspaceManager
from carrel.workspace.workspace import Workspace
from tests.faults.conftest import DISK_BYTES
from tests.requirements import requirement
from tests.workspace.archives import file, tar

pytestmark = pytest.mark.root

OLD = b"first " + b"old " * 100_000
"""The file that must stay as it is: four tenths of the disk."""
NEW = b"new " * 200_000
"""What does not fit beside it."""


@pytest.fixture(params=["bare", "session"])
def workspace(request: pytest.FixtureRequest, small_disk: Path, quiet: SandboxLogger) -> Iterator[Workspace]:
    """A workspace on the small disk, with one file in it."""
    if request.param == "bare":
        (small_disk / "ws").mkdir()
        found = Workspace.open(small_disk / "ws", logger=quiet)
    else:
        found = WorkspaceManager(small_disk / "sessions", logger=quiet).create("full")
    with found:
        found.write("old", OLD)
        yield found


def pieces() -> Iterator[bytes]:
    for start in range(0, len(NEW), 50_000):
        yield NEW[start : start + 50_000]


OPERATIONS: dict[str, Callable[[Workspace], object]] = {
    "write": lambda workspace: workspace.write("old", NEW),
    "write a new file": lambda workspace: workspace.write("a/b/new", NEW),
    "write without overwriting": lambda workspace: workspace.write("new", NEW, overwrite=False),
    "write_chunks": lambda workspace: workspace.write_chunks("old", pieces()),
    "append": lambda workspace: workspace.append("old", NEW),
    "extract": lambda workspace: workspace.extract(tar(file("a/f"), file("a/b/new", NEW))),
    "edit": lambda workspace: workspace.edit("old", "first", "second"),
    "copy": lambda workspace: workspace.copy("old", "a/copied"),
    "copy recursive": lambda workspace: workspace.copy("old", "copied", recursive=True),
}


@requirement("W-18")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_disk_that_fills_up_leaves_the_old_content_and_nothing_else(
    workspace: Workspace, small_disk: Path, operation: str
) -> None:
    if operation in ("edit", "copy", "copy recursive"):
        fill(small_disk, 300_000)
    free = os.statvfs(small_disk).f_bfree
    before = snapshot(small_disk)
    with pytest.raises(DiskFullError) as caught:
        OPERATIONS[operation](workspace)
    # An archive that cannot be held while it is judged has no path.
    places = {"old", "new", "a/b/new", "copied", "a/copied", *([None] if operation == "extract" else [])}
    assert caught.value.path in places
    assert snapshot(small_disk) == before
    assert os.statvfs(small_disk).f_bfree == free
    assert workspace.read("old") == OLD
    workspace.write("small", b"it goes on")


def test_a_full_disk_hides_no_refusal(small_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A journal that cannot be written does not turn an escape into something else."""
    caplog.set_level(logging.WARNING, "carrel")
    with WorkspaceManager(small_disk / "sessions").create("full") as workspace:
        workspace.mkdir("before")
        fill(small_disk, 0)
        for number in range(200):
            with pytest.raises(EscapeError):
                workspace.read(f"../secret-{number}")
        assert sum("security.path_escape" in record.getMessage() for record in caplog.records) == 200
        fill_the_rest(small_disk)
        workspace.mkdir("after")
        assert [info.name for info in workspace.list()] == ["after", "before"]


def fill(disk: Path, leave: int) -> None:
    """Use up all of the disk but *leave* bytes."""
    free = os.statvfs(disk)
    (disk / "filler").write_bytes(bytes(max(0, free.f_bfree * free.f_bsize - leave)))


def fill_the_rest(disk: Path) -> None:
    """Take the last blocks, that something removed has given back."""
    with suppress(OSError), (disk / "filler").open("ab", buffering=0) as file:
        for _ in range(DISK_BYTES // 4096 + 1):
            file.write(bytes(4096))
    assert os.statvfs(disk).f_bfree == 0


def snapshot(disk: Path) -> dict[str, tuple[int, bytes]]:
    """Every name on the disk, with its mode and, unless it is in our own state, its content."""
    found = {}
    for path in sorted(disk.rglob("*")):
        is_told = path.is_file() and ".carrel" not in path.parts
        found[str(path.relative_to(disk))] = (path.lstat().st_mode, path.read_bytes() if is_told else b"")
    return found
