"""A call ends when its deadline passes or it is cancelled."""

from __future__ import annotations

from contextvars import copy_context
from threading import Thread

import pytest

from carrel.errors import LimitError
from carrel.tools.core.deadline import Deadline, Deadlines


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_call_may_go_on_until_its_time_is_over(clock: Clock) -> None:
    deadline = Deadline(1.5, clock)
    clock.seconds += 1.5
    deadline.check()
    clock.seconds += 0.1
    with pytest.raises(LimitError) as caught:
        deadline.check()
    error = caught.value
    assert (error.code, error.limit, error.asked) == ("limit.time", 1500, None)
    assert error.message == "Operation timed out after 1.5s"


def test_without_an_end_there_is_always_time(clock: Clock) -> None:
    deadline = Deadline(None, clock)
    clock.seconds += 10**9
    deadline.check()


def test_a_call_that_is_stopped_ends_at_its_next_step(clock: Clock) -> None:
    deadline = Deadline(None, clock)
    deadline.stop()
    with pytest.raises(LimitError, match=r"^Operation cancelled$"):
        deadline.check()


def test_listeners_hear_that_it_was_stopped_even_if_they_come_late(clock: Clock) -> None:
    deadline = Deadline(None, clock)
    heard: list[str] = []
    deadline.on_stop(lambda: heard.append("early"))
    assert heard == []
    deadline.stop()
    deadline.on_stop(lambda: heard.append("late"))
    assert heard == ["early", "late"]


def test_a_deadline_holds_during_its_call_and_no_longer(clock: Clock) -> None:
    deadlines, outer, inner = Deadlines(), Deadline(1, clock), Deadline(None, clock)
    deadlines.check()
    with deadlines.during(outer):
        clock.seconds += 2
        with deadlines.during(inner):
            found = [deadlines.current]
            deadlines.check()
        found.append(deadlines.current)
        with pytest.raises(LimitError):
            deadlines.check()
    assert [*found, deadlines.current] == [inner, outer, None]
    deadlines.check()


def test_a_deadline_holds_in_its_thread_and_in_those_that_run_in_its_context() -> None:
    deadlines, found = Deadlines(), []

    def look() -> None:
        found.append(deadlines.current)

    with deadlines.during(Deadline(None)) as _:
        current = deadlines.current
        for thread in (Thread(target=look), Thread(target=copy_context().run, args=(look,))):
            thread.start()
            thread.join()
    assert found == [None, current]
