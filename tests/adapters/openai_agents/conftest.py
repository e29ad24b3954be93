"""Sessions, and the client on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.adapters.openai_agents import CarrelSandboxClient
from carrel.sessions.manager import WorkspaceManager


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[WorkspaceManager]:
    with WorkspaceManager(tmp_path / "sessions") as manager:
        yield manager


@pytest.fixture
def client(manager: WorkspaceManager) -> CarrelSandboxClient:
    return CarrelSandboxClient(manager)
