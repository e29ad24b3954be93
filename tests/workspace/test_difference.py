"""What was changed between two surveys."""

from __future__ import annotations

import pytest

from carrel.fs.survey import Seen, Survey
from carrel.values import FileKind
from carrel.workspace.difference import Difference, differences

FILE = Seen(FileKind.FILE, 1, 10, 0, 0)
OTHER = Seen(FileKind.FILE, 2, 20, 0, 0)
DIRECTORY = Seen(FileKind.DIRECTORY, 3, 0, 0, 0)
MOVED = Seen(FileKind.DIRECTORY, 4, 0, 0, 0)
LINK = Seen(FileKind.LINK, 5, 1, 0, 0, "t")
PIPE = Seen(FileKind.OTHER, 6, 0, 0, 0)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"f": FILE}, {"f": FILE}, []),
        ({}, {"f": FILE}, [Difference("write", "f", False, None, None, 10)]),
        ({"f": FILE}, {"f": OTHER}, [Difference("write", "f", False, None, 10, 20)]),
        ({"f": FILE}, {}, [Difference("remove", "f", False, None, 10, None)]),
        ({"d": DIRECTORY}, {"d": MOVED}, []),
        ({}, {"l": LINK}, [Difference("link", "l", False, "t", None, None)]),
        ({"l": FILE}, {"l": LINK}, [Difference("link", "l", False, "t", 10, None)]),
        ({}, {"p": PIPE}, [Difference("write", "p", False, None, None, 0)]),
        (
            {"x": FILE},
            {"x": DIRECTORY, "x/f": FILE},
            [
                Difference("remove", "x", False, None, 10),
                Difference("mkdir", "x", True),
                Difference("write", "x/f", False, None, None, 10),
            ],
        ),
        (
            {"x": DIRECTORY, "x/f": FILE},
            {"x": LINK},
            [
                Difference("remove", "x/f", False, None, 10),
                Difference("remove", "x", True, None, 0),
                Difference("link", "x", False, "t"),
            ],
        ),
    ],
)
def test_each_change_has_its_words(
    before: dict[str, Seen], after: dict[str, Seen], found: list[Difference]
) -> None:
    assert list(differences(Survey(before), Survey(after))) == found
