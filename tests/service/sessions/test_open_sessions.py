"""Sessions are opened once, closed when nobody needs them, and noticed when they are gone."""

from __future__ import annotations

import asyncio
import resource

import pytest

from carrel.errors import SessionMissingError
from carrel.service.service import Service
from carrel.service.sessions.info import NewSession
from carrel.service.sessions.open_sessions import max_open_sessions
from carrel.sessions.manager import WorkspaceManager
from tests.service.conftest import OPERATOR, STRANGER, WRITER, House


def test_many_calls_open_a_session_once(house: House) -> None:
    async def work(service: Service) -> tuple[int, int]:
        await service.sessions.ensure(OPERATOR, "s1")
        calls = [service.call(OPERATOR, "s1", "exists", {"path": "a"}) for _ in range(50)]
        answers = await asyncio.gather(*calls)
        return len(service.open_sessions), len(answers)

    assert house.run(work) == (1, 50)


def test_a_session_that_nobody_uses_is_closed_and_opened_again(house: House) -> None:
    async def work(service: Service) -> list[int]:
        await service.sessions.ensure(OPERATOR, "s1")
        await service.call(OPERATOR, "s1", "write", {"path": "a", "data": "x"})
        counts = [len(service.open_sessions)]
        house.clock.now += 9
        service.open_sessions.close_idle()
        counts.append(len(service.open_sessions))
        house.clock.now += 1
        service.open_sessions.close_idle()
        counts.append(len(service.open_sessions))
        assert await service.call(OPERATOR, "s1", "exists", {"path": "a"})
        return [*counts, len(service.open_sessions)]

    assert house.run(work, idle_seconds=10) == [1, 1, 0, 1]


def test_a_session_that_is_used_is_not_closed(house: House) -> None:
    async def work(service: Service) -> bool:
        await service.sessions.ensure(OPERATOR, "s1")
        async with service.session_access.open(OPERATOR, "s1") as session:
            house.clock.now += 1000
            service.open_sessions.close_idle()
            return bool(session.workspace.exists("."))

    assert house.run(work, idle_seconds=10)


def test_a_session_with_a_short_life_is_not_kept_open_for_long(house: House) -> None:
    async def work(service: Service) -> list[int]:
        await service.sessions.create(OPERATOR, NewSession(session_id="s1", ttl_seconds=50))
        await service.call(OPERATOR, "s1", "list", {})
        house.clock.now += 5
        service.open_sessions.close_idle()
        return [len(service.open_sessions)]

    assert house.run(work, idle_seconds=900) == [0]


def test_no_more_sessions_are_open_than_configured(house: House) -> None:
    async def work(service: Service) -> list[int]:
        counts = []
        for number in range(6):
            await service.sessions.ensure(OPERATOR, f"s{number}")
            await service.call(OPERATOR, f"s{number}", "list", {})
            counts.append(len(service.open_sessions))
        return counts

    assert house.run(work, open_sessions=3) == [1, 2, 3, 3, 3, 3]


def test_no_more_are_open_than_there_are_descriptors_for() -> None:
    assert [max_open_sessions(each) for each in (10, 1024, 65_536)] == [1, 96, 8160]
    assert max_open_sessions(resource.RLIM_INFINITY) > 10**6


def test_a_session_that_another_process_deleted_is_gone_at_once(house: House) -> None:
    async def work(service: Service) -> None:
        await service.sessions.ensure(OPERATOR, "s1")
        await service.call(OPERATOR, "s1", "write", {"path": "a", "data": "x"})
        WorkspaceManager(house.root).delete_workspace("s1")
        for operation in ("list", "stat", "write"):
            arguments = {"list": {}, "stat": {"path": "a"}, "write": {"path": "a", "data": "y"}}[operation]
            with pytest.raises(SessionMissingError):
                await service.call(OPERATOR, "s1", operation, arguments)
        assert len(service.open_sessions) == 0

    house.run(work)


def test_a_session_that_another_process_made_anew_is_the_new_one(house: House) -> None:
    async def work(service: Service) -> list[str]:
        await service.sessions.ensure(OPERATOR, "s1")
        await service.call(OPERATOR, "s1", "write", {"path": "old", "data": "x"})
        manager = WorkspaceManager(house.root)
        manager.delete_workspace("s1")
        with manager.create("s1") as workspace:
            workspace.write("new", "y")
        return list(await service.call(OPERATOR, "s1", "list_files", {}))

    assert house.run(work) == ["new"]


def test_callers_of_one_tenant_share_files_and_are_told_apart_in_the_journal(house: House) -> None:
    async def work(service: Service) -> list[tuple[str, str]]:
        other = type(WRITER)(name="second", tenant="acme", role="developer")
        await service.sessions.ensure(WRITER, "s1")
        for caller in (WRITER, other):
            await service.call(caller, "s1", "write", {"path": caller.name, "data": "x"})
        return [(event.actor, event.path) for event in (await service.changes(WRITER, "s1")).events]

    assert house.run(work) == [("writer", "writer"), ("second", "second")]


def test_a_failure_to_open_is_told_to_all_who_wait_and_not_remembered(house: House) -> None:
    async def work(service: Service) -> int:
        calls = [service.call(STRANGER, "s1", "list", {}) for _ in range(5)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(each) for each in answers} == {SessionMissingError}
        await service.sessions.ensure(STRANGER, "s1")
        return len(await service.call(STRANGER, "s1", "list", {}))

    assert house.run(work) == 0


def test_a_deleted_session_is_closed_for_all_callers(house: House) -> None:
    async def work(service: Service) -> tuple[int, bool]:
        await service.sessions.ensure(WRITER, "s1")
        async with service.session_access.open(WRITER, "s1"):
            await service.sessions.delete(WRITER, "s1")
            return len(service.open_sessions), (house.root / ".carrel/tenants/acme/s1").exists()

    assert house.run(work) == (0, False)


def test_more_sessions_than_may_be_open_can_be_used_at_once(house: House) -> None:
    async def work(service: Service) -> list[bool]:
        names = [f"s{number}" for number in range(12)]
        for name in names:
            await service.sessions.ensure(OPERATOR, name)
        calls = [service.call(OPERATOR, name, "exists", {"path": "."}) for name in names * 5]
        return list(await asyncio.gather(*calls))

    assert all(house.run(work, open_sessions=1))


def test_a_session_is_made_for_who_wants_that_also_while_another_looks_for_it(house: House) -> None:
    async def work(service: Service) -> bool:
        looking = asyncio.ensure_future(service.call(OPERATOR, "s1", "list", {}))
        making = asyncio.ensure_future(service.call_tool(OPERATOR, "s1", "file_list", {"path": "."}))
        with pytest.raises(SessionMissingError):
            await looking
        return (await making).success

    assert house.run(work)
