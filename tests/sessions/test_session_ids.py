"""Ids, and the directories that belong to them."""

from __future__ import annotations

import logging
import os
import re
import stat
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel import delete_session_path, list_session_files, read_session_file, write_session_file
from carrel.errors import SessionExistsError, SessionIdError, SessionMissingError, UnavailableError
from carrel.paths.session_id import require_session_id
from carrel.policy.rules import AccessMode, SandboxPolicy
from carrel.sessions.functions import _validate_session_path
from carrel.sessions.manager import WorkspaceManager
from carrel.values import Limits
from tests.requirements import requirement
from tests.workspace.planting import plant, snapshot

DOORS: dict[str, Callable[[str, Path], object]] = {
    "list": list_session_files,
    "read": lambda name, root: read_session_file(name, "f", root),
    "write": lambda name, root: write_session_file(name, "f", b"", root),
    "delete": lambda name, root: delete_session_path(name, "f", root),
    "validate": lambda name, root: _validate_session_path(name, "f", root),
}
SESSION_DOORS: dict[str, Callable[[str, WorkspaceManager], object]] = {
    "create": lambda name, sessions: sessions.create(name),
    "ensure": lambda name, sessions: sessions.get_workspace(name),
    "open": lambda name, sessions: sessions.open(name),
}
WRONG = [
    "../etc",
    "../escape",
    "..\\etc",
    "foo/bar",
    "foo\\bar",
    "session;rm -rf",
    "",
    ".",
    "..",
    ".hidden",
    ".hidden-session",
    ".carrel",
    "session/../etc",
    "session..test",
    "a..b",
    "trailing.",
    "-rf",
    "we ird",
    "we ird\n",
    "line\n",
    "nul\0",
    "esc\x1b",
    "tab\t",
    "ünïcode",
    "\u202e",
    "a" * 129,
    "nul",
    "COM1.txt",
]
RIGHT = [
    "session-123",
    "user_abc",
    "session.1",
    "a",
    "_a",
    "A.b.C",
    "a" * 128,
    "0b6c4a4e-6c0f-4c55-9a50-4f0d8e1d5a11",
    "default",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


# The rule for ids


@requirement("ID-04", "ID-06", "ID-07", "ID-09", "ID-13", "ID-14")
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_id_is_refused_by_every_file_function_before_anything_is_made(
    root: Path, tmp_path: Path, door: Callable[[str, Path], object], name: str
) -> None:
    with pytest.raises(ValueError, match="invalid session id"):
        door(name, root)
    assert snapshot(tmp_path) == {}


@requirement("ID-04", "ID-13")
@pytest.mark.parametrize("door", SESSION_DOORS.values(), ids=SESSION_DOORS)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_id_is_refused_by_the_sessions_too(
    root: Path, door: Callable[[str, WorkspaceManager], object], name: str
) -> None:
    sessions = WorkspaceManager(root)
    before = snapshot(root)
    with pytest.raises(ValueError, match="invalid session id"):
        door(name, sessions)
    assert snapshot(root) == before


@requirement("ID-09", "ID-13", "ID-08")
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_id_is_accepted_by_every_door(root: Path, name: str) -> None:
    sessions = WorkspaceManager(root)
    sessions.create(name).close()
    sessions.get_workspace(name).close()
    sessions.open(name).close()
    write_session_file(name, "f", b"in", root)
    assert list_session_files(name, root) == ["f"]
    assert read_session_file(name, "f", root) == b"in"
    delete_session_path(name, "f", root)


@requirement("ID-08")
def test_an_id_that_is_too_long_says_so() -> None:
    assert require_session_id("a" * 128) == "a" * 128
    with pytest.raises(SessionIdError, match=r"too long \(max 128 chars\)"):
        require_session_id("a" * 129)


@pytest.mark.parametrize("value", [None, 1, b"abc", ["abc"]])
def test_an_id_that_is_no_text_is_a_value_error(root: Path, value: object) -> None:
    with pytest.raises(ValueError, match="session id must be str"):
        list_session_files(value, root)  # type: ignore[arg-type]  # that is the point


@given(st.text())
def test_an_accepted_id_is_always_one_harmless_name(text: str) -> None:
    try:
        name = require_session_id(text)
    except SessionIdError:
        return
    assert name == text
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", name)
    assert ".." not in name
    assert not name.endswith(".")


@given(st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,20}(\.[A-Za-z0-9_-]{1,20}){0,3}", fullmatch=True))
def test_every_id_of_the_rule_is_accepted_but_device_names(text: str) -> None:
    device = re.match(r"(?i)(con|prn|aux|nul|com[1-9]|lpt[1-9])(\.|$)", text)
    if device:
        with pytest.raises(SessionIdError, match="device name"):
            require_session_id(text)
    else:
        assert require_session_id(text) == text


# Directories


@requirement("ID-01", "ID-02")
def test_a_session_without_an_id_gets_a_uuid_and_a_directory(root: Path) -> None:
    with WorkspaceManager(root).create() as workspace:
        name = workspace.session_id
        assert name is not None
        assert str(uuid.UUID(name, version=4)) == name
        assert (root / name).is_dir()


def test_ids_come_from_the_given_source(root: Path) -> None:
    with WorkspaceManager(root).create(make_id=lambda: "fixed") as workspace:
        assert workspace.session_id == "fixed"


def test_creating_does_not_adopt_what_is_there(root: Path) -> None:
    sessions = WorkspaceManager(root)
    sessions.create("taken").close()
    plant(root, "file", "strange/")
    for name in ("taken", "file", "strange"):
        with pytest.raises(SessionExistsError, match=f"session '{name}' already exists") as caught:
            sessions.create(name)
        assert isinstance(caught.value, FileExistsError)


def test_opening_an_unknown_session_is_an_error_and_makes_nothing(root: Path) -> None:
    sessions = WorkspaceManager(root)
    with pytest.raises(SessionMissingError, match="no such session: 'unknown'"):
        sessions.open("unknown")
    assert not (root / "unknown").exists()


@requirement("ID-16")
def test_making_sure_of_a_session_twice_keeps_its_files(root: Path) -> None:
    sessions = WorkspaceManager(root)
    with sessions.get_workspace("again") as workspace:
        workspace.write("important.txt", b"kept")
        first = workspace.host_path(".")
    with sessions.get_workspace("again") as workspace:
        assert workspace.read("important.txt") == b"kept"
        assert workspace.host_path(".") == first


@requirement("ID-17")
@pytest.mark.parametrize("target", ["elsewhere", "nowhere", "/etc"])
def test_a_link_in_place_of_a_workspace_is_refused(root: Path, tmp_path: Path, target: str) -> None:
    sessions = WorkspaceManager(root)
    plant(tmp_path, "elsewhere/kept")
    plant(root, f"victim => {target if target.startswith('/') else '../' + target}")
    for attempt in (
        sessions.open,
        sessions.get_workspace,
        lambda name: write_session_file(name, "f", b"", root),
    ):
        with pytest.raises(OSError, match=r"Workspace is a symlink \(potential attack\)"):
            attempt("victim")
    assert snapshot(tmp_path / "elsewhere") == {"kept": b"in"}


@requirement("ID-18")
def test_a_file_in_place_of_a_workspace_is_refused(root: Path) -> None:
    sessions = WorkspaceManager(root)
    plant(root, "victim = text")
    for attempt in (
        sessions.open,
        sessions.get_workspace,
        lambda name: write_session_file(name, "f", b"", root),
    ):
        with pytest.raises(UnavailableError, match="exists but is not a directory"):
            attempt("victim")
    assert (root / "victim").read_text() == "text"


@requirement("ID-19", "I-01", "I-02")
def test_two_sessions_have_their_own_directories_and_files(root: Path) -> None:
    for name in ("session-a", "session-b"):
        write_session_file(name, "data.txt", name, root)
        write_session_file(name, f"only-{name}", b"", root)
    for name in ("session-a", "session-b"):
        assert read_session_file(name, "data.txt", root) == name.encode()
        assert list_session_files(name, root) == ["data.txt", f"only-{name}"]
        assert _validate_session_path(name, ".", root) == root / name


@requirement("R-07", "I-10", "W-16", "P-10")
def test_one_session_cannot_reach_into_another(root: Path) -> None:
    write_session_file("session-a", "secret.txt", b"secret of a", root)
    write_session_file("session-b", "own", b"", root)
    plant(root / "session-b", "link => ../session-a/secret.txt", "dir => ../session-a")
    before = snapshot(root / "session-a")
    for path in ("../session-a/secret.txt", "link", "dir/secret.txt"):
        with pytest.raises(ValueError, match="escapes session workspace") as caught:
            read_session_file("session-b", path, root)
        assert "secret of a" not in str(caught.value)
        with pytest.raises(ValueError, match="escapes session workspace"):
            write_session_file("session-b", path, b"changed", root)
    assert list_session_files("session-b", root) == ["own"]
    assert snapshot(root / "session-a") == before


@requirement("P-25")
def test_a_session_whose_name_begins_like_another_is_outside_it(root: Path) -> None:
    write_session_file("sess-evil", "x", b"secret", root)
    write_session_file("sess", "f", b"", root)
    plant(root / "sess", "l => ../sess-evil/x")
    for path in ("../sess-evil/x", "l"):
        with pytest.raises(ValueError, match="escapes session workspace"):
            read_session_file("sess", path, root)


@requirement("ID-21")
def test_many_first_accesses_at_once_make_one_directory(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    sessions = WorkspaceManager(root)
    start = threading.Barrier(8)
    problems: list[BaseException] = []

    def first(number: int) -> None:
        start.wait()
        try:
            with sessions.get_workspace("shared") as workspace:
                workspace.write(f"{number}.txt", b"in")
        except BaseException as error:
            problems.append(error)

    with caplog.at_level(logging.INFO, logger="carrel"):
        threads = [threading.Thread(target=first, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert problems == []
    assert list_session_files("shared", root) == [f"{number}.txt" for number in range(8)]
    made = [record for record in caplog.records if record.getMessage().startswith("session.created ")]
    assert len(made) == 1


def test_nothing_of_ours_is_inside_a_workspace(root: Path) -> None:
    write_session_file("mine", "f", b"in", root)
    with pytest.raises(ValueError, match="escapes"):
        read_session_file("mine", "../.carrel/sessions/mine/journal.0", root)
    assert os.listdir(root / "mine") == ["f"]
    assert sorted(os.listdir(root)) == [".carrel", "mine"]


def test_directories_of_ours_are_for_their_owner_only(root: Path) -> None:
    write_session_file("mine", "f", b"in", root)
    state = root / ".carrel" / "sessions" / "mine"
    for place in (root, root / "mine", root / ".carrel", state.parent, state):
        assert stat.S_IMODE(place.stat().st_mode) == 0o700
    for name in ("ledger", "lease", "journal.0"):
        assert stat.S_IMODE((state / name).stat().st_mode) == 0o600


# The sessions directory


def test_a_sessions_directory_that_is_a_link_is_refused(tmp_path: Path) -> None:
    plant(tmp_path, "real/", "sessions => real")
    with pytest.raises(UnavailableError, match="'sessions' cannot be used: it is a symlink"):
        WorkspaceManager(tmp_path / "sessions")
    assert snapshot(tmp_path / "real") == {}


def test_a_sessions_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    plant(tmp_path, "sessions = text")
    with pytest.raises(UnavailableError, match="it is not a directory"):
        WorkspaceManager(tmp_path / "sessions")


@pytest.mark.parametrize("mode", [0o777, 0o772, 0o720])
def test_a_sessions_directory_that_others_may_write_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions").chmod(mode)
    with pytest.raises(UnavailableError, match="others may write to it"):
        WorkspaceManager(tmp_path / "sessions")


def test_a_sessions_directory_of_somebody_else_is_refused(unprivileged: Path) -> None:
    with pytest.raises(UnavailableError, match="it belongs to another user"):
        WorkspaceManager("/usr")
    assert WorkspaceManager(unprivileged / "own").root == unprivileged / "own"


def test_a_sessions_directory_that_cannot_be_made_says_why_without_its_path(unprivileged: Path) -> None:
    (unprivileged / "shut").mkdir(0o500)
    with pytest.raises(UnavailableError, match="Permission denied") as caught:
        WorkspaceManager(unprivileged / "shut" / "sessions")
    assert str(unprivileged) not in str(caught.value)


def test_a_state_directory_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir(0o700)
    plant(tmp_path, "elsewhere/", "sessions/.carrel => ../elsewhere")
    with pytest.raises(UnavailableError, match=r"'\.carrel' cannot be used") as caught:
        WorkspaceManager(tmp_path / "sessions").create("new")
    assert str(tmp_path) not in str(caught.value)
    assert snapshot(tmp_path / "elsewhere") == {}


def test_limits_and_policy_of_a_new_session_hold(root: Path) -> None:
    sessions = WorkspaceManager(root)
    with (
        sessions.create("small", limits=Limits(file_bytes=3)) as workspace,
        pytest.raises(OSError, match="the limit is 3"),
    ):
        workspace.write("f", b"four")
    read_only = SandboxPolicy.for_workspace(root / "shut", AccessMode.READ_ONLY)
    with (
        sessions.create("shut", policy=read_only) as workspace,
        pytest.raises(PermissionError, match="read-only workspace"),
    ):
        workspace.write("f", b"")


def test_the_journal_of_a_session_outlives_its_workspace(root: Path) -> None:
    sessions = WorkspaceManager(root)
    with sessions.create("told") as workspace:
        workspace.write("a.txt", b"12345")
    with sessions.open("told") as workspace:
        workspace.remove("a.txt")
        told = [(event.operation, event.path, event.after_bytes) for event in workspace.changes()]
    assert told == [("write", "a.txt", 5), ("remove", "a.txt", None)]
