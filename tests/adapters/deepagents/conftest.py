"""A session and the backend on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.adapters.deepagents import CarrelBackend
from carrel.sessions.manager import WorkspaceManager
from carrel.workspace.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with WorkspaceManager(tmp_path / "sessions") as manager, manager.create("s1") as opened:
        yield opened


@pytest.fixture
def backend(workspace: Workspace) -> CarrelBackend:
    return CarrelBackend(workspace)
