"""What was changed between two states of a tree."""

from __future__ import annotations

import pytest

from carrel.fs.local.external_changes import EntryState, TreeDifference, TreeState, tree_differences
from carrel.values import FileKind

FILE = EntryState(FileKind.FILE, 1, 10, 0, 0)
OTHER = EntryState(FileKind.FILE, 2, 20, 0, 0)
DIRECTORY = EntryState(FileKind.DIRECTORY, 3, 0, 0, 0)
MOVED = EntryState(FileKind.DIRECTORY, 4, 0, 0, 0)
LINK = EntryState(FileKind.LINK, 5, 1, 0, 0, "t")
PIPE = EntryState(FileKind.OTHER, 6, 0, 0, 0)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ({"f": FILE}, {"f": FILE}, []),
        ({}, {"f": FILE}, [TreeDifference("write", "f", False, None, None, 10)]),
        ({"f": FILE}, {"f": OTHER}, [TreeDifference("write", "f", False, None, 10, 20)]),
        ({"f": FILE}, {}, [TreeDifference("remove", "f", False, None, 10, None)]),
        ({"d": DIRECTORY}, {"d": MOVED}, []),
        ({}, {"l": LINK}, [TreeDifference("link", "l", False, "t", None, None)]),
        ({"l": FILE}, {"l": LINK}, [TreeDifference("link", "l", False, "t", 10, None)]),
        ({}, {"p": PIPE}, [TreeDifference("write", "p", False, None, None, 0)]),
        (
            {"x": FILE},
            {"x": DIRECTORY, "x/f": FILE},
            [
                TreeDifference("remove", "x", False, None, 10),
                TreeDifference("mkdir", "x", True),
                TreeDifference("write", "x/f", False, None, None, 10),
            ],
        ),
        (
            {"x": DIRECTORY, "x/f": FILE},
            {"x": LINK},
            [
                TreeDifference("remove", "x/f", False, None, 10),
                TreeDifference("remove", "x", True, None, 0),
                TreeDifference("link", "x", False, "t"),
            ],
        ),
    ],
)
def test_each_change_has_its_words(
    before: dict[str, EntryState], after: dict[str, EntryState], found: list[TreeDifference]
) -> None:
    assert list(tree_differences(TreeState(before), TreeState(after))) == found
