"""Workspaces to fail in."""

from __future__ import annotations

import logging
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.audit.logger import SandboxLogger
from carrel.sessions.manager import WorkspaceManager
from carrel.workspace.workspace import Workspace

DISK_BYTES = 2**20


@pytest.fixture
def quiet() -> SandboxLogger:
    """A logger that says nothing."""
    logger = logging.Logger("quiet")
    logger.setLevel(logging.CRITICAL + 1)
    return SandboxLogger(logger)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The directory of the workspace `bare`."""
    found = tmp_path / "ws"
    found.mkdir()
    return found


@pytest.fixture
def bare(directory: Path, quiet: SandboxLogger) -> Iterator[Workspace]:
    """A workspace without a scratch directory."""
    with Workspace.open(directory, logger=quiet) as workspace:
        yield workspace


@pytest.fixture
def sessions(tmp_path: Path, quiet: SandboxLogger) -> WorkspaceManager:
    """A sessions directory."""
    return WorkspaceManager(tmp_path / "sessions", logger=quiet)


@pytest.fixture
def session(sessions: WorkspaceManager) -> Iterator[Workspace]:
    """A workspace whose drafts and trash are beside it."""
    with sessions.create("one") as workspace:
        yield workspace


@pytest.fixture(params=["bare", "session"])
def workspace(request: pytest.FixtureRequest) -> Workspace:
    """Each kind of workspace in turn."""
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Workspace)
    return found


@pytest.fixture(params=["kernel", "walk"])
def confined(request: pytest.FixtureRequest, directory: Path, quiet: SandboxLogger) -> Workspace:
    """A workspace with something to steal beside it, resolved each way."""
    (directory.parent / "secret").write_bytes(b"secret")
    (directory / "d").mkdir()
    (directory / "d/f").write_bytes(b"in")
    (directory / "f").write_bytes(b"in")
    return Workspace.open(directory, logger=quiet, confinement=request.param)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one mebibyte."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES},mode=755", "tmpfs", str(place)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode:
        if os.environ.get("CI") == "true":
            pytest.fail(f"cannot mount a small file system: {mounted.stderr}")
        pytest.skip(f"needs root, to mount a small file system: {mounted.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def needs_root() -> None:
    """Skip where the rights of another user cannot be taken; a failure where they must be."""
    if os.geteuid() == 0:
        return
    if os.environ.get("CI") == "true":
        pytest.fail("must be run as root")
    pytest.skip("needs root, to become somebody else")
