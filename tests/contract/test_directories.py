"""`mkdir`, `list` and `walk`, the same behind every implementation."""

from __future__ import annotations

import pytest

from carrel.errors import (
    CarrelError,
    EscapeError,
    ExistsError,
    LimitError,
    LoopError,
    MissingError,
    NotDirectoryError,
)
from carrel.fs.api import Existing, Links, Parents
from carrel.values import FileKind, Limits
from tests.contract.places import NO_LIMITS, Place, names, refused, where, write
from tests.requirements import requirement

TREE = (
    "f",
    "d/",
    "to-f => f",
    "to-d => d",
    "dangling => nothing",
    "loop => loop",
    "out => ../outside",
    "out-new => ../outside/new",
    "absolute => /nonexistent",
    "up => ..",
)


# Making


@pytest.mark.parametrize("parents", Parents)
@pytest.mark.parametrize("path", ["new", "new/", "./new", "d/new", "d/../new", "to-d/new", "to-d/../new"])
def test_a_directory_is_made_and_told(place: Place, path: str, parents: Parents) -> None:
    place.plant(*TREE)
    made = place.files.mkdir(where(path), parents=parents)
    assert made == [where(path).text]
    info = place.files.stat(where(path), Links.KEEP)
    assert (info.kind, info.mode) == (FileKind.DIRECTORY, 0o755)
    assert place.files.list(where(path), limit=None) == []


def test_directories_above_are_made_and_told_in_their_order(place: Place) -> None:
    place.plant("a/")
    assert place.files.mkdir(where("a/b/c/d"), parents=Parents.MAKE) == ["a/b", "a/b/c", "a/b/c/d"]
    assert place.lines() == ["a/", "a/b/", "a/b/c/", "a/b/c/d/"]


def test_a_missing_directory_above_is_an_error_when_it_is_not_to_be_made(place: Place) -> None:
    with refused(MissingError, "a/b"):
        place.files.mkdir(where("a/b"), parents=Parents.REQUIRE)
    assert place.lines() == []


@pytest.mark.parametrize("parents", Parents)
@pytest.mark.parametrize("path", ["d", "d/", "d/.", ".", "./", "d/..", "to-d", "to-d/", "to-d/."])
def test_a_directory_that_is_there_is_no_error_and_makes_nothing(
    place: Place, path: str, parents: Parents
) -> None:
    place.plant(*TREE)
    before = place.lines()
    assert place.files.mkdir(where(path), parents=parents) == []
    assert place.lines() == before


@requirement("P-15")
@pytest.mark.parametrize("parents", Parents)
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("f", ExistsError),
        ("f/", ExistsError),
        ("to-f", ExistsError),
        ("dangling", ExistsError),
        ("dangling/", ExistsError),
        ("loop", ExistsError),
        ("out", ExistsError),
        ("out-new", ExistsError),
        ("absolute", ExistsError),
        ("f/x", NotDirectoryError),
        ("to-f/x", NotDirectoryError),
        ("f/.", NotDirectoryError),
        ("f/..", NotDirectoryError),
        ("loop/x", LoopError),
        ("missing/.", MissingError),
        ("missing/..", MissingError),
        ("missing/../x", MissingError),
        ("missing/../../evil", EscapeError),
        ("..", EscapeError),
        ("../evil", EscapeError),
        ("../ws/new", EscapeError),
        ("out/.", EscapeError),
        ("out/new", EscapeError),
        ("out/n1/n2", EscapeError),
        ("out-new/x", EscapeError),
        ("absolute/x", EscapeError),
        ("up/evil", EscapeError),
        ("d/../../evil", EscapeError),
    ],
)
def test_a_directory_that_cannot_be_made_says_why(
    place: Place, path: str, kind: type[CarrelError], parents: Parents
) -> None:
    place.plant(*TREE)
    before = place.lines()
    with refused(kind, path):
        place.files.mkdir(where(path), parents=parents)
    assert place.lines() == before


def test_nothing_is_made_through_a_dangling_link(place: Place) -> None:
    place.plant(*TREE)
    before = place.lines()
    with refused(NotDirectoryError, "dangling/x"):
        place.files.mkdir(where("dangling/x"), parents=Parents.MAKE)
    with refused(MissingError, "dangling/x"):
        place.files.mkdir(where("dangling/x"), parents=Parents.REQUIRE)
    assert place.lines() == before


# Listing


@requirement("L-01")
@pytest.mark.parametrize("path", [".", "./", "d", "d/", "d/.", "to-d", "to-d/"])
def test_an_empty_directory_lists_nothing(place: Place, path: str) -> None:
    if path.startswith(("d", "to-d")):
        place.plant("d/", "to-d => d")
    assert place.files.list(where(path), limit=0) == []
    assert list(place.files.walk(where(path), NO_LIMITS)) == []


@requirement("L-02", "L-13", "L-23")
def test_a_listing_is_sorted_by_name_whatever_order_things_were_made_in(place: Place) -> None:
    made = ["b", "a", "B", "é", "a.b", "-", "10", "9", "a b", "a\nb", ".hidden", "中"]
    for name in made:
        write(place.files, name)
    place.files.mkdir(where("dir"), parents=Parents.REQUIRE)
    assert names(place.files.list(where("."), limit=None)) == sorted([*made, "dir"])


@requirement("L-09", "L-21", "L-22")
def test_a_listing_tells_about_entries_themselves_never_about_targets(place: Place) -> None:
    place.plant("d/f = 12345", "d/sub/", "d/to-f => f", "d/out => ../../outside/secret", "d/nowhere => x")
    found = place.files.list(where("d"), limit=None)
    assert [(info.path, info.kind, info.size_bytes, info.target) for info in found] == [
        ("d/f", FileKind.FILE, 5, None),
        ("d/nowhere", FileKind.LINK, 1, None),
        ("d/out", FileKind.LINK, 20, None),
        ("d/sub", FileKind.DIRECTORY, 0, None),
        ("d/to-f", FileKind.LINK, 1, None),
    ]


@requirement("P-11")
def test_a_link_out_is_listed_the_same_whether_its_target_exists(place: Place) -> None:
    place.plant("there => ../outside/secret", "gone  => ../outside/nosuch")
    found = place.files.list(where("."), limit=None)
    assert {(info.kind, info.size_bytes, info.mode) for info in found} == {(FileKind.LINK, 17, 0o777)}


def test_listed_entries_are_what_stat_says(place: Place) -> None:
    place.plant("d/f = 12345", "d/sub/", "d/to-f => f")
    for info in place.files.list(where("d"), limit=None):
        stat = place.files.stat(where(info.path), Links.KEEP)
        assert (stat.kind, stat.size_bytes, stat.mode, stat.inode, stat.modified_ns) == (
            info.kind,
            info.size_bytes,
            info.mode,
            info.inode,
            info.modified_ns,
        )


def test_the_path_asked_for_begins_every_listed_path(place: Place) -> None:
    place.plant("d/e/f", "to-e => d/e")
    for path in ("d/e", "to-e", "d/../d/e", "./d//e/"):
        assert names(place.files.list(where(path), limit=None)) == [f"{where(path).text}/f"]
        assert names(place.files.walk(where(path), NO_LIMITS)) == [f"{where(path).text}/f"]


def test_a_listing_of_exactly_the_limit_works_and_one_more_is_refused(place: Place) -> None:
    place.plant("d/a", "d/b", "d/c/")
    assert len(place.files.list(where("d"), limit=3)) == 3
    with refused(LimitError, "d", code="limit.list_entries") as caught:
        place.files.list(where("d"), limit=2)
    assert caught.value.limit == 2
    with refused(LimitError, ".", code="limit.list_entries"):
        place.files.list(where("."), limit=0)


@requirement("L-18", "L-20")
@pytest.mark.parametrize("operation", ["list", "names", "walk"])
@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("missing", MissingError),
        ("missing/..", MissingError),
        ("dangling", MissingError),
        ("f", NotDirectoryError),
        ("f/", NotDirectoryError),
        ("to-f", NotDirectoryError),
        ("f/..", NotDirectoryError),
        ("loop", LoopError),
        ("..", EscapeError),
        ("../outside", EscapeError),
        ("out", EscapeError),
        ("out/", EscapeError),
        ("out/.", EscapeError),
        ("out/dir", EscapeError),
        ("up", EscapeError),
        ("absolute", EscapeError),
    ],
)
def test_what_is_no_directory_inside_cannot_be_listed(
    place: Place, path: str, kind: type[CarrelError], operation: str
) -> None:
    place.plant(*TREE)
    with refused(kind, path):
        if operation == "list":
            place.files.list(where(path), limit=None)
        elif operation == "names":
            place.files.names(where(path), limit=None)
        else:
            place.files.walk(where(path), NO_LIMITS)


@pytest.mark.parametrize("path", [".", "d", "to-d", "d/..", "./d/"])
def test_names_are_told_with_the_kinds_that_a_listing_tells(place: Place, path: str) -> None:
    place.plant(*TREE)
    listed = place.files.list(where(path), limit=None)
    found = [each for some in place.files.names(where(path), limit=None) for each in some]
    assert sorted(found) == [(info.name, info.kind) for info in listed]


def test_names_above_the_limit_are_refused(place: Place) -> None:
    for count in range(600):
        write(place.files, f"d/f{count:03}", b"")
    assert sum(map(len, place.files.names(where("d"), limit=600))) == 600
    for limit in (599, 300, 0):
        with refused(LimitError, "d", code="limit.list_entries"):
            list(place.files.names(where("d"), limit=limit))


@requirement("L-24")
def test_a_thousand_entries_are_listed(place: Place) -> None:
    for count in range(1000):
        write(place.files, f"f{count:03}", b"")
    assert names(place.files.list(where("."), limit=1000)) == [f"f{count:03}" for count in range(1000)]


# Walking


@requirement("L-03", "L-16")
def test_a_walk_gives_parents_first_and_names_in_order(place: Place) -> None:
    place.plant("b/", "a/y/2", "a/y/1", "a/x", "a/z/", "c", "a.b")
    assert names(place.files.walk(where("."), NO_LIMITS)) == [
        "a",
        "a/x",
        "a/y",
        "a/y/1",
        "a/y/2",
        "a/z",
        "a.b",
        "b",
        "c",
    ]
    assert names(place.files.walk(where("a/y"), NO_LIMITS)) == ["a/y/1", "a/y/2"]


def test_a_walk_never_goes_through_a_link(place: Place) -> None:
    place.plant("d/f", "to-d => d", "self => .", "up => ..", "out => ../outside", "d/back => ..")
    assert names(place.files.walk(where("."), NO_LIMITS)) == [
        "d",
        "d/back",
        "d/f",
        "out",
        "self",
        "to-d",
        "up",
    ]


def test_a_walk_begins_where_a_link_leads(place: Place) -> None:
    place.plant("d/f", "to-d => d")
    assert names(place.files.walk(where("to-d"), NO_LIMITS)) == ["to-d/f"]


def test_a_walk_says_what_it_left_out_below_its_depth(place: Place) -> None:
    place.plant("a/b/c/d", "x/y", "z")
    seen: list[str] = []
    with refused(LimitError, "a/b", code="limit.depth") as caught:
        for info in place.files.walk(where("."), Limits(depth=2)):
            seen.append(info.path)
    assert seen == ["a", "a/b", "x", "x/y", "z"]
    assert caught.value.limit == 2


def test_a_walk_of_exactly_its_depth_is_complete(place: Place) -> None:
    place.plant("a/b/c")
    assert len(list(place.files.walk(where("."), Limits(depth=3)))) == 3
    assert len(list(place.files.walk(where("a"), Limits(depth=2)))) == 2


def test_a_walk_stops_at_its_limit_of_entries(place: Place) -> None:
    place.plant("a/b", "a/c", "d")
    assert len(list(place.files.walk(where("."), Limits(walk_entries=4)))) == 4
    seen: list[str] = []
    with refused(LimitError, ".", code="limit.walk_entries") as caught:
        for info in place.files.walk(where("."), Limits(walk_entries=3)):
            seen.append(info.path)
    assert seen == ["a", "a/b", "a/c"]
    assert caught.value.limit == 3


def test_a_walk_holds_every_directory_to_the_limit_of_a_listing(place: Place) -> None:
    place.plant("a/1", "a/2", "a/3", "b")
    walk = place.files.walk(where("."), Limits(list_entries=2))
    assert next(walk).path == "a"
    with refused(LimitError, "a", code="limit.list_entries"):
        next(walk)


def test_a_walk_passes_over_what_was_removed_or_swapped_meanwhile(place: Place) -> None:
    place.plant("a/in-a", "b/in-b", "c/in-c", "d/in-d", "z/in-z")
    seen: list[str] = []
    for info in place.files.walk(where("."), NO_LIMITS):
        seen.append(info.path)
        if info.path == "a":
            place.files.remove_tree(where("b"))
            place.files.move(where("c"), where("gone"), existing=Existing.REFUSE)
            place.files.link(where("c"), "z")
            place.files.move(where("d"), where("c2"), existing=Existing.REFUSE)
            write(place.files, "d")
    assert seen == ["a", "a/in-a", "b", "c", "d", "z", "z/in-z"]


def test_a_walk_ends_in_a_directory_that_is_removed_under_it(place: Place) -> None:
    place.plant("a/b/c/f", "a/b/d/f", "z")
    seen: list[str] = []
    for info in place.files.walk(where("."), NO_LIMITS):
        seen.append(info.path)
        if info.path == "a/b/c":
            place.files.remove_tree(where("a"))
    assert seen == ["a", "a/b", "a/b/c", "a/b/d", "z"]


def test_a_walk_goes_on_after_the_place_was_closed(place: Place) -> None:
    place.plant("a/b/c")
    walk = place.files.walk(where("."), NO_LIMITS)
    first = next(walk).path
    place.files.close()
    assert [first, *names(walk)] == ["a", "a/b", "a/b/c"]


def test_a_deep_tree_is_walked_and_removed(place: Place) -> None:
    depth = 400
    for start in range(0, depth, 100):
        place.files.mkdir(where("d/" * (start + 100)), parents=Parents.MAKE)
    assert len(list(place.files.walk(where("."), NO_LIMITS))) == depth
    place.files.remove_tree(where("d"))
    assert place.lines() == []
