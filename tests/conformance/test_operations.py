"""The same calls of the workspace's methods through every door: what they answer, and what they leave."""

from __future__ import annotations

import pytest

from tests.conformance.answer import REQUEST
from tests.conformance.client_door import ByClient
from tests.conformance.door import Doors
from tests.conformance.operation_rows import CHANGING, LIMITED, READING, WRONG
from tests.conformance.place import SECRET
from tests.conformance.row import Row

COMMON_FIELDS = ("path", "kind", "size_bytes", "modified_ns")
"""Fields of an entry that the command line has, too."""


ROWS = (*READING, *CHANGING, *LIMITED)
SOME = 3
"""The clients make only one in this many calls: other doors make every call over the same service."""


@pytest.mark.parametrize(("number", "row"), list(enumerate(ROWS)), ids=str)
def test_every_door_answers_as_the_library_does(number: int, row: Row, doors: Doors) -> None:
    expected = doors.operation(doors.library, row)
    assert expected.answer is not None
    assert SECRET not in repr(expected)
    for door in doors.others:
        if isinstance(door, ByClient) and number % SOME:
            continue
        made = doors.operation(door, row)
        if made.answer is None:
            continue
        if expected.answer.code == REQUEST:
            assert made.answer.code == REQUEST, door.name
        elif door.name == "cli":
            assert made.answer.agrees(expected.answer.only(*COMMON_FIELDS)), door.name
        else:
            assert made.answer == expected.answer, door.name
        assert made.left == expected.left, door.name


@pytest.mark.parametrize("row", WRONG, ids=str)
def test_arguments_that_make_no_sense_are_refused_in_the_same_words(row: Row, doors: Doors) -> None:
    wires = [door for door in doors.others if door.name in ("http", "grpc")]
    answers = [doors.operation(door, row).answer for door in wires]
    assert answers[0] is not None
    assert answers[0].code == REQUEST
    assert row.name in (answers[0].message or "")
    assert answers == answers[:1] * len(wires)
