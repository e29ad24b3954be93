"""`append` and `copy`, the same behind every implementation."""

from __future__ import annotations

import pytest

from carrel.errors import (
    CarrelError,
    EscapeError,
    ExistsError,
    IsDirectoryError,
    LimitError,
    LoopError,
    MissingError,
    NotDirectoryError,
)
from carrel.fs.api import Existing, Links
from tests.contract.places import Place, read, refused, where, write
from tests.contract.refusals import REFUSED, TREE
from tests.requirements import requirement

# Appending


@requirement("W-12")
@pytest.mark.parametrize("path", ["f", "to-f", "d/../f"])
def test_append_adds_to_the_end_and_tells_both_sizes(place: Place, path: str) -> None:
    place.plant("f = Line 1\n", "to-f => f", "d/")
    inode = place.files.stat(where("f"), Links.FOLLOW).inode
    change = place.files.append(where(path), b"Line 2\n", limit=None)
    assert read(place.files, "f") == b"Line 1\nLine 2\n"
    assert (change.before_bytes, change.info.size_bytes, change.info.path) == (7, 14, path)
    assert change.info.inode == inode


def test_appending_nothing_changes_nothing(place: Place) -> None:
    place.plant("f = text")
    before = place.files.stat(where("f"), Links.FOLLOW)
    assert place.files.append(where("f"), b"", limit=None).info == before


def test_append_stops_at_the_limit_of_a_file(place: Place) -> None:
    place.plant("f = 12345")
    place.files.append(where("f"), b"67", limit=7)
    with refused(LimitError, "f", code="limit.file_bytes") as caught:
        place.files.append(where("f"), b"8", limit=7)
    assert (caught.value.limit, caught.value.asked) == (7, 8)
    assert read(place.files, "f") == b"1234567"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("missing", MissingError),
        ("missing/f", MissingError),
        ("to-new", MissingError),
        ("d", IsDirectoryError),
        ("d/", IsDirectoryError),
        (".", IsDirectoryError),
        ("f/", NotDirectoryError),
        ("f/x", NotDirectoryError),
        ("loop", LoopError),
        ("../outside/secret", EscapeError),
        ("out", EscapeError),
        ("out-new", EscapeError),
        ("out-dir/secret", EscapeError),
        ("absolute", EscapeError),
    ],
)
def test_an_append_that_cannot_be_changes_nothing(place: Place, path: str, kind: type[CarrelError]) -> None:
    place.plant(*TREE)
    before = place.lines()
    with refused(kind, path):
        place.files.append(where(path), b"more", limit=None)
    assert place.lines() == before


# Copying


@pytest.mark.parametrize("existing", Existing)
def test_a_copy_has_the_content_and_the_mode_and_makes_parents(place: Place, existing: Existing) -> None:
    write(place.files, "f", b"text", mode=0o640)
    change = place.files.copy(where("f"), where("a/b/g"), existing=existing, limit=None)
    assert place.lines() == ["a/", "a/b/", "a/b/g = text", "f = text"]
    assert (change.before_bytes, change.made) == (None, ("a", "a/b"))
    assert (change.info.path, change.info.size_bytes, change.info.mode) == ("a/b/g", 4, 0o640)
    assert change.info.inode != place.files.stat(where("f"), Links.FOLLOW).inode


def test_a_copy_over_a_file_keeps_its_mode_and_tells_its_size(place: Place) -> None:
    write(place.files, "f", b"text", mode=0o640)
    write(place.files, "g", b"longer than that", mode=0o755)
    change = place.files.copy(where("f"), where("g"), existing=Existing.REPLACE, limit=None)
    assert (change.before_bytes, change.info.size_bytes, change.info.mode) == (16, 4, 0o755)


def test_a_copy_follows_links_at_both_ends(place: Place) -> None:
    place.plant("f = text", "g = old", "from => f", "to => g")
    place.files.copy(where("from"), where("to"), existing=Existing.REPLACE, limit=None)
    assert place.lines() == ["f = text", "from => f", "g = text", "to => g"]


def test_a_copy_onto_itself_keeps_the_content(place: Place) -> None:
    place.plant("f = text", "l => f")
    place.files.copy(where("f"), where("l"), existing=Existing.REPLACE, limit=None)
    assert place.lines() == ["f = text", "l => f"]


def test_a_copy_of_an_empty_file_is_empty(place: Place) -> None:
    place.plant("f = ")
    assert place.files.copy(where("f"), where("g"), existing=Existing.REFUSE, limit=0).info.size_bytes == 0


@pytest.mark.parametrize("line", ["g = old", "g/", "g => nothing", "g => f"])
def test_a_copy_does_not_overwrite_unless_asked(place: Place, line: str) -> None:
    place.plant("f = text", line)
    before = place.lines()
    with refused(ExistsError, "g"):
        place.files.copy(where("f"), where("g"), existing=Existing.REFUSE, limit=None)
    assert place.lines() == before


def test_a_copy_past_the_limit_of_a_file_makes_nothing(place: Place) -> None:
    place.plant("f = 12345")
    with refused(LimitError, "f", code="limit.file_bytes") as caught:
        place.files.copy(where("f"), where("a/g"), existing=Existing.REFUSE, limit=4)
    assert (caught.value.limit, caught.value.asked) == (4, 5)
    place.files.copy(where("f"), where("a/g"), existing=Existing.REFUSE, limit=5)
    assert place.lines() == ["a/", "a/g = 12345", "f = 12345"]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("missing", MissingError),
        ("d", IsDirectoryError),
        (".", IsDirectoryError),
        ("f/", NotDirectoryError),
        ("loop", LoopError),
        ("out", EscapeError),
        ("../outside/secret", EscapeError),
    ],
)
def test_a_copy_from_what_is_no_file_inside_makes_nothing(
    place: Place, path: str, kind: type[CarrelError]
) -> None:
    place.plant(*TREE)
    before = place.lines()
    with refused(kind, path):
        place.files.copy(where(path), where("n1/copy"), existing=Existing.REFUSE, limit=None)
    assert place.lines() == before


@pytest.mark.parametrize(("path", "kind"), REFUSED)
def test_a_copy_to_where_nothing_can_be_written_changes_nothing(
    place: Place, path: str, kind: type[CarrelError]
) -> None:
    place.plant(*TREE, "source = text")
    before = place.lines()
    with refused(kind, path):
        place.files.copy(where("source"), where(path), existing=Existing.REPLACE, limit=None)
    assert place.lines() == before
