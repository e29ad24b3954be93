"""An executor on a session of its own, with the guest that is compiled already."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.adapters.smolagents import CarrelExecutor


@pytest.fixture
def guest(guest_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all executors of the process use one engine, with the guest that is compiled already."""
    monkeypatch.setenv("CARREL_CACHE", str(guest_cache))


@pytest.fixture
def sessions(tmp_path: Path) -> Path:
    """The sessions directory."""
    return tmp_path / "sessions"


@pytest.fixture
def executor(guest: None, sessions: Path) -> Iterator[CarrelExecutor]:
    """An executor without tools."""
    with CarrelExecutor(workspace_root=sessions) as executor:
        yield executor
