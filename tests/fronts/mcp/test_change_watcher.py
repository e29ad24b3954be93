"""Which changes somebody who listens is told of."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from carrel.audit.event import Event
from carrel.config.load import load
from carrel.errors import LimitError
from carrel.fronts.mcp.change_watcher import ChangeWatcher, Watch
from carrel.fronts.mcp.resource_uri import ResourceUri
from carrel.service.principal import Principal
from carrel.service.service import Service
from carrel.sessions.manager import WorkspaceManager

ONE, OTHER = Principal(name="one"), Principal(name="other")


def event(path: str, other: str | None = None, error: str | None = None) -> Event:
    return Event(
        time_ns=0, session_id="s1", actor="a", operation="write", path=path, other_path=other, error=error
    )


@pytest.mark.parametrize(
    ("watched", "changed", "is_told"),
    [
        ("a", event("a"), True),
        ("a", event("b"), False),
        ("a", event("ab"), False),
        ("a/b", event("a"), True),
        ("a", event("a/b"), True),
        ("ab", event("a/b"), False),
        ("a", event("b", other="a"), True),
        ("a/f", event("b", other="a"), True),
        (".", event("anything"), True),
        ("a", event("."), True),
        ("a", event("a", error="access.denied"), False),
    ],
)
def test_a_change_concerns_the_file_what_is_above_it_and_what_is_in_it(
    watched: str, changed: Event, is_told: bool
) -> None:
    assert Watch(ONE, watched, lambda _: None).matches(changed) is is_told


def test_one_caller_leaves_room_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("carrel.fronts.mcp.change_watcher.MAX_WATCHES_PER_CALLER", 2)
    monkeypatch.setattr("carrel.fronts.mcp.change_watcher.MAX_WATCHES", 3)

    async def work() -> list[str]:
        refused = []
        async with Service(WorkspaceManager(tmp_path), load(os.environ)) as service:
            await service.sessions.ensure(ONE, "s1")
            watcher = ChangeWatcher(service)

            async def watch(caller: Principal) -> None:
                try:
                    ends.append(await watcher.watch(caller, ResourceUri("s1", "a"), lambda _: None))
                except LimitError as error:
                    refused.append(error.message)

            ends: list[object] = []
            for caller in (ONE, ONE, ONE, OTHER, OTHER):
                await watch(caller)
            watcher.close()
            await watch(ONE)
            watcher.close()
        assert len(ends) == 4
        return refused

    assert asyncio.run(work()) == [
        "2 subscriptions of yours are active, and no more may be; end some of them",
        "3 subscriptions are active, and no more may be; end some of them",
    ]


@pytest.mark.timeout(60)
def test_a_role_is_told_only_of_the_paths_that_it_may_use(tmp_path: Path) -> None:
    found = load({})
    limited = replace(found, files=replace(found.files, allowed_paths=("pub",)))
    told: dict[str, list[str]] = {"one": [], "role": []}

    async def work() -> None:
        async with Service(WorkspaceManager(tmp_path), limited) as service:
            await service.sessions.ensure(ONE, "s1")
            watcher = ChangeWatcher(service)
            role = Principal(name="role", role="developer", roles=("developer",))
            both = {name: asyncio.Event() for name in told}

            def teller(name: str) -> Callable[[Event | None], object]:
                def tell(event: Event | None) -> None:
                    assert event is not None
                    told[name].append(event.path)
                    if event.path == "pub/b":
                        both[name].set()

                return tell

            for caller in (ONE, role):
                await watcher.watch(caller, ResourceUri("s1", "."), teller(caller.name))
            for path in ("private/a", "pub/b"):
                await service.call(ONE, "s1", "write", {"path": path, "data": "x"})
            for each in both.values():
                await each.wait()
            watcher.close()

    asyncio.run(work())
    assert told == {"one": ["private", "private/a", "pub", "pub/b"], "role": ["pub", "pub/b"]}
