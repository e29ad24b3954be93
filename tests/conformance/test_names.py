"""Names that are no text, which a file of the host may have, through every door that takes any name."""

from __future__ import annotations

import os

import pytest

from tests.conformance.door import Doors
from tests.conformance.row import operations

NAME = b"\xff\xfe.txt"
ROWS = operations(
    [
        "list()",
        "glob('*.txt')",
        r"stat('\udcff\udcfe.txt')",
        r"exists('\udcff\udcfe.txt')",
        r"exists('\udcff')",
        r"stat('\udcff')",
        r"stat('\ud800')",
        r"read_text('\udcff\udcfe.txt')",
        r"search('needle', '\udcff\udcfe.txt')",
        r"edit('\udcff\udcfe.txt', 'needle', 'pin')",
        r"append('\udcff\udcfe.txt', 'more')",
        r"move('\udcff\udcfe.txt', 'plain.txt')",
        r"copy('\udcff\udcfe.txt', '\udcfe')",
        r"mkdir('\udcff\udcfe')",
        r"remove('\udcff\udcfe.txt')",
    ],
    is_changing=True,
)


@pytest.mark.parametrize("number", range(len(ROWS)), ids=lambda number: ROWS[number].text)
def test_a_name_that_is_no_text_can_be_asked_for(number: int, doors: Doors) -> None:
    row, answers = ROWS[number], {}
    for door in (doors.library, *doors.others):
        if door.name not in ("library", "http", "grpc", "client-http"):
            continue
        session = f"name-{number}-{door.name}"
        doors.places.manager.create(session).close()
        root = os.fsencode(doors.places.sessions / session)
        with open(root + b"/" + NAME, "wb") as file:
            file.write(b"a needle\n")
        os.utime(root + b"/" + NAME, ns=(0, 0))
        answer = door.operation(session, row, row.arguments)
        answers[door.name] = answer, doors.places.contents(session)
    assert answers == dict.fromkeys(answers, answers["library"])
