"""Refusals that come again and again."""

from __future__ import annotations

import signal
import sys
from dataclasses import replace

from carrel.audit.event import Event, JournalLine
from carrel.storage.repeats import MAX_REMEMBERED, WINDOW_NS, Repeats
from tests.workspace.dying import forked, survives


def refusal(
    path: str = "x",
    time_ns: int = 0,
    *,
    actor: str = "guest",
    operation: str = "read",
    other_path: str | None = None,
    error: str = "path.escape",
) -> Event:
    return Event(
        time_ns=time_ns,
        session_id="one",
        actor=actor,
        operation=operation,
        path=path,
        other_path=other_path,
        error=error,
    )


def numbers(events: list[Event]) -> list[tuple[str, int]]:
    return [(event.path, event.repeats) for event in events]


def test_the_first_is_recorded_at_once_and_repeats_by_their_number() -> None:
    repeats = Repeats()
    assert numbers(repeats.add(refusal())) == [("x", 0)]
    assert [repeats.add(refusal(time_ns=time)) for time in range(1, 1000)] == [[]] * 999
    (told,) = repeats.take_counts()
    assert (told.repeats, told.time_ns) == (999, 999)
    assert repeats.take_counts() == []


def test_nothing_that_differs_is_a_repeat() -> None:
    repeats = Repeats()
    different = [
        refusal(),
        refusal("y"),
        refusal(actor="host"),
        refusal(operation="write"),
        refusal(error="access.denied"),
        refusal(other_path="z"),
    ]
    for event in different:
        assert repeats.add(event) == [event]
    assert [repeats.add(event) for event in different] == [[]] * len(different)
    assert [told.repeats for told in repeats.take_counts()] == [1] * len(different)


def test_refusals_that_alternate_are_repeats() -> None:
    repeats = Repeats()
    recorded = [each for number in range(1000) for each in repeats.add(refusal(f"{number % MAX_REMEMBERED}"))]
    assert len(recorded) == MAX_REMEMBERED
    assert sum(told.repeats for told in repeats.take_counts()) == 1000 - MAX_REMEMBERED


def test_so_many_different_ones_are_remembered_and_no_number_is_lost() -> None:
    repeats = Repeats()
    recorded = [
        each for number in range(3 * MAX_REMEMBERED) for each in repeats.add(refusal(f"{number // 2}"))
    ]
    recorded += repeats.take_counts()
    assert len(repeats._counted) == MAX_REMEMBERED
    assert sum(1 + event.repeats for event in recorded if not event.repeats) == 3 * MAX_REMEMBERED // 2
    assert sum(event.repeats for event in recorded) == 3 * MAX_REMEMBERED // 2


def test_the_number_is_recorded_when_the_time_is_over() -> None:
    repeats = Repeats()
    repeats.add(refusal())
    repeats.add(refusal(time_ns=1))
    assert repeats.add(refusal(time_ns=WINDOW_NS - 1)) == []
    assert numbers(repeats.add(refusal("other", WINDOW_NS))) == [("x", 2), ("other", 0)]
    assert numbers(repeats.add(refusal(time_ns=WINDOW_NS + 1))) == [("x", 0)]


def test_a_clock_that_is_set_back_hides_nothing() -> None:
    repeats = Repeats()
    repeats.add(refusal(time_ns=WINDOW_NS))
    repeats.add(refusal(time_ns=WINDOW_NS))
    assert numbers(repeats.add(refusal(time_ns=1))) == [("x", 1), ("x", 0)]


def test_a_forked_child_does_not_tell_what_its_parent_has_counted() -> None:
    repeats = Repeats()
    repeats.add(refusal())
    repeats.add(refusal())

    def child() -> None:
        assert repeats.take_counts() == []
        assert numbers(repeats.add(refusal())) == [("x", 0)]

    assert survives(forked(child))
    assert numbers(repeats.take_counts()) == [("x", 1)]


def test_a_signal_handler_in_the_middle_of_a_refusal_disturbs_nothing() -> None:
    repeats = Repeats()
    for number in range(MAX_REMEMBERED):
        repeats.add(refusal(f"{number}"))
        repeats.add(refusal(f"{number}"))
    added: list[Event] = []

    def handler(*_: object) -> None:
        added.extend(repeats.add(refusal(f"late {len(added)}")))

    old = signal.signal(signal.SIGUSR1, handler)
    sys.setprofile(lambda *_: signal.raise_signal(signal.SIGUSR1) if len(added) < 50 else None)
    try:
        added += repeats.add(refusal("first of all"))
        added += repeats.take_counts()
    finally:
        sys.setprofile(None)
        signal.signal(signal.SIGUSR1, old)
    assert "first of all" in [event.path for event in added]
    assert sum(event.repeats for event in added) == MAX_REMEMBERED


def test_the_number_is_in_the_record_and_only_there() -> None:
    for event in (refusal(), replace(refusal(), repeats=20_000)):
        line = JournalLine.parse(event.render(7, 3, "digest"), 0)
        assert line is not None
        assert line.event == replace(event, sequence=7)
    assert len(refusal().render()) < len(replace(refusal(), repeats=1).render())
    assert JournalLine.parse(replace(refusal(), repeats=1).render().replace(b",1]", b',"1"]'), 0) is None
