"""Session ids: one rule, the same at every door, and nothing on the disk for a refused one (section C)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from carrel.errors import SessionExistsError, SessionIdError
from carrel.paths.session_id import require_session_id
from carrel.sessions import functions as module
from carrel.sessions.functions import (
    delete_session_path,
    list_session_files,
    read_session_file,
    write_session_file,
)
from carrel.sessions.manager import WorkspaceManager
from tests.attack.guards import require_silence
from tests.attack.world import look
from tests.requirements import requirement

pytestmark = pytest.mark.attack

ACCEPTED = [
    "abc-123",
    "0b5c2f9e-7a3e-4d0b-9d51-6f6a1c2d3e4f",
    "user_abc",
    "x" * 128,
    "session.1",
    "ABC",
    "session-123",
    "_",
    "a.b.c",
    "1",
    "CONSOLE",
    "com0",
    "default",
]
REFUSED: list[object] = [
    "x" * 129,
    "",
    ".",
    "..",
    "...",
    "../invalid",
    "../etc",
    "..\\etc",
    "../escape",
    "foo/bar",
    "foo\\bar",
    "a/b",
    "a\\b",
    "a/",
    "/",
    "/etc",
    ".hidden",
    ".hidden-session",
    ".carrel",
    "-rf",
    "session..test",
    "session/../etc",
    "session.",
    "a..b",
    "session;rm -rf",
    "abc\n",
    "\nabc",
    "abc\r",
    "we ird\n",
    "a b",
    " a",
    "a\x00b",
    "a\x1b[2J",
    "a\x7f",
    "é",
    "e\u0301",
    "ａbc",
    "a\u200cb",
    "a\u202eb",
    "\ufeffa",
    "\ud800",
    "\udcff",
    "CON",
    "con",
    "NUL.txt",
    "COM1",
    "lpt9.log",
    "a:b",
    "a$b",
    "a*b",
    "a~b",
    "%2e%2e",
    "٣",
    "１",
    None,
    b"abc",
    7,
    True,
    1.5,
    ["abc"],
    Path("abc"),
]
SEPARATED = [text for text in REFUSED if isinstance(text, str) and ("/" in text or "\\" in text)]

Door = Callable[[Path, Any], object]  # Any: what is no id, on purpose

DOORS: dict[str, Door] = {
    "require_session_id": lambda root, name: require_session_id(name),
    "Sessions.create": lambda root, name: WorkspaceManager(root).create(name),
    "Sessions.open": lambda root, name: WorkspaceManager(root).open(name),
    "Sessions.ensure": lambda root, name: WorkspaceManager(root).get_workspace(name),
    "a generated id": lambda root, name: WorkspaceManager(root).create(make_id=lambda: name),
    "list_session_files": lambda root, name: list_session_files(name, root),
    "read_session_file": lambda root, name: read_session_file(name, "f", root),
    "write_session_file": lambda root, name: write_session_file(name, "f", b"new", root),
    "delete_session_path": lambda root, name: delete_session_path(name, "f", root),
    "delete_session_path, recursive": lambda root, name: delete_session_path(name, "f", root, recursive=True),
    "_validate_session_path": lambda root, name: module._validate_session_path(name, "f", root),
}


@pytest.fixture
def store(place: Path) -> Path:
    """A sessions directory with one session, and a directory of the same owner beside it."""
    (place / "etc").mkdir()
    write_session_file("mine", "f", b"in", place / "store")
    return place / "store"


@requirement("ID-04", "ID-05", "ID-06", "ID-07", "ID-08", "ID-09", "ID-13", "ID-14")
@pytest.mark.parametrize("name", REFUSED, ids=ascii)
def test_a_bad_id_is_refused_at_every_door_and_leaves_nothing(name: object, store: Path) -> None:
    before = look(store.parent)
    for door, enter in DOORS.items():
        if name is None and door == "Sessions.create":
            continue  # without an id, one is made
        with pytest.raises(SessionIdError) as caught:
            enter(store, name)
        require_silence(caught.value, (str(store), str(store.parent)), (str(name),))
        assert look(store.parent) == before, f"{door} left something"


@pytest.mark.parametrize("door", [name for name in DOORS if name.endswith(("file", "files", "path"))])
def test_a_bad_id_does_not_even_make_the_sessions_directory(door: str, place: Path) -> None:
    for name in ("../escape", "", "a..b", ".hidden", None, b"abc"):
        with pytest.raises(SessionIdError):
            DOORS[door](place / "none", name)
    assert not any(place.iterdir())


@requirement("ID-04", "ID-05")
@pytest.mark.parametrize("name", SEPARATED, ids=ascii)
def test_an_id_with_a_separator_is_told_so(name: str) -> None:
    with pytest.raises(ValueError, match=r"must not contain path separators|too long"):
        require_session_id(name)


@requirement("ID-08")
def test_an_id_that_is_too_long_is_told_the_limit_and_not_repeated() -> None:
    with pytest.raises(ValueError, match=r"too long \(max 128 chars\)") as caught:
        require_session_id("x" * 100_000)
    assert len(str(caught.value)) < 200


@requirement("ID-08", "ID-09", "ID-13")
@pytest.mark.parametrize("name", ACCEPTED)
def test_a_good_id_opens_every_door(name: str, place: Path) -> None:
    root = place / "store"
    assert require_session_id(name) == name
    WorkspaceManager(root).create(name).close()
    WorkspaceManager(root).open(name).close()
    WorkspaceManager(root).get_workspace(name).close()
    write_session_file(name, "f", b"in", root)
    assert list_session_files(name, root) == ["f"]
    assert read_session_file(name, "f", root) == b"in"
    assert module._validate_session_path(name, "f", root) == root / name / "f"
    delete_session_path(name, "f", root)
    assert sorted(entry.name for entry in root.iterdir()) == sorted([".carrel", name])


def test_ids_that_differ_in_case_alone_do_not_share_files_on_any_disk(place: Path) -> None:
    write_session_file("abc", "f", b"small", place / "store")
    with pytest.raises(SessionExistsError, match="spelled in another case"):
        write_session_file("ABC", "f", b"large", place / "store")
    assert read_session_file("abc", "f", place / "store") == b"small"
    assert sorted(os.listdir(place / "store")) == [".carrel", "abc"]
    assert os.listdir(place / "store/.carrel/sessions") == ["abc"]


class Liar(str):
    """Says that it is somebody else, whoever asks."""

    def __str__(self) -> str:
        return "mine"

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash("mine")

    def __contains__(self, part: object) -> bool:
        return False

    def __len__(self) -> int:
        return 4


@pytest.mark.parametrize("door", DOORS)
def test_an_id_that_lies_about_itself_is_judged_by_its_characters(door: str, store: Path) -> None:
    before = look(store.parent)
    with pytest.raises(SessionIdError):
        DOORS[door](store, Liar("../etc"))
    assert look(store.parent) == before
