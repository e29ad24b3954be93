"""A worker process has one owner, and one that is slow to start holds up nobody else."""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from carrel.errors import SandboxExecutionError
from carrel.runtimes.wasm import pool as pool_module
from carrel.runtimes.wasm.build.compiled import CompiledGuest
from carrel.runtimes.wasm.interpreter import InterpreterHandle
from carrel.runtimes.wasm.pool import SHARED, Owner, Pool, PoolSettings
from carrel.runtimes.wasm.worker_process import WasmWorker

pytestmark = pytest.mark.timeout(60)

A, B, C = Owner("a"), Owner("b"), Owner("a", "session")


@pytest.fixture
def directory(guest_cache: Path) -> str:
    return str(CompiledGuest(guest_cache).directory)


class Lent(Pool):
    """A pool that takes back what it gave."""

    def __init__(self, cache_directory: str, settings: PoolSettings) -> None:
        super().__init__(cache_directory, settings)
        self._lent: list[InterpreterHandle] = []

    def take(self, *, metered: bool = False, owner: Owner = SHARED) -> InterpreterHandle:
        self._lent.append(super().take(metered=metered, owner=owner))
        return self._lent[-1]

    def close(self) -> None:
        for interpreter in self._lent:
            interpreter.close()
        super().close()


@pytest.fixture
def pool(directory: str) -> Iterator[Pool]:
    """One process at a time, and nothing ready."""
    with closing(Lent(directory, PoolSettings(workers=1, ready=0))) as made:
        yield made


def test_no_two_owners_share_a_process(pool: Pool) -> None:
    opened = [pool.take(owner=owner) for owner in (A, B, C, A, B, SHARED)]
    first, second, third, fourth, fifth, sixth = (each.worker for each in opened)
    assert fourth is first
    assert fifth is second
    assert len({id(worker) for worker in (first, second, third, sixth)}) == 4


def test_what_is_ready_goes_with_its_process_to_one_owner(directory: str) -> None:
    with closing(Lent(directory, PoolSettings(workers=1, ready=2))) as pool:
        pool.fill()
        first = pool.take(owner=A)
        assert pool.take(owner=B).worker is not first.worker
        assert pool.take(owner=A).worker is first.worker


def test_spares_for_owners_have_a_process_each(directory: str) -> None:
    with closing(Lent(directory, PoolSettings(workers=1, ready=2))) as pool:
        pool.fill(A)
        spares = list(pool._waiting)
        for spare in spares:
            spare.require_ready(time.monotonic() + 60)
        taken = [pool.take(owner=A), pool.take(owner=B)]
        assert taken == spares
        assert taken[0].worker is not taken[1].worker


def test_idle_processes_of_others_make_room(pool: Pool) -> None:
    idle, busy = pool.take(owner=A), pool.take(owner=B)
    idle.close()
    pool.take(owner=C)
    assert not idle.worker.is_alive
    assert busy.worker.is_alive
    assert pool.take(owner=B).worker is busy.worker


def test_processes_do_not_pile_up(directory: str) -> None:
    with closing(Lent(directory, PoolSettings(workers=1, ready=1))) as pool:
        for number in range(6):
            interpreter = pool.take(owner=Owner("a", number))
            with pool.running(interpreter):
                interpreter.require_ready(time.monotonic() + 60)
            interpreter.close()
        pool.take(owner=B)
        assert len(pool._workers) <= 3  # one that is idle, what is ready, and that of B


def test_an_owner_keeps_its_process_while_others_are_ready(directory: str) -> None:
    with closing(Lent(directory, PoolSettings(workers=1, ready=2))) as pool:
        first = pool.take(owner=A)
        with pool.running(first):
            first.require_ready(time.monotonic() + 60)
        first.close()
        pool.fill(A)
        assert pool.take(owner=A).worker is first.worker
        assert first.worker.is_alive


class SlowStart(WasmWorker):
    """A process that takes until it is let, if it is to be slow."""

    slow = threading.Event()
    begun = threading.Event()
    let = threading.Event()

    def __init__(self, cache_directory: str) -> None:
        if self.slow.is_set():
            self.begun.set()
            self.let.wait()
        super().__init__(cache_directory)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[SlowStart]]:
    monkeypatch.setattr(pool_module, "WasmWorker", SlowStart)
    yield SlowStart
    for event in (SlowStart.slow, SlowStart.begun, SlowStart.let):
        event.clear()


def test_a_slow_start_holds_up_nobody_else(pool: Pool, slow: type[SlowStart]) -> None:
    first = pool.take(owner=A)
    slow.slow.set()
    found: list[InterpreterHandle] = []
    waiting = threading.Thread(target=lambda: found.append(pool.take(owner=B)))
    waiting.start()
    slow.begun.wait()
    with pool.running(first):
        second = pool.take(owner=A)
    assert second.worker is first.worker
    assert not found
    slow.let.set()
    waiting.join()
    assert found[0].worker is not first.worker


def test_a_process_that_comes_up_after_the_end_is_ended(pool: Pool, slow: type[SlowStart]) -> None:
    slow.slow.set()
    problems: list[SandboxExecutionError] = []

    def take() -> None:
        try:
            pool.take()
        except SandboxExecutionError as error:
            problems.append(error)

    waiting = threading.Thread(target=take)
    waiting.start()
    slow.begun.wait()
    pool.close()
    slow.let.set()
    waiting.join()
    assert "closed" in str(problems[0])


def test_an_interpreter_that_cannot_be_opened_leaves_its_process_usable(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = pool.take(owner=A).worker
    with monkeypatch.context() as without_sockets:
        without_sockets.setattr(socket, "socketpair", _no_descriptors)
        with pytest.raises(SandboxExecutionError, match="Too many open files"):
            pool.take(owner=A)
    assert worker.opening == 0
    assert pool.take(owner=A).worker is worker


def _no_descriptors() -> None:
    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
