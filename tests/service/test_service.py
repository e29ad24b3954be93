"""Sessions, changes and tools, as a service gives them to its callers."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from carrel.config.load import load
from carrel.errors import (
    CarrelError,
    LimitError,
    RequestError,
    RoleDeniedError,
    SessionExistsError,
    SessionMissingError,
)
from carrel.service.principal import Principal
from carrel.service.service import Service
from carrel.service.sessions.info import NewSession
from carrel.sessions.manager import WorkspaceManager
from carrel.values import Limits, ToolResult
from tests.service.conftest import OPERATOR, READER, STRANGER, WRITER, House


def test_a_session_is_made_told_about_extended_and_deleted(house: House) -> None:
    async def work(service: Service) -> None:
        new = NewSession(session_id="s1", ttl_seconds=60, role="critic", labels={"for": "rain"})
        made = await service.sessions.create(WRITER, new)
        assert (made.session_id, made.ttl_seconds, made.role) == ("s1", 60, "critic")
        assert dict(made.labels) == {"for": "rain"}
        assert (await service.sessions.status(WRITER, "s1")).session_id == "s1"
        assert (await service.sessions.extend(WRITER, "s1", 90)).ttl_seconds == 90
        await service.call(WRITER, "s1", "write", {"path": "a", "data": "x"})
        await service.sessions.reset(WRITER, "s1")
        assert await service.call(WRITER, "s1", "list", {}) == []
        await service.sessions.delete(WRITER, "s1")
        with pytest.raises(SessionMissingError):
            await service.sessions.status(WRITER, "s1")
        with pytest.raises(SessionMissingError):
            await service.sessions.delete(WRITER, "s1")

    house.run(work)


def test_a_session_gets_an_id_if_none_is_given(house: House) -> None:
    async def work(service: Service) -> list[str]:
        return [(await service.sessions.create(OPERATOR, NewSession())).session_id for _ in range(2)]

    first, second = house.run(work)
    assert first != second


def test_a_name_is_given_once(house: House) -> None:
    async def work(service: Service) -> None:
        await service.sessions.create(WRITER, NewSession(session_id="s1"))
        await service.sessions.ensure(WRITER, "s1")
        await service.sessions.create(WRITER, NewSession(session_id="s1"))

    with pytest.raises(SessionExistsError):
        house.run(work)


@pytest.mark.parametrize(
    ("new", "says"),
    [
        (NewSession(limits=Limits(disk_bytes=None)), "limits.disk_bytes must be at most 104857600, not None"),
        (NewSession(limits=Limits(entries=10**9)), "limits.entries"),
        (NewSession(ttl_seconds=None), "only the operator"),
        (NewSession(ttl_seconds=-1), "ttl_seconds"),
        (NewSession(ttl_seconds=86_401), "ttl_seconds must be at most 86400, not 86401"),
        (NewSession(labels={"": "x"}), "label"),
    ],
)
def test_a_caller_gets_no_more_than_is_configured(house: House, new: NewSession, says: str) -> None:
    async def work(service: Service) -> None:
        await service.sessions.create(WRITER, new)

    with pytest.raises(RequestError, match=says):
        house.run(work)
    assert WorkspaceManager(house.root).list_workspaces() == []


def test_the_operator_may_give_more(house: House) -> None:
    async def work(service: Service) -> Any:
        new = NewSession(session_id="s1", ttl_seconds=None, limits=Limits(disk_bytes=None))
        return await service.sessions.create(OPERATOR, new)

    made = house.run(work)
    assert (made.ttl_seconds, made.limits.disk_bytes) == (None, None)


def test_only_the_operator_lets_a_session_live_for_ever(house: House) -> None:
    async def work(service: Service) -> None:
        for caller in (OPERATOR, WRITER):
            await service.sessions.ensure(caller, "s1")
        assert (await service.sessions.extend(OPERATOR, "s1", None)).expires_ns is None
        await service.sessions.extend(WRITER, "s1", None)

    with pytest.raises(RequestError, match="only the operator"):
        house.run(work)


def test_only_the_operator_lets_a_session_live_longer_than_configured(house: House) -> None:
    async def work(service: Service) -> None:
        for caller in (OPERATOR, WRITER):
            await service.sessions.ensure(caller, "s1")
        assert (await service.sessions.extend(OPERATOR, "s1", 10**9)).ttl_seconds == 10**9
        assert (await service.sessions.extend(WRITER, "s1", 86_400)).ttl_seconds == 86_400
        await service.sessions.extend(WRITER, "s1", 10**9)

    with pytest.raises(RequestError, match="ttl_seconds must be at most 86400"):
        house.run(work)


def test_sessions_are_listed_page_by_page(house: House) -> None:
    async def work(service: Service) -> list[list[str]]:
        for number in range(5):
            await service.sessions.ensure(WRITER, f"s{number}")
        pages, after = [], None
        while True:
            page = await service.sessions.list(WRITER, after=after, count=2)
            pages.append([one.session_id for one in page.sessions])
            after = page.next
            if after is None:
                return pages

    assert house.run(work) == [["s0", "s1"], ["s2", "s3"], ["s4"]]


@pytest.mark.parametrize("count", [0, -1, 1001])
def test_a_page_has_a_size(house: House, count: int) -> None:
    async def work(service: Service) -> None:
        await service.sessions.list(WRITER, count=count)

    with pytest.raises(RequestError, match="count must be 1 to 1000"):
        house.run(work)


def test_a_caller_that_may_only_read_ends_no_session(house: House) -> None:
    async def work(service: Service) -> list[type]:
        await service.sessions.ensure(WRITER, "s1")
        calls = [
            service.sessions.delete(READER, "s1"),
            service.sessions.reset(READER, "s1"),
            service.sessions.extend(READER, "s1", 0.001),
        ]
        return [type(each) for each in await asyncio.gather(*calls, return_exceptions=True)]

    assert house.run(work) == [RoleDeniedError] * 3


BOUND = replace(WRITER, session="s1")


@pytest.mark.parametrize(
    "call",
    [
        lambda service: service.sessions.status(BOUND, "s2"),
        lambda service: service.sessions.ensure(BOUND, "s2"),
        lambda service: service.sessions.create(BOUND, NewSession(session_id="s2")),
        lambda service: service.sessions.extend(BOUND, "s2", 5),
        lambda service: service.sessions.delete(BOUND, "s2"),
        lambda service: service.call(BOUND, "s2", "list", {}),
        lambda service: service.call_tool(BOUND, "s2", "file_list", {"path": "."}),
        lambda service: service.changes(BOUND, "s2"),
    ],
)
def test_a_caller_bound_to_a_session_has_no_other(house: House, call: Callable[[Service], Any]) -> None:
    async def work(service: Service) -> list[str]:
        await service.sessions.ensure(WRITER, "s2")
        await service.sessions.ensure(BOUND, "s1")
        page = await service.sessions.list(BOUND, count=1)
        assert ([one.session_id for one in page.sessions], page.next) == (["s1"], None)
        assert (await service.sessions.list(BOUND, after="s1")).sessions == ()
        with pytest.raises(SessionMissingError):
            await call(service)
        return [one.session_id for one in (await service.sessions.list(WRITER)).sessions]

    assert house.run(work) == ["s1", "s2"]


def test_a_request_chooses_among_the_roles_of_its_caller(house: House) -> None:
    async def work(service: Service) -> list[Any]:
        await service.sessions.ensure(WRITER, "s1")
        write = {"path": "a", "data": "x"}
        await service.call(WRITER, "s1", "write", write)
        with pytest.raises(RoleDeniedError, match="'file_write'"):
            await service.call(WRITER, "s1", "write", write, role="critic")
        with pytest.raises(RoleDeniedError, match=r"'admin'; your roles are: developer, critic"):
            await service.call(WRITER, "s1", "write", write, role="admin")
        return [each["title"] for each in await service.tools(WRITER, role="critic")]

    assert house.run(work) == ["file_read", "file_list", "file_search", "bash"]


def test_a_tool_makes_the_session_and_is_gated_by_the_role(house: House) -> None:
    async def work(service: Service) -> list[bool]:
        call = {"path": "a.txt", "content": "hi"}
        return [
            (await service.call_tool(caller, "s1", "file_write", call)).success
            for caller in (READER, WRITER, OPERATOR)
        ]

    assert house.run(work) == [False, True, False]


def test_the_operator_has_the_tools_of_the_session(house: House) -> None:
    async def work(service: Service) -> tuple[bool, int, int]:
        await service.sessions.create(OPERATOR, NewSession(session_id="s1", role="developer"))
        call = {"path": "a.txt", "content": "hi"}
        done = (await service.call_tool(OPERATOR, "s1", "file_write", call)).success
        return done, len(await service.tools(OPERATOR, "s1")), len(await service.tools(OPERATOR))

    assert house.run(work) == (True, 9, 4)


@pytest.mark.parametrize(
    ("choice", "says"),
    [({"profile": "x"}, "no profile 'x'; there are: agent"), ({"format": "y"}, "no format 'y'")],
)
def test_a_profile_nobody_offers_is_refused(house: House, choice: dict[str, str], says: str) -> None:
    async def work(service: Service) -> None:
        await service.tools(OPERATOR, **choice)

    with pytest.raises(RequestError, match=says):
        house.run(work)


@pytest.mark.timeout(60)
def test_changes_are_followed_as_they_come_and_end_with_the_session(house: House) -> None:
    async def work(service: Service) -> list[str]:
        await service.sessions.ensure(WRITER, "s1")
        seen: list[str] = []

        async def follow() -> None:
            async for page in service.follow(WRITER, "s1"):
                seen.extend(event.path for event in page.events)

        following = asyncio.create_task(follow())
        for name in ("a", "b", "c"):
            await service.call(WRITER, "s1", "write", {"path": name, "data": "x"})
        first = await service.changes(WRITER, "s1")
        later = await service.changes(WRITER, "s1", first.events[0].sequence)
        assert [event.path for event in later.events] == ["b", "c"]
        assert later.next == later.events[-1].sequence
        while len(seen) < 3:
            await asyncio.sleep(0.01)
        await service.sessions.delete(WRITER, "s1")
        await following
        return seen

    assert house.run(work) == ["a", "b", "c"]


@pytest.mark.timeout(60)
def test_a_role_is_told_only_of_the_paths_that_it_may_use(tmp_path: Path) -> None:
    whole = replace(WRITER, role=None, roles=None)
    found = load({})
    limited = replace(found, files=replace(found.files, allowed_paths=("pub",)))

    async def work() -> None:
        async with Service(WorkspaceManager(tmp_path / "sessions"), limited) as service:
            await service.sessions.ensure(whole, "s1")
            for name in ("private/a", "pub/b", "private/c"):
                await service.call(whole, "s1", "write", {"path": name, "data": "x"})
            everything = await service.changes(whole, "s1")
            assert len(everything.events) == 5
            for caller, role in ((WRITER, None), (WRITER, "critic"), (READER, None)):
                page = await service.changes(caller, "s1", role=role)
                assert [event.path for event in page.events] == ["pub", "pub/b"]
                assert page.next == everything.next
                pages = service.follow(caller, "s1", role=role)
                assert await anext(pages) == page
                assert (await anext(pages)).events == []

    asyncio.run(work())


@pytest.mark.timeout(60)
def test_nothing_stays_open_of_those_who_stop_asking_for_changes(house: House) -> None:
    async def work(service: Service) -> None:
        await service.sessions.ensure(WRITER, "s1")

        async def follow() -> None:
            async for _ in service.follow(WRITER, "s1"):
                pass

        async def stopped(asking: Coroutine[Any, Any, object], steps: int) -> None:
            task = asyncio.create_task(asking)
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])

        before = len(os.listdir("/proc/self/fd"))
        for steps in range(1, 30):
            await stopped(follow(), steps)
            await stopped(service.changes(WRITER, "s1"), steps)
        # A thread may still be about to end.
        while len(os.listdir("/proc/self/fd")) > before:
            await asyncio.sleep(0.001)

    house.run(work)


def test_a_long_search_ends_with_the_time_of_a_request(house: House) -> None:
    async def work(service: Service) -> None:
        await service.sessions.ensure(WRITER, "s1")
        await service.call(WRITER, "s1", "write", {"path": "a", "data": "x"})
        await service.call(WRITER, "s1", "search", {"query": "x", "budget": {"seconds": 1e9}})

    with pytest.raises(LimitError) as caught:
        house.run(work, timeout_seconds=0)
    assert caught.value.code == "limit.time"


def test_a_call_that_nobody_waits_for_ends_before_its_time(house: House) -> None:
    async def work(service: Service) -> str:
        await service.sessions.ensure(WRITER, "s1")
        async with service.session_access.open(WRITER, "s1") as session:
            said: list[str] = []
            begun = threading.Event()

            def look_for_ever() -> None:
                begun.set()
                while True:
                    try:
                        session.workspace.exists("a")
                    except CarrelError as error:
                        said.append(error.message)
                        raise

            call = asyncio.create_task(service.run_in_thread(session, look_for_ever))
            await asyncio.to_thread(begun.wait)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            return said[0]

    assert house.run(work) == "Operation cancelled"


def test_sessions_whose_time_is_over_are_swept_for_all_tenants(house: House) -> None:
    for directory in (house.root, house.root / ".carrel" / "tenants" / "acme"):
        WorkspaceManager(directory).create("s1", ttl_seconds=0.01).close()

    async def work(service: Service) -> None:
        while (house.root / "s1").exists() or (house.root / ".carrel/tenants/acme/s1").exists():
            await asyncio.sleep(0.01)

    house.run(work, sweep_seconds=0.02)


def test_the_operator_is_limited_by_a_role_only_if_it_chooses_one() -> None:
    assert OPERATOR.acting_as(None).role is None
    assert OPERATOR.acting_as("critic").role == "critic"
    assert Principal(name="x", role="critic", roles=()).acting_as("critic").role == "critic"
    with pytest.raises(RoleDeniedError):
        Principal(name="x", role="critic", roles=()).acting_as("developer")


# Calls of tools that nobody has to wait for


def test_a_tool_is_called_at_once_in_a_session_that_is_open_and_no_other(house: House) -> None:
    async def work(service: Service) -> None:
        def read(caller: Principal, **chosen: str) -> ToolResult | None:
            return service.call_tool_inline(caller, "s1", "file_read", {"path": "a"}, **chosen)

        assert read(WRITER) is None, "there is none, and none is made"
        wrote = await service.call_tool(WRITER, "s1", "file_write", {"path": "a", "content": "in"})
        assert wrote.success
        found = read(WRITER)
        assert found is not None
        assert (found.success, found.output) == (True, "in")
        assert found == await service.call_tool(WRITER, "s1", "file_read", {"path": "a"})
        assert read(READER) is None, "it is not open for this caller"
        assert read(STRANGER) is None, "that is another tenant's session"
        assert service.call_tool_inline(WRITER, "../s1", "file_read", {"path": "a"}) is None
        assert service.call_tool_inline(WRITER, "s1", "bash", {"command": "ls"}) is None
        with pytest.raises(RequestError):
            read(WRITER, profile="none")
        with pytest.raises(RoleDeniedError):
            read(WRITER, role="admin")
        as_critic = service.call_tool_inline(
            WRITER, "s1", "write_file", {"path": "a", "content": ""}, role="critic", profile="mcp"
        )
        assert as_critic is not None
        assert as_critic.code == "tool.unknown"
        with pytest.raises(SessionMissingError):
            read(replace(WRITER, session="s2"))
        await asyncio.to_thread(service.tenants.manager("acme").delete_workspace, "s1")
        assert read(WRITER) is None, "somebody else has deleted it"

    house.run(work)


def test_a_session_that_is_used_at_once_is_not_idle(house: House) -> None:
    async def work(service: Service) -> None:
        await service.call_tool(WRITER, "s1", "file_write", {"path": "a", "content": "in"})
        for _ in range(5):
            house.clock.now += 40
            assert service.call_tool_inline(WRITER, "s1", "file_read", {"path": "a"}) is not None
            service.open_sessions.close_idle()
        assert len(service.open_sessions) == 1
        house.clock.now += 61
        service.open_sessions.close_idle()
        assert len(service.open_sessions) == 0

    house.run(work, idle_seconds=60)
