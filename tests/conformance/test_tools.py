"""The same calls of tools through every door: what they answer, and what they leave."""

from __future__ import annotations

import pytest

from tests.conformance.client_door import ByClient
from tests.conformance.command_line import CommandLine
from tests.conformance.door import Doors
from tests.conformance.place import SECRET
from tests.conformance.row import Row
from tests.conformance.tool_rows import CHANGING, READING

ROWS = (*READING, *CHANGING)
SOME = 5
"""The command line, which is slow, and the clients make only one in this many calls."""


@pytest.mark.parametrize(("number", "row"), list(enumerate(ROWS)), ids=str)
def test_every_door_answers_as_the_library_does(number: int, row: Row, doors: Doors) -> None:
    expected = doors.tool(doors.library, row)
    assert expected.answer is not None
    assert SECRET not in repr(expected)
    for door in doors.others:
        if isinstance(door, CommandLine | ByClient) and number % SOME:
            continue
        made = doors.tool(door, row)
        if made.answer is None:
            continue
        wanted = expected.answer.over_mcp(row.profile, row.name) if door.name == "mcp" else expected.answer
        assert made.answer == wanted, door.name
        assert made.left == expected.left, door.name
