"""A house of sessions and a sandbox in it; all tests of a process share one engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.sandbox.sandbox import BaseSandbox
from tests.sandbox.house import House


@pytest.fixture(autouse=True)
def guest(guest_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the guest that is compiled."""
    monkeypatch.setenv("CARREL_CACHE", str(guest_cache))


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A directory of sessions."""
    return House(tmp_path / "sessions")


@pytest.fixture
def sandbox(house: House) -> BaseSandbox:
    """A sandbox on a new session, with the policy that is there by default."""
    return house.new()


@pytest.fixture
def files(house: House, sandbox: BaseSandbox) -> Path:
    """Where the host has the files of `sandbox`."""
    return house.files(sandbox)
