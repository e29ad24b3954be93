"""Places, and work that many ask for at one time."""

from __future__ import annotations

import asyncio

import pytest

from carrel.errors import LimitError
from carrel.service.admission import Admission, SingleFlight
from carrel.service.principal import Principal
from carrel.service.service import Service
from carrel.service.sessions.info import NewSession
from carrel.values import Usage
from tests.service.conftest import OPERATOR, WRITER, House
from tests.storage.holding import held


def caller(name: str, tenant: str) -> Principal:
    return Principal(name=name, tenant=tenant, role="developer", roles=("developer",))


def test_half_of_the_places_are_for_one_tenant_and_an_eighth_for_one_caller() -> None:
    admission = Admission(32)
    for number in range(16):
        admission.admit().assign(caller(f"c{number // 4}", "a"))
        if number % 4 == 3:
            with pytest.raises(LimitError, match="of yours") as caught:
                admission.count(caller(f"c{number // 4}", "a"))
            assert (caught.value.code, caught.value.limit) == ("limit.requests", 16 if number == 15 else 4)
            assert f"the limit by serve.max_requests is {caught.value.limit}" in caught.value.message
    with pytest.raises(LimitError) as caught:
        admission.count(caller("new", "a"))
    assert (caught.value.limit, caught.value.retry_after_seconds) == (16, 1)
    for _ in range(16):
        admission.admit().assign(OPERATOR)
    with pytest.raises(LimitError):
        admission.admit()


def test_a_place_is_given_back_once() -> None:
    admission = Admission(2)
    ticket = admission.admit()
    ticket.assign(WRITER)
    with pytest.raises(LimitError):
        admission.count(WRITER)
    ticket.release()
    ticket.release()
    for one in (admission.admit(), admission.admit()):
        one.release()
    admission.count(WRITER)


def test_whoever_asks_while_work_runs_shares_what_begins_after_it() -> None:
    async def main() -> None:
        shared, begun, go = SingleFlight(), [0], asyncio.Event()

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
