"""Refusals and mistakes are counted by code, and no number of codes fills the memory."""

from __future__ import annotations

from carrel.audit.counts import MAX_CODES, OTHER, RefusalCounts


def test_refusals_and_mistakes_are_counted_apart() -> None:
    counts = RefusalCounts()
    counts.add("path.escape")
    counts.add("path.escape")
    counts.add("shell.syntax", is_mistake=True)
    assert counts.of(mistakes=False) == {"path.escape": 2}
    assert counts.of(mistakes=True) == {"shell.syntax": 1}


def test_numbers_that_are_taken_are_added_elsewhere_once() -> None:
    here, there = RefusalCounts(), RefusalCounts()
    there.add("shell.syntax", is_mistake=True)
    there.add("path.escape", 3)
    for _ in range(2):
        here.add_all(there.take())
    assert here.of(mistakes=False) == {"path.escape": 3}
    assert here.of(mistakes=True) == {"shell.syntax": 1}


def test_codes_beyond_the_maximum_are_counted_together() -> None:
    counts = RefusalCounts()
    for number in range(MAX_CODES + 10):
        counts.add(f"code.{number}")
    numbers = counts.of(mistakes=False)
    assert numbers[OTHER] == 10
    assert len(numbers) == MAX_CODES + 1
