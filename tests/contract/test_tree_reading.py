"""`read_tree`, the `enter` of a walk, and `touch`, the same behind every implementation."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from carrel.errors import (
    CarrelError,
    EscapeError,
    LimitError,
    LoopError,
    MissingError,
    NotDirectoryError,
)
from carrel.fs.api import Links
from carrel.values import Limits
from tests.contract.places import NO_LIMITS, Place, refused, where, write

TREE = (
    "b = two",
    "a/deep/f = three",
    "a/f = one",
    "empty/",
    "to-a => a",
    "to-b => b",
    "dangling => nothing",
    "loop => loop",
    "out => ../outside",
)
WHEN_NS = 1_234_567_890 * 10**9


def contents(
    place: Place,
    path: str = ".",
    *,
    limits: Limits = NO_LIMITS,
    enter: Callable[[str], bool] | None = None,
    wants: Callable[[str], bool] | None = None,
    chunk_bytes: int = 2**16,
) -> list[tuple[str, bytes]]:
    found = place.files.read_tree(where(path), limits, enter=enter, wants=wants, chunk_bytes=chunk_bytes)
    return [(each.path, b"".join(each.chunks)) for each in found]


# Reading


def test_a_tree_gives_its_files_in_order_and_no_link(place: Place) -> None:
    place.plant(*TREE)
    assert contents(place) == [("a/deep/f", b"three"), ("a/f", b"one"), ("b", b"two")]
    assert contents(place, "a") == [("a/deep/f", b"three"), ("a/f", b"one")]
    assert contents(place, "to-a/deep") == [("to-a/deep/f", b"three")]
    assert contents(place, "empty") == []


def test_what_is_not_wanted_is_not_read(place: Place) -> None:
    place.plant(*TREE)
    assert contents(place, enter=lambda name: name != "deep") == [("a/f", b"one"), ("b", b"two")]
    assert contents(place, wants=lambda name: name != "f") == [("b", b"two")]


@pytest.mark.parametrize("size", [0, 1, 9, 10, 11, 20, 25])
def test_a_file_of_any_size_comes_whole_in_pieces(place: Place, size: int) -> None:
    content = bytes(range(size))
    write(place.files, "f", content)
    (found,) = place.files.read_tree(where("."), NO_LIMITS, enter=None, wants=None, chunk_bytes=10)
    pieces = list(found.chunks)
    assert b"".join(pieces) == content
    assert all(len(piece) <= 11 for piece in pieces)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("b", NotDirectoryError),
        ("missing", MissingError),
        ("dangling", MissingError),
        ("loop", LoopError),
        ("out", EscapeError),
        ("..", EscapeError),
        ("a/../..", EscapeError),
    ],
)
def test_what_is_no_directory_inside_is_not_read(place: Place, path: str, kind: type[CarrelError]) -> None:
    place.plant(*TREE)
    with refused(kind, path):
        contents(place, path)


@pytest.mark.parametrize(
    "limits",
    [
        Limits(disk_bytes=None, entries=None, walk_entries=4),
        Limits(disk_bytes=None, entries=None, list_entries=4),
        Limits(disk_bytes=None, entries=None, depth=2),
    ],
    ids=str,
)
def test_a_tree_beyond_the_limits_of_a_walk_is_an_error(place: Place, limits: Limits) -> None:
    place.plant("a/b/c/f = deep", "d = 1", "e = 2", "f = 3", "g = 4")
    with pytest.raises(LimitError):
        contents(place, limits=limits)


def test_what_is_too_deep_is_told_after_everything_else(place: Place) -> None:
    place.plant("a/b/c/f = deep", "a/b/g = 1", "z = 2")
    found: list[str] = []
    reading = place.files.read_tree(where("."), Limits(depth=2), enter=None, wants=None, chunk_bytes=10)
    with pytest.raises(LimitError, match="deeper than 2"):
        found.extend(each.path for each in reading)
    assert found == ["z"]


# Walking


def test_a_walk_shows_a_directory_that_it_does_not_go_into(place: Place) -> None:
    place.plant(*TREE)
    found = place.files.walk(where("a"), NO_LIMITS, enter=lambda info: info.name != "deep")
    assert [info.path for info in found] == ["a/deep", "a/f"]


# Touching


@pytest.mark.parametrize(
    ("path", "changed"), [("b", "b"), ("to-b", "b"), ("a", "a"), ("a/", "a"), ("to-a", "a")]
)
def test_a_touch_sets_when_something_was_changed(place: Place, path: str, changed: str) -> None:
    place.plant(*TREE)
    before = place.lines()
    assert place.files.touch(where(path), WHEN_NS).modified_ns == WHEN_NS
    assert place.files.stat(where(changed), Links.KEEP).modified_ns == WHEN_NS
    assert place.lines() == before


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("missing", MissingError),
        ("dangling", MissingError),
        ("b/", NotDirectoryError),
        ("b/x", NotDirectoryError),
        ("loop", LoopError),
        ("out", EscapeError),
        ("..", EscapeError),
    ],
)
def test_what_is_not_there_or_outside_is_not_touched(
    place: Place, path: str, kind: type[CarrelError]
) -> None:
    place.plant(*TREE)
    with refused(kind, path):
        place.files.touch(where(path), WHEN_NS)
