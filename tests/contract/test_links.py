"""`link`, the same behind every implementation."""

from __future__ import annotations

import pytest

from carrel.errors import (
    CarrelError,
    EscapeError,
    ExistsError,
    IsDirectoryError,
    LoopError,
    MissingError,
    NotDirectoryError,
    PathError,
)
from carrel.fs.api import Existing, Links
from carrel.values import FileKind
from tests.contract.places import Place, read, refused, where, write

TREE = ("f = text", "d/e/", "to-d => d", "dangling => nothing", "loop => loop", "out => ../outside")


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("new", "f"),
        ("new", "./f"),
        ("new", "nothing/there"),
        ("new", "d/"),
        ("new", "."),
        ("new", "new"),
        ("new", "d/../f"),
        ("new", "a\\b"),
        ("d/new", "../f"),
        ("d/e/new", "../../f"),
        ("to-d/new", "../f"),
        ("d/../new", "f"),
        ("new", "é" * 100),
        ("new", "caf\udce9"),
    ],
)
def test_a_link_keeps_its_text_as_it_was_given(place: Place, path: str, target: str) -> None:
    place.plant(*TREE)
    place.files.link(where(path), target)
    info = place.files.stat(where(path), Links.KEEP)
    assert (info.kind, info.target) == (FileKind.LINK, target)
    assert info.size_bytes == len(target.encode("utf-8", "surrogateescape"))


def test_a_link_that_was_made_can_be_read_and_written_through(place: Place) -> None:
    place.plant(*TREE)
    place.files.link(where("d/l"), "../f")
    assert read(place.files, "d/l") == b"text"
    write(place.files, "d/l", b"through")
    assert read(place.files, "f") == b"through"


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("new", "/etc/passwd"),
        ("new", "/"),
        ("new", ".."),
        ("new", "../outside"),
        ("new", "d/../../outside"),
        ("new", "../ws/f"),
        ("d/new", "../.."),
        ("d/new", "../../ws/f"),
        ("d/e/new", "../../../x"),
    ],
)
def test_a_link_that_would_lead_out_is_not_made(place: Place, path: str, target: str) -> None:
    place.plant(*TREE)
    before = place.lines()
    with refused(EscapeError, path):
        place.files.link(where(path), target)
    assert place.lines() == before


@pytest.mark.parametrize("target", ["", "a\0b", "x" * 4096, "x" * 256, "\ud800"])
def test_a_text_that_no_path_may_hold_is_refused(place: Place, target: str) -> None:
    with refused(PathError, "new"):
        place.files.link(where("new"), target)
    assert place.lines() == []


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("f", ExistsError),
        ("f/", ExistsError),
        ("d", ExistsError),
        ("to-d", ExistsError),
        ("dangling", ExistsError),
        ("loop", ExistsError),
        ("out", ExistsError),
        ("new/", MissingError),
        ("missing/new", MissingError),
        ("dangling/new", MissingError),
        ("f/new", NotDirectoryError),
        ("loop/new", LoopError),
        (".", PathError),
        ("d/.", PathError),
        ("d/..", PathError),
        ("out/new", EscapeError),
    ],
)
def test_a_link_cannot_be_made_there(place: Place, path: str, kind: type[CarrelError]) -> None:
    place.plant(*TREE)
    before = place.lines()
    with refused(kind, path):
        place.files.link(where(path), "f")
    assert place.lines() == before


@pytest.mark.parametrize("path", ["new", "f", "to-d", "dangling", "loop", "out", "d/../f"])
def test_a_link_replaces_a_file_or_a_link_when_asked(place: Place, path: str) -> None:
    place.plant(*TREE)
    before = place.lines()
    place.files.link(where(path), "d/e", existing=Existing.REPLACE)
    assert place.files.stat(where(path), Links.KEEP).target == "d/e"
    name = where(path).parts[-1]
    assert [line for line in place.lines() if not line.startswith(name + " ")] == [
        line for line in before if not line.startswith(name + " ")
    ]


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("d", IsDirectoryError),
        ("d/e", IsDirectoryError),
        ("d/", NotDirectoryError),
        ("f/", NotDirectoryError),
        ("to-d/", NotDirectoryError),
        ("new/", NotDirectoryError),
        ("missing/new", MissingError),
        (".", PathError),
        ("out/new", EscapeError),
    ],
)
def test_a_link_replaces_nothing_but_a_file_or_a_link(
    place: Place, path: str, kind: type[CarrelError]
) -> None:
    place.plant(*TREE)
    before = place.lines()
    with refused(kind, path):
        place.files.link(where(path), "f", existing=Existing.REPLACE)
    assert place.lines() == before


@pytest.mark.parametrize("path", ["..", "../new", "d/../../new"])
def test_a_link_cannot_be_made_outside(place: Place, path: str) -> None:
    place.plant(*TREE)
    with refused(EscapeError, path):
        place.files.link(where(path), "d/e/x")
