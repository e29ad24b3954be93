"""Threads and slots, shared between tenants."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextvars import copy_context
from threading import Event

import pytest

from carrel.fs.nonblocking import blocking
from carrel.service import thread_pools
from carrel.service.principal import Principal
from carrel.service.thread_pools import BlockingThreadPool, FairThreadPool, Slots, set_current_tenant
from tests.fronts.http.test_disconnect import eventually
from tests.service.conftest import OPERATOR, STRANGER, WRITER


class Pool:
    """Threads whose work ends when it is told to."""

    def __init__(self, count: int, slots: int) -> None:
        self.slots = Slots(slots)
        self.threads = FairThreadPool(count, self.slots)
        self.end = Event()

    def begin(self, who: Principal, waits_for: Event | None = None) -> tuple[Event, Future[bool]]:
        """Hand over work of *who*, which blocks on something first; the event tells that it has a slot."""
        begun = Event()

        def work() -> bool:
            if waits_for is not None:
                with blocking():
                    waits_for.wait()
            begun.set()
            return self.end.wait()

        def submit() -> Future[bool]:
            set_current_tenant(who)
            return self.threads.submit(work)

        return begun, copy_context().run(submit)


@pytest.fixture
def pool() -> Iterator[Pool]:
    yield from ended(Pool(8, slots=8))


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Pool]:
    """More threads than slots, of which a tenant gets one."""
    monkeypatch.setattr(thread_pools, "RETURN_SECONDS", 3600.0)
    yield from ended(Pool(8, slots=2))


def ended(pool: Pool) -> Iterator[Pool]:
    yield pool
    pool.end.set()
    pool.threads.shutdown()


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


def test_fewer_threads_execute_code_than_there_are(narrow: Pool) -> None:
    first, _ = narrow.begin(WRITER)
    first.wait()
    others = [narrow.begin(who) for who in (WRITER, STRANGER, OPERATOR)]
    others[1][0].wait()
    assert [begun.is_set() for begun, _ in others] == [False, True, False]
    narrow.end.set()
    assert all(future.result() for _, future in others)


def test_a_thread_that_blocks_releases_its_slot(narrow: Pool) -> None:
    comes = Event()
    waits, ending = narrow.begin(WRITER, comes)
    begun, _ = narrow.begin(WRITER)
    begun.wait()
    comes.set()
    # It is back, and has to wait for a slot.
    narrow.begin(STRANGER)[0].wait()
    assert not waits.is_set()
    narrow.end.set()
    assert ending.result()


def test_a_thread_that_has_blocked_goes_before_new_work(narrow: Pool) -> None:
    done: list[str] = []
    comes, go = Event(), Event()

    def waits() -> None:
        with blocking():
            comes.wait()
        done.append("waited")

    def first() -> None:
        comes.set()
        go.wait()

    futures = [narrow.threads.submit(each) for each in (waits, first, lambda: done.append("new"))]
    eventually(lambda: narrow.slots.waiting == 2)
    go.set()
    for future in futures:
        future.result()
    assert done == ["waited", "new"]


def test_a_thread_that_has_blocked_continues_without_a_slot_rather_than_never(
    narrow: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_pools, "RETURN_SECONDS", 0.0)
    comes = Event()
    waits, _ = narrow.begin(WRITER, comes)
    narrow.begin(WRITER)[0].wait()
    narrow.begin(STRANGER)[0].wait()
    comes.set()
    waits.wait()
    # The slot that does not exist is released as well.
    last, _ = narrow.begin(OPERATOR)
    assert not last.is_set()
    narrow.end.set()
    last.wait()


def test_threads_that_block_on_clients_share_the_slots(narrow: Pool) -> None:
    with BlockingThreadPool(8, narrow.slots) as uploading:
        sent, works = Event(), Event()

        def upload() -> bool:
            with blocking():
                sent.wait()
            works.set()
            return narrow.end.wait()

        uploads = [uploading.submit(upload) for _ in range(8)]
        narrow.begin(OPERATOR)[0].wait()
        sent.set()
        eventually(lambda: narrow.slots.waiting == 8 or works.is_set())
        assert not works.is_set()
        narrow.end.set()
        assert all(each.result() for each in uploads)
