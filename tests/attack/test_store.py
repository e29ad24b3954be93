"""The sessions directory, and what somebody else may have put into it (E5 to E7)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from carrel.errors import CarrelError, SessionExistsError, UnavailableError
from carrel.sessions import functions as module
from carrel.sessions.functions import (
    delete_session_path,
    list_session_files,
    read_session_file,
    write_session_file,
)
from carrel.sessions.manager import WorkspaceManager
from carrel.testing import tree
from tests.attack.guards import require_silence
from tests.attack.privilege import IS_ROOT, NOBODY, missing
from tests.attack.world import MARKER, look
from tests.requirements import requirement

pytestmark = pytest.mark.attack

Call = Callable[[Path], object]

REOPENING: dict[str, Call] = {
    "Sessions.open": lambda store: WorkspaceManager(store).open("mine"),
    "Sessions.ensure": lambda store: WorkspaceManager(store).get_workspace("mine"),
    "list_session_files": lambda store: list_session_files("mine", store),
    "read_session_file": lambda store: read_session_file("mine", "secret", store),
    "write_session_file": lambda store: write_session_file("mine", "new", b"new", store),
    "write over": lambda store: write_session_file("mine", "secret", b"new", store),
    "delete_session_path": lambda store: delete_session_path("mine", "secret", store),
    "delete recursively": lambda store: delete_session_path("mine", "dir", store, recursive=True),
    "_validate_session_path": lambda store: module._validate_session_path("mine", "secret", store),
}


@pytest.fixture
def store(place: Path) -> Path:
    """A sessions directory with the session `mine`, and an outside with a secret."""
    tree(place, f"outside/secret = {MARKER}", f"outside/dir/secret = {MARKER}")
    write_session_file("mine", "f", b"in", place / "store")
    return place / "store"


def _become_a_link(session: Path, store: Path) -> None:
    session.symlink_to(store.parent / "outside")


def _become_a_relative_link(session: Path, store: Path) -> None:
    session.symlink_to("../outside")


def _become_a_link_to_a_sibling(session: Path, store: Path) -> None:
    write_session_file("other", "secret", MARKER, store)
    session.symlink_to("other")


def _become_a_dangling_link(session: Path, store: Path) -> None:
    session.symlink_to(store.parent / "made-by-accident")


def _become_a_loop(session: Path, store: Path) -> None:
    session.symlink_to("mine")


def _become_a_link_to_our_state(session: Path, store: Path) -> None:
    session.symlink_to(".carrel")


def _become_a_file(session: Path, store: Path) -> None:
    session.write_text(MARKER)


def _become_a_pipe(session: Path, store: Path) -> None:
    os.mkfifo(session)


def _become_somebody_elses(session: Path, store: Path) -> None:
    if not IS_ROOT:
        missing("root, to give a directory away")
    shutil.copytree(store.parent / "outside", session)
    os.chown(session, NOBODY, NOBODY)


CHANGES = [
    _become_a_link,
    _become_a_relative_link,
    _become_a_link_to_a_sibling,
    _become_a_dangling_link,
    _become_a_loop,
    _become_a_link_to_our_state,
    _become_a_file,
    _become_a_pipe,
    pytest.param(_become_somebody_elses, marks=pytest.mark.root),
]


@requirement("ID-17", "ID-18")
@pytest.mark.parametrize("change", CHANGES)
def test_a_session_that_is_no_directory_of_ours_any_more_is_refused(
    change: Callable[[Path, Path], None], store: Path
) -> None:
    """E5: between any two calls that open it by name."""
    shutil.rmtree(store / "mine")
    change(store / "mine", store)
    before = look(store.parent)
    for call in REOPENING.values():
        with pytest.raises(UnavailableError) as caught:
            call(store)
        require_silence(caught.value, (str(store.parent), MARKER), ())
    assert look(store.parent) == before


@requirement("ID-17")
def test_a_link_in_place_of_a_session_is_called_one(store: Path) -> None:
    """E5."""
    shutil.rmtree(store / "mine")
    _become_a_link(store / "mine", store)
    with pytest.raises(UnavailableError, match=r"Workspace is a symlink \(potential attack\)"):
        WorkspaceManager(store).open("mine")


@requirement("ID-18")
def test_a_file_in_place_of_a_session_is_called_no_directory(store: Path) -> None:
    """E5."""
    shutil.rmtree(store / "mine")
    _become_a_file(store / "mine", store)
    with pytest.raises(UnavailableError, match="exists but is not a directory"):
        WorkspaceManager(store).open("mine")


@pytest.mark.parametrize("change", CHANGES)
def test_a_session_is_never_made_from_what_is_there(
    change: Callable[[Path, Path], None], store: Path
) -> None:
    """E7: a name that is taken is an error, be it an empty directory of our own."""
    shutil.rmtree(store / "mine")
    change(store / "mine", store)
    before = look(store.parent)
    with pytest.raises(SessionExistsError):
        WorkspaceManager(store).create("mine")
    assert look(store.parent) == before


def test_a_session_is_not_made_twice(store: Path) -> None:
    """E7."""
    sessions = WorkspaceManager(store)
    (store / "empty").mkdir()
    for name in ("mine", "empty"):
        with pytest.raises(SessionExistsError):
            sessions.create(name)


def _is_a_link(root: Path) -> None:
    tree(root.parent, "real/")
    root.symlink_to("real")


def _is_a_dangling_link(root: Path) -> None:
    root.symlink_to("nothing")


def _is_a_file(root: Path) -> None:
    root.write_bytes(b"in")


def _is_open_to_the_group(root: Path) -> None:
    root.mkdir()
    root.chmod(0o770)


def _is_open_to_all(root: Path) -> None:
    root.mkdir()
    root.chmod(0o777)


def _is_open_and_sticky(root: Path) -> None:
    root.mkdir()
    root.chmod(0o1777)


def _is_somebody_elses(root: Path) -> None:
    if not IS_ROOT:
        missing("root, to give a directory away")
    root.mkdir()
    os.chown(root, NOBODY, NOBODY)


@pytest.mark.parametrize(
    "squat",
    [
        _is_a_link,
        _is_a_dangling_link,
        _is_a_file,
        _is_open_to_the_group,
        _is_open_to_all,
        _is_open_and_sticky,
        pytest.param(_is_somebody_elses, marks=pytest.mark.root),
    ],
)
def test_a_sessions_directory_that_others_may_have_prepared_is_refused(
    squat: Callable[[Path], None], place: Path
) -> None:
    """E6: nothing is made in it, nor where it leads."""
    squat(place / "store")
    before = look(place)
    for call in (*REOPENING.values(), WorkspaceManager):
        with pytest.raises(UnavailableError) as caught:
            call(place / "store")
        require_silence(caught.value, (str(place),), ())
        assert look(place) == before


@pytest.mark.parametrize(
    "state",
    [
        [".carrel => ../outside"],
        [".carrel => nothing"],
        [".carrel"],
        [".carrel/sessions/", ".carrel/trash => ../../outside"],
        [".carrel/trash/", ".carrel/sessions => ../../outside"],
        [".carrel/trash/", ".carrel/sessions/mine => ../../../outside"],
        [".carrel/trash/", ".carrel/sessions/mine"],
        [".carrel/trash/", ".carrel/sessions/mine/ledger => ../../../../outside/secret"],
        [".carrel/trash/", ".carrel/sessions/mine/ledger => ../../../../outside/new"],
        [".carrel/trash/", ".carrel/sessions/mine/lease => ../../../../outside/secret"],
    ],
    ids=str,
)
def test_state_that_others_may_have_prepared_is_refused(state: list[str], place: Path) -> None:
    """E6: what is ours lies in the sessions directory itself, not where a link leads."""
    tree(place, f"outside/secret = {MARKER}")
    tree(place / "store", "mine/secret", "mine/dir/f", *state).chmod(0o700)
    _require_refused_by_all(place)


@pytest.mark.root
@pytest.mark.parametrize("name", ["", "trash", "sessions", "sessions/mine"])
def test_state_of_somebody_else_is_refused(name: str, place: Path) -> None:
    """E6."""
    if not IS_ROOT:
        missing("root, to give a directory away")
    tree(place, f"outside/secret = {MARKER}")
    tree(place / "store", "mine/secret", "mine/dir/f", ".carrel/trash/", ".carrel/sessions/mine/")
    (place / "store").chmod(0o700)
    os.chown(place / "store" / ".carrel" / name, NOBODY, NOBODY)
    _require_refused_by_all(place)


def _require_refused_by_all(place: Path) -> None:
    before = look(place / "outside"), look(place / "store" / "mine")
    for call in REOPENING.values():
        with pytest.raises(UnavailableError) as caught:
            call(place / "store")
        require_silence(caught.value, (str(place),), ())
    assert (look(place / "outside"), look(place / "store" / "mine")) == before


@pytest.mark.parametrize("target", ["../../outside/secret", "../../outside/new"])
def test_a_journal_that_is_a_link_is_not_written_through(target: str, place: Path) -> None:
    """E6."""
    tree(place, f"outside/secret = {MARKER}")
    with WorkspaceManager(place / "store").create("mine") as workspace:
        tree(place / "store" / ".carrel" / "sessions" / "mine", f"journal.0 => ../../{target}")
        before = look(place / "outside")
        with suppress(CarrelError):
            workspace.write("f", b"new")
        assert look(place / "outside") == before


@requirement("ID-15")
def test_the_sessions_directory_is_made_with_its_parents_and_shut_to_others(place: Path) -> None:
    """E6."""
    WorkspaceManager(place / "deep" / "nested" / "store")
    assert (place / "deep" / "nested" / "store").stat().st_mode & 0o777 == 0o700
