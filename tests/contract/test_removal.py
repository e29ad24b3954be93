"""`remove`, `remove_tree` and `move`, the same behind every implementation."""

from __future__ import annotations

import pytest

from carrel.errors import (
    CarrelError,
    EscapeError,
    ExistsError,
    IntoItselfError,
    IsDirectoryError,
    LoopError,
    MissingError,
    NotDirectoryError,
    NotEmptyError,
    PathError,
)
from carrel.fs.api import Existing, Links
from carrel.values import FileInfo, FileKind
from tests.contract.places import Place, refused, where, write
from tests.requirements import requirement

TREE = (
    "f = text",
    "empty/",
    "full/g = inside",
    "to-f => f",
    "to-full => full",
    "dangling => nothing",
    "loop => loop",
    "out => ../outside/secret",
    "out-dir => ../outside",
    "absolute => /nonexistent/secret",
    "up => ..",
)
NO_NAME: list[tuple[str, type[CarrelError]]] = [
    (".", PathError),
    ("./", PathError),
    ("full/.", PathError),
    ("full/..", PathError),
    ("full/../", PathError),
    ("missing/.", PathError),
    ("to-full/.", PathError),
    ("..", EscapeError),
    ("../.", EscapeError),
    ("full/../..", EscapeError),
    ("out-dir/.", EscapeError),
]
UNREACHABLE: list[tuple[str, type[CarrelError]]] = [
    ("missing", MissingError),
    ("missing/", MissingError),
    ("missing/x", MissingError),
    ("full/missing", MissingError),
    ("dangling/x", MissingError),
    ("f/x", NotDirectoryError),
    ("f/", NotDirectoryError),
    ("to-f/", NotDirectoryError),
    ("to-full/", NotDirectoryError),
    ("out-dir/", NotDirectoryError),
    ("loop/x", LoopError),
    ("../outside/secret", EscapeError),
    ("../ws/f", EscapeError),
    ("out-dir/secret", EscapeError),
    ("up/outside", EscapeError),
    ("up/ws/f", EscapeError),
    ("full/../../outside/secret", EscapeError),
]


# Removing


@requirement("D-01", "D-02", "D-05", "D-10", "P-12", "P-13")
@pytest.mark.parametrize("operation", ["remove", "remove_tree"])
@pytest.mark.parametrize(
    ("path", "kind", "gone"),
    [
        ("f", FileKind.FILE, "f = text"),
        ("full/g", FileKind.FILE, "full/g = inside"),
        ("to-full/g", FileKind.FILE, "full/g = inside"),
        ("full/../f", FileKind.FILE, "f = text"),
        ("empty", FileKind.DIRECTORY, "empty/"),
        ("empty/", FileKind.DIRECTORY, "empty/"),
        ("to-f", FileKind.LINK, "to-f => f"),
        ("to-full", FileKind.LINK, "to-full => full"),
        ("dangling", FileKind.LINK, "dangling => nothing"),
        ("loop", FileKind.LINK, "loop => loop"),
        ("out", FileKind.LINK, "out => ../outside/secret"),
        ("out-dir", FileKind.LINK, "out-dir => ../outside"),
        ("absolute", FileKind.LINK, "absolute => /nonexistent/secret"),
        ("up", FileKind.LINK, "up => .."),
    ],
)
def test_one_entry_goes_and_nothing_else(
    place: Place, operation: str, path: str, kind: FileKind, gone: str
) -> None:
    place.plant(*TREE)
    before = place.lines()
    expected = place.files.stat(where(path), Links.KEEP)
    info = _remove(place, operation, path)
    assert (info.path, info.kind, info.inode, info.size_bytes) == (
        where(path).text,
        kind,
        expected.inode,
        expected.size_bytes,
    )
    assert place.lines() == [line for line in before if line != gone]


@requirement("D-03", "D-10")
@pytest.mark.parametrize("path", ["full", "full/"])
def test_a_directory_with_content_is_not_removed_by_chance(place: Place, path: str) -> None:
    place.plant(*TREE)
    before = place.lines()
    with refused(NotEmptyError, path):
        place.files.remove(where(path))
    assert place.lines() == before


@requirement("D-04")
def test_a_tree_goes_with_everything_in_it_and_nothing_behind_its_links(place: Place) -> None:
    place.plant(
        "t/a/b/c/f", "t/a/f", "t/out => ../../outside", "t/keep => ../keep", "keep/f", "t/e/", "t/l => l"
    )
    info = place.files.remove_tree(where("t"))
    assert (info.path, info.kind) == ("t", FileKind.DIRECTORY)
    assert place.lines() == ["keep/", "keep/f = in"]


def test_a_removed_name_can_be_used_again(place: Place) -> None:
    place.plant("x/f")
    place.files.remove_tree(where("x"))
    write(place.files, "x", b"file now")
    place.files.remove(where("x"))
    write(place.files, "x/f", b"again")
    assert place.lines() == ["x/", "x/f = again"]


@requirement("D-06", "D-07", "D-08")
@pytest.mark.parametrize("operation", ["remove", "remove_tree"])
@pytest.mark.parametrize(("path", "kind"), [*NO_NAME, *UNREACHABLE])
def test_a_removal_that_cannot_be_changes_nothing(
    place: Place, operation: str, path: str, kind: type[CarrelError]
) -> None:
    place.plant(*TREE)
    before = place.lines()
    with refused(kind, path):
        _remove(place, operation, path)
    assert place.lines() == before


def _remove(place: Place, operation: str, path: str) -> FileInfo:
    return place.files.remove(where(path)) if operation == "remove" else place.files.remove_tree(where(path))


# Moving


@pytest.mark.parametrize("existing", Existing)
@pytest.mark.parametrize(
    ("source", "target", "removed", "added"),
    [
        ("f", "new", {"f = text"}, {"new = text"}),
        ("f", "full/new", {"f = text"}, {"full/new = text"}),
        ("full/g", "g", {"full/g = inside"}, {"g = inside"}),
        ("full/g", "to-full/h", {"full/g = inside"}, {"full/h = inside"}),
        ("full/../f", "./new", {"f = text"}, {"new = text"}),
        ("full", "new", {"full/", "full/g = inside"}, {"new/", "new/g = inside"}),
        ("full/", "new/", {"full/", "full/g = inside"}, {"new/", "new/g = inside"}),
        ("full", "empty/in", {"full/", "full/g = inside"}, {"empty/in/", "empty/in/g = inside"}),
        ("to-f", "new", {"to-f => f"}, {"new => f"}),
        ("dangling", "new", {"dangling => nothing"}, {"new => nothing"}),
        ("loop", "new", {"loop => loop"}, {"new => loop"}),
        ("out", "full/new", {"out => ../outside/secret"}, {"full/new => ../outside/secret"}),
        ("absolute", "new", {"absolute => /nonexistent/secret"}, {"new => /nonexistent/secret"}),
    ],
)
def test_a_move_changes_the_name_and_nothing_else(
    place: Place, source: str, target: str, removed: set[str], added: set[str], existing: Existing
) -> None:
    place.plant(*TREE)
    before = set(place.lines())
    old = place.files.stat(where(source), _kept(source))
    info = place.files.move(where(source), where(target), existing=existing)
    assert (info.path, info.kind, info.inode, info.size_bytes) == (
        where(source).text,
        old.kind,
        old.inode,
        old.size_bytes,
    )
    assert set(place.lines()) == (before - removed) | added
    new = place.files.stat(where(target), _kept(target))
    assert (new.inode, new.modified_ns, new.mode) == (old.inode, old.modified_ns, old.mode)


def _kept(path: str) -> Links:
    return Links.FOLLOW if path.endswith("/") else Links.KEEP


@pytest.mark.parametrize(
    "target", ["f", "full/g", "empty", "full", "to-f", "dangling", "loop", "out", "absolute"]
)
def test_a_move_does_not_overwrite_unless_asked(place: Place, target: str) -> None:
    place.plant(*TREE, "source = mine")
    before = place.lines()
    with refused(ExistsError, target):
        place.files.move(where("source"), where(target), existing=Existing.REFUSE)
    assert place.lines() == before


@pytest.mark.parametrize("target", ["f", "full/g", "to-f", "to-full", "dangling", "loop", "out", "absolute"])
def test_a_move_over_a_file_or_a_link_replaces_just_that(place: Place, target: str) -> None:
    place.plant(*TREE, "source = mine")
    before = place.lines()
    place.files.move(where("source"), where(target), existing=Existing.REPLACE)
    old = next(line for line in before if line.startswith((f"{target} = ", f"{target} => ")))
    assert place.lines() == sorted({*before, f"{target} = mine"} - {old, "source = mine"})


def test_a_directory_replaces_an_empty_one(place: Place) -> None:
    place.plant(*TREE)
    place.files.move(where("full"), where("empty"), existing=Existing.REPLACE)
    assert {"empty/", "empty/g = inside"} <= set(place.lines())
    assert "full/" not in place.lines()


@pytest.mark.parametrize(
    ("source", "target", "kind"),
    [
        ("empty", "full", NotEmptyError),
        ("full/g", "full", NotEmptyError),
        ("f", "empty", IsDirectoryError),
        ("to-f", "full", IsDirectoryError),
        ("full", "f", NotDirectoryError),
        ("full", "to-full", NotDirectoryError),
        ("full", "full/in", IntoItselfError),
        ("full", "full/missing/in", MissingError),
        ("full", "to-full/in", IntoItselfError),
        ("f", "new/", NotDirectoryError),
        ("f", "empty/", NotDirectoryError),
        ("to-full", "new/", NotDirectoryError),
        ("f", "missing/new", MissingError),
        ("f", "f/new", NotDirectoryError),
        ("f", "loop/new", LoopError),
        ("f", "../new", EscapeError),
        ("f", "../ws/new", EscapeError),
        ("f", "out-dir/new", EscapeError),
        ("f", "up/new", EscapeError),
        ("f", "..", EscapeError),
        ("f", ".", PathError),
        ("f", "full/.", PathError),
        ("f", "full/..", PathError),
    ],
)
def test_a_move_to_where_it_cannot_go_changes_nothing(
    place: Place, source: str, target: str, kind: type[CarrelError]
) -> None:
    place.plant(*TREE)
    before = place.lines()
    with refused(kind, target):
        place.files.move(where(source), where(target), existing=Existing.REPLACE)
    assert place.lines() == before


@pytest.mark.parametrize("existing", Existing)
@pytest.mark.parametrize(("path", "kind"), [*NO_NAME, *UNREACHABLE])
def test_a_move_of_what_cannot_be_moved_changes_nothing(
    place: Place, path: str, kind: type[CarrelError], existing: Existing
) -> None:
    place.plant(*TREE)
    before = place.lines()
    with refused(kind, path):
        place.files.move(where(path), where("new"), existing=existing)
    assert place.lines() == before


@pytest.mark.parametrize("path", ["f", "full", "to-f", "loop"])
def test_a_move_onto_itself_changes_nothing(place: Place, path: str) -> None:
    place.plant(*TREE)
    before = place.lines()
    place.files.move(where(path), where(path), existing=Existing.REPLACE)
    with refused(ExistsError, path):
        place.files.move(where(path), where(path), existing=Existing.REFUSE)
    assert place.lines() == before


def test_a_taken_name_is_told_before_a_move_into_itself(place: Place) -> None:
    place.plant("d/e/")
    with refused(ExistsError, "d/e"):
        place.files.move(where("d"), where("d/e"), existing=Existing.REFUSE)


def test_a_directory_does_not_replace_the_one_above_it(place: Place) -> None:
    place.plant("d/e/f/")
    with refused(NotEmptyError, "d"):
        place.files.move(where("d/e/f"), where("d"), existing=Existing.REPLACE)
    with refused(NotEmptyError, "d/e"):
        place.files.move(where("d/e/f"), where("d/e"), existing=Existing.REPLACE)
    assert place.lines() == ["d/", "d/e/", "d/e/f/"]
