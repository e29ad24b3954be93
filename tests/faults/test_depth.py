"""Trees deeper than any stack, and directories that are shut."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.audit.logger import SandboxLogger
from carrel.errors import HostDeniedError, LimitError
from carrel.sessions.manager import WorkspaceManager
from carrel.workspace.workspace import Workspace
from tests.faults.inject import NOBODY, as_nobody, failing, in_memory, open_descriptors

LEVELS = 20_000
SHUT = (1, 2, 31, 32, 33, 64, 65, 99)
"""Depths of directories that their owner may not enter, around those where removal changes its ways."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that is removed, whatever a failed test leaves there."""
    with in_memory() as found:
        yield found


def dig(top: Path, levels: int) -> None:
    """Make a chain of directories with a file on every thousandth level, step by step."""
    here = os.open(top, _DIRECTORY)
    for level in range(levels):
        os.mkdir("d", dir_fd=here)
        if level % 1000 == 0:
            os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        below = os.open("d", _DIRECTORY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def shut(top: Path, depths: tuple[int, ...]) -> None:
    """Make a chain of 100 directories, two files in each, and take all rights on some away."""
    chain = [top.joinpath(*["d"] * depth) for depth in range(1, 101)]
    chain[-1].mkdir(parents=True)
    for path in chain:
        (path / "f").write_bytes(b"x")
        (path / "side").mkdir()
        (path / "side" / "f").write_bytes(b"x")
    for depth in sorted(depths, reverse=True):
        (chain[depth - 1] / "side").chmod(0)
        chain[depth - 1].chmod(0)


@pytest.mark.slow
@pytest.mark.parametrize("confinement", ["kernel", "walk"])
@pytest.mark.parametrize("kind", ["bare", "session"])
def test_a_tree_of_20000_levels_is_walked_to_the_limit_and_removed(
    place: Path, quiet: SandboxLogger, kind: str, confinement: str
) -> None:
    if kind == "bare":
        (place / "ws").mkdir()
        workspace = Workspace.open(place / "ws", logger=quiet, confinement=confinement)
    else:
        workspace = WorkspaceManager(place / "sessions", logger=quiet, confinement=confinement).create("deep")
    workspace.mkdir("top")
    dig(workspace.host_path("top"), LEVELS)
    held = open_descriptors()
    depth = workspace.limits.depth
    assert depth is not None
    seen = 0
    with pytest.raises(LimitError) as caught:
        for seen, _ in enumerate(workspace.walk(), 1):  # noqa: B007  # counted until it fails
            pass
    assert caught.value.code == "limit.depth"
    assert seen == depth + 1, "everything within the limit was given first: the directories and one file"
    del caught  # it holds the frames of the walk, and those its directories
    with pytest.raises(LimitError):
        workspace.list_files()
    with pytest.raises(LimitError):
        workspace.glob("**")
    assert workspace.recount().entries > LEVELS
    with pytest.raises(LimitError):
        workspace.copy("top", "copied", recursive=True)
    assert workspace.search("x").truncated
    assert [info.name for info in workspace.list("top")] == ["d", "f"]
    workspace.remove("top", recursive=True)
    assert workspace.list() == []
    assert open_descriptors() == held
    workspace.close()
    if kind == "session":
        assert os.listdir(place / "sessions/.carrel/trash") == []


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
@pytest.mark.parametrize("confinement", ["kernel", "walk"])
@pytest.mark.parametrize("kind", ["bare", "session"])
def test_shut_directories_at_any_depth_are_removed_without_root(
    place: Path, quiet: SandboxLogger, kind: str, confinement: str
) -> None:
    os.chown(place, NOBODY, NOBODY)
    with as_nobody():
        if kind == "bare":
            (place / "ws").mkdir()
            workspace = Workspace.open(place / "ws", logger=quiet, confinement=confinement)
        else:
            workspace = WorkspaceManager(place / "sessions", logger=quiet, confinement=confinement).create(
                "shut"
            )
        with workspace:
            shut(workspace.host_path("."), SHUT)
            workspace.remove("d", recursive=True)
            assert workspace.list() == []


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
@pytest.mark.parametrize("kind", ["bare", "session"])
def test_without_proc_a_shut_directory_is_refused_or_removed_but_never_said_to_be_gone(
    place: Path, quiet: SandboxLogger, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(place, NOBODY, NOBODY)
    with as_nobody():
        if kind == "bare":
            (place / "ws").mkdir()
            workspace = Workspace.open(place / "ws", logger=quiet)
        else:
            workspace = WorkspaceManager(place / "sessions", logger=quiet).create("shut")
        workspace.write("d/e/f", b"x")
        place = workspace.host_path(".")
        (place / "d/e").chmod(0)
        (place / "d").chmod(0)
        monkeypatch.setattr(
            os, "chmod", failing(os.chmod, 2, when=lambda path, mode: str(path).startswith("/proc/"))
        )
        try:
            workspace.remove("d", recursive=True)
        except HostDeniedError:
            assert (place / "d").exists()
        else:
            assert not (place / "d").exists()
