"""A service on a directory of its own, and somebody who calls it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest

from carrel.config.load import load
from carrel.config.settings import Settings
from carrel.service.principal import Principal
from carrel.service.service import Service
from carrel.sessions.manager import WorkspaceManager

T = TypeVar("T")

OPERATOR = Principal(name="local")
READER = Principal(name="reader", tenant="acme", role="critic", roles=("critic",))
WRITER = Principal(name="writer", tenant="acme", role="developer", roles=("developer", "critic"))
STRANGER = Principal(name="stranger", tenant="other", role="developer", roles=("developer",))


class Monotonic:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def settings(**serve: Any) -> Settings:  # Any: whatever can be set
    """The settings by default, but for some of the service's own."""
    found = load({})
    return replace(found, serve=replace(found.serve, **serve))


Work = Callable[[Service], Coroutine[Any, Any, T]]  # Any: what asyncio itself sends


class House:
    """A sessions directory in which services are run."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = Monotonic()

    def run(self, work: Work[T], **serve: Any) -> T:
        """What *work* gives, with a service that is there only meanwhile."""

        async def main() -> T:
            manager = WorkspaceManager(self.root)
            async with Service(manager, settings(**serve), clock=self.clock) as service:
                return await work(service)

        return asyncio.run(main())


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "sessions")
