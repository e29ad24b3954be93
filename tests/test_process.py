"""What the module-level functions reuse is owned by one object, in an order that is known."""

from __future__ import annotations

import os
import signal
from threading import Thread

from carrel.process import ProcessResources
from carrel.workspace.threads import CallThreads

_SEEN: list[str] = []


class First:
    def close(self) -> None:
        _SEEN.append(f"close {type(self).__name__}")

    def abandon(self) -> None:
        _SEEN.append(f"abandon {type(self).__name__}")


class Second(First):
    pass


def test_each_resource_is_created_once_and_the_last_is_closed_first() -> None:
    _SEEN.clear()
    owner = ProcessResources()
    assert owner.get(First) is owner.get(First)
    assert isinstance(owner.get(Second), Second)
    owner.close()
    assert _SEEN == ["close Second", "close First"]


def test_a_signal_handler_may_need_a_resource_that_its_thread_is_creating() -> None:
    owner = ProcessResources()
    found: list[First] = []

    class Interrupted(First):
        """Lets a signal come the first time it is created."""

        def __init__(self) -> None:
            if not found:
                found.append(self)
                signal.raise_signal(signal.SIGUSR1)

    old = signal.signal(signal.SIGUSR1, lambda *_: found.append(owner.get(Interrupted)))
    try:
        created = owner.get(Interrupted)
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert created is found[1]
    assert created is owner.get(Interrupted)


def test_a_child_may_use_all_even_if_a_thread_of_the_parent_was_creating_one() -> None:
    _SEEN.clear()
    owner = ProcessResources()
    owner.get(First)
    creating = Thread(target=owner._lock.acquire)
    creating.start()
    creating.join()
    owner.abandon()
    assert _SEEN == ["abandon First"]
    owner.get(Second)


def test_a_forked_child_gets_threads_of_its_own() -> None:
    threads = CallThreads()
    assert threads.pool.submit(os.getpid).result() == os.getpid()
    child = os.fork()
    if not child:
        status = 1
        try:
            threads.abandon()
            status = 0 if threads.pool.submit(os.getpid).result(10) == os.getpid() else 1
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    threads.close()
    assert threads.pool.submit(os.getpid).result() == os.getpid()
    threads.close()
