"""A house of sessions and a sandbox in it; all tests of a process share one engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from carrel.sandbox.container import ContainerSandbox
from carrel.sandbox.sandbox import BaseSandbox
from tests.contained import Contained, Shared
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


@pytest.fixture(scope="session")
def shared_container(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """A session in a container, for all tests of this process."""
    contained = Contained(tmp_path_factory.mktemp("contained"))
    yield Shared(contained)
    contained.close()


@pytest.fixture
def contained(tmp_path: Path) -> Iterator[Contained]:
    """Sessions whose programs run in containers, for a test that needs its own."""
    made = Contained(tmp_path)
    yield made
    made.close()


@pytest.fixture
def box(shared_container: Shared) -> ContainerSandbox:
    """A sandbox in a container, on no files."""
    return shared_container.empty()


@pytest.fixture
def box_files(shared_container: Shared) -> Path:
    """Where the host has the files of `box`."""
    return shared_container.contained.files(shared_container.sandbox)
