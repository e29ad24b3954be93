"""Places and threads, shared between tenants."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from contextvars import copy_context
from threading import Event

import pytest

from carrel.errors import LimitError
from carrel.service.admission import Admission, FairThreads, Shared, works_for
from carrel.service.principal import Principal
from carrel.service.service import Service
from carrel.service.session_info import NewSession
from carrel.values import Usage
from tests.service.conftest import OPERATOR, STRANGER, WRITER, House
from tests.workspace.holding import held


def caller(name: str, tenant: str) -> Principal:
    return Principal(name=name, tenant=tenant, role="developer", roles=("developer",))


def test_half_of_the_places_are_for_one_tenant_and_an_eighth_for_one_caller() -> None:
    admission = Admission(32)
    for number in range(16):
        admission.enter().take(caller(f"c{number // 4}", "a"))
        if number % 4 == 3:
            with pytest.raises(LimitError, match="of yours") as caught:
                admission.take(caller(f"c{number // 4}", "a"))
            assert (caught.value.code, caught.value.limit) == ("limit.requests", 16 if number == 15 else 4)
    with pytest.raises(LimitError) as caught:
        admission.take(caller("new", "a"))
    assert (caught.value.limit, caught.value.retry_after_seconds) == (16, 1)
    for _ in range(16):
        admission.enter().take(OPERATOR)
    with pytest.raises(LimitError):
        admission.enter()


def test_a_place_is_given_back_once() -> None:
    admission = Admission(2)
    place = admission.enter()
    place.take(WRITER)
    with pytest.raises(LimitError):
        admission.take(WRITER)
    place.leave()
    place.leave()
    for one in (admission.enter(), admission.enter()):
        one.leave()
    admission.take(WRITER)


class Pool:
    """Threads whose work ends when it is told to."""

    def __init__(self, count: int) -> None:
        self.threads = FairThreads(count)
        self.end = Event()

    def begin(self, who: Principal) -> tuple[Event, Future[bool]]:
        """Hand over work of *who*; the event tells that it has begun."""
        begun = Event()

        def work() -> bool:
            begun.set()
            return self.end.wait()

        def submit() -> Future[bool]:
            works_for(who)
            return self.threads.submit(work)

        return begun, copy_context().run(submit)


@pytest.fixture
def pool() -> Iterator[Pool]:
    found = Pool(8)
    yield found
    found.end.set()
    found.threads.shutdown()


def test_a_tenant_that_has_much_to_do_leaves_threads_to_others(pool: Pool) -> None:
    many = [pool.begin(WRITER) for _ in range(20)]
    for begun, _ in many[:4]:
        begun.wait()
    for who in (STRANGER, OPERATOR):
        begun, _ = pool.begin(who)
        begun.wait()
    assert [begun.is_set() for begun, _ in many] == [True] * 4 + [False] * 16
    pool.end.set()
    assert all(future.result() for _, future in many)


def test_who_had_one_thread_gets_the_next_also_if_another_tenant_is_first(pool: Pool) -> None:
    for _ in range(8):
        pool.begin(WRITER)
    ended = pool.threads.submit(lambda: None)
    ended.result()
    for who in (STRANGER, STRANGER, OPERATOR):
        begun, _ = pool.begin(who)
        begun.wait()


def test_work_that_nobody_waits_for_is_not_begun(pool: Pool) -> None:
    waiting = [pool.begin(WRITER) for _ in range(5)]
    begun, future = waiting[-1]
    assert future.cancel()
    pool.end.set()
    pool.threads.shutdown()
    assert not begun.is_set()


def test_errors_come_to_who_waits(pool: Pool) -> None:
    def fail() -> None:
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        pool.threads.submit(fail).result()


def test_whoever_asks_while_work_runs_shares_what_begins_after_it() -> None:
    async def main() -> None:
        shared, begun, go = Shared(), [0], asyncio.Event()

        async def work() -> int:
            begun[0] += 1
            number = begun[0]
            await go.wait()
            return number

        first = asyncio.create_task(shared.run("kind", work))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        later = [asyncio.create_task(shared.run("kind", work)) for _ in range(5)]
        other = asyncio.create_task(shared.run("other", work))
        await asyncio.sleep(0)
        later[0].cancel()
        go.set()
        assert await first == 1
        assert set(await asyncio.gather(*later[1:])) == {3}
        assert await other == 2
        assert await shared.run("kind", work) == 4

    asyncio.run(main())


def test_many_counts_of_a_session_are_two_at_most(house: House, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="carrel")

    async def work(service: Service) -> tuple[list[Usage], int]:
        await service.sessions.create(WRITER, NewSession(session_id="s"))
        await service.call(WRITER, "s", "write", {"path": "f", "data": "text"})
        root = house.root / ".carrel" / "tenants" / "acme"
        caplog.clear()
        with held(root, "s") as release:
            counts = [asyncio.create_task(service.call(WRITER, "s", "recount", {})) for _ in range(20)]
            await asyncio.sleep(0)
            release()
            found = await asyncio.gather(*counts)
        return found, sum("session.recounted" in record.message for record in caplog.records)

    found, times = house.run(work)
    assert set(found) == {Usage(disk_bytes=4, entries=1)}
    assert times <= 2
