"""The guards of policy, sessions, journal, log and edits, one small test each; see `tests/mutants.py`."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from carrel.audit.event import Event
from carrel.audit.journal import FileJournal
from carrel.audit.logger import SandboxLogger
from carrel.errors import (
    AbsoluteError,
    AccessError,
    CarrelError,
    ChangedError,
    ClosedError,
    EditError,
    EscapeError,
    OutsideError,
    SessionExistsError,
    SessionIdError,
    UnavailableError,
)
from carrel.fs import syscalls
from carrel.fs.local.root import Root
from carrel.paths.parsed_path import parse
from carrel.paths.session_id import require_session_id
from carrel.policy.rules import AccessMode, PathRule, SandboxPolicy
from carrel.sessions.functions import read_session_file
from carrel.sessions.manager import WorkspaceManager
from carrel.workspace.workspace import Workspace
from tests.faults.inject import NOBODY
from tests.requirements import requirement

# Policy


def test_a_read_only_workspace_is_not_changed(directory: Path, quiet: SandboxLogger) -> None:
    (directory / "f").write_bytes(b"in")
    policy = SandboxPolicy.for_workspace(directory, AccessMode.READ_ONLY)
    workspace = Workspace.open(directory, policy=policy, logger=quiet)
    for act in (
        lambda: workspace.write("g", b"x"),
        lambda: workspace.write_chunks("g", [b"x"]),
        lambda: workspace.append("f", b"x"),
        lambda: workspace.edit("f", "in", "out"),
        lambda: workspace.mkdir("d"),
        lambda: workspace.remove("f"),
        lambda: workspace.remove("f", recursive=True),
        lambda: workspace.move("f", "g"),
        lambda: workspace.copy("f", "g"),
        lambda: workspace.copy("f", "g", recursive=True),
    ):
        with pytest.raises(AccessError, match="read-only workspace"):
            act()
    assert workspace.read("f") == b"in"
    assert os.listdir(directory) == ["f"]


@requirement("AP-16")
def test_both_ends_of_a_move_and_the_target_of_a_copy_are_judged(
    tmp_path: Path, quiet: SandboxLogger
) -> None:
    for name in ("ws", "ro"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_bytes(b"in")
    policy = SandboxPolicy.for_workspace(tmp_path / "ws", allow=[PathRule(str(tmp_path / "ro"))])
    workspace = Workspace.open(tmp_path / "ws", policy=policy, logger=quiet)
    with pytest.raises(AccessError, match="read-only path"):
        workspace.move(f"{tmp_path}/ro/f", "g")
    with pytest.raises(AccessError, match="read-only path"):
        workspace.move("f", f"{tmp_path}/ro/g")
    with pytest.raises(AccessError, match="read-only path"):
        workspace.copy("f", f"{tmp_path}/ro/g")
    workspace.copy(f"{tmp_path}/ro/f", "g")
    assert os.listdir(tmp_path / "ro") == ["f"]


@requirement("AP-15")
def test_the_first_rule_that_has_a_path_decides(tmp_path: Path, quiet: SandboxLogger) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "a/b").mkdir(parents=True)
    rules = [
        PathRule(str(tmp_path / "a"), AccessMode.READ_ONLY),
        PathRule(str(tmp_path / "a/b"), AccessMode.READ_WRITE),
    ]
    policy = SandboxPolicy.for_workspace(tmp_path / "ws", allow=rules)
    workspace = Workspace.open(tmp_path / "ws", policy=policy, logger=quiet)
    with pytest.raises(AccessError):
        workspace.write(f"{tmp_path}/a/b/f", b"x")
    assert policy.explain(f"{tmp_path}/a/b/f", "write").index == 1


@requirement("P-25")
def test_what_no_rule_has_is_outside(tmp_path: Path, quiet: SandboxLogger) -> None:
    for name in ("ws", "ws-evil"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_bytes(b"in")
    workspace = Workspace.open(tmp_path / "ws", logger=quiet)
    for path in (f"{tmp_path}/ws-evil/f", f"{tmp_path}/ws/f", "/etc/passwd"):
        with pytest.raises(OutsideError):
            workspace.read(path)
    none = Workspace.open(tmp_path / "ws", policy=SandboxPolicy(str(tmp_path / "ws")), logger=quiet)
    with pytest.raises(OutsideError):
        none.read("f")
    with pytest.raises(ValueError, match="first rule"):
        SandboxPolicy(str(tmp_path / "ws"), (PathRule(str(tmp_path / "ws-evil")),))


def test_a_mode_that_is_not_plainly_read_write_is_read_only() -> None:
    assert AccessMode.parse("RW") is AccessMode.READ_WRITE
    assert AccessMode.parse("anything else") is AccessMode.READ_ONLY


# WorkspaceManager

BAD_IDS = (
    *("", ".", "..", "../x", "a/b", "a\\b", ".hidden", "-rf", "a..b", "a.", "abc\n", "a\0b", "a b", "a:b"),
    *("é", "ａbc", "٣", "x" * 129, "CON", "nul.txt", "com1"),
)


@requirement("ID-06", "ID-07", "ID-08", "ID-09", "ID-14")
@pytest.mark.parametrize(
    "session_id",
    [*BAD_IDS, None, b"abc"],
)
def test_what_is_no_session_id_is_refused(session_id: object) -> None:
    with pytest.raises(SessionIdError):
        require_session_id(session_id)


@requirement("ID-13")
def test_an_id_is_judged_by_every_door(sessions: WorkspaceManager) -> None:
    sessions.create("one").close()
    (sessions.root / ".carrel/x").write_bytes(b"ours")
    for act in (sessions.create, sessions.open, sessions.get_workspace):
        with pytest.raises(SessionIdError):
            act(".carrel")
    with pytest.raises(SessionIdError):
        read_session_file(".carrel", "x", sessions.root)


@requirement("ID-17", "ID-18")
def test_a_session_is_not_made_of_something_that_is_there(sessions: WorkspaceManager, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (sessions.root / "link").symlink_to(tmp_path / "elsewhere")
    (sessions.root / "directory").mkdir()
    (sessions.root / "file").write_bytes(b"")
    for name in ("link", "directory", "file"):
        with pytest.raises(SessionExistsError):
            sessions.create(name)
    with pytest.raises(UnavailableError, match="symlink"):
        sessions.open("link")
    with pytest.raises(UnavailableError, match="not a directory"):
        sessions.open("file")


@pytest.mark.root
@pytest.mark.usefixtures("needs_root")
def test_a_directory_of_somebody_else_is_not_used(sessions: WorkspaceManager, tmp_path: Path) -> None:
    (sessions.root / "theirs").mkdir()
    os.chown(sessions.root / "theirs", NOBODY, NOBODY)
    with pytest.raises(UnavailableError, match="another user"):
        sessions.open("theirs")
    (tmp_path / "squatted").mkdir(mode=0o700)
    os.chown(tmp_path / "squatted", NOBODY, NOBODY)
    with pytest.raises(UnavailableError, match="another user"):
        WorkspaceManager(tmp_path / "squatted")
    sessions.create("ours").close()
    os.chown(sessions.root / ".carrel", NOBODY, NOBODY)
    with pytest.raises(UnavailableError, match="another user"):
        WorkspaceManager(sessions.root).open("ours")


def test_a_sessions_directory_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    for mode in (0o720, 0o702, 0o777):
        (tmp_path / f"{mode:o}").mkdir()
        (tmp_path / f"{mode:o}").chmod(mode)
        with pytest.raises(UnavailableError, match="others may write"):
            WorkspaceManager(tmp_path / f"{mode:o}")


def test_a_sessions_directory_that_is_a_link_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(UnavailableError, match="symlink"):
        WorkspaceManager(tmp_path / "link")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "real/.carrel").symlink_to("../elsewhere")
    with pytest.raises(UnavailableError):
        WorkspaceManager(tmp_path / "real").create("one")


def test_what_is_made_for_sessions_is_closed_to_others(sessions: WorkspaceManager) -> None:
    sessions.create("one").write("f", b"x")
    mode = os.umask(0)
    try:
        sessions.create("two")
    finally:
        os.umask(mode)
    for path in ("", "one", "two", ".carrel", ".carrel/trash", ".carrel/sessions/two"):
        assert (sessions.root / path).stat().st_mode & 0o077 == 0


def test_the_file_functions_take_no_absolute_paths(sessions: WorkspaceManager) -> None:
    sessions.create("one").write("f", b"in")
    assert read_session_file("one", "f", sessions.root) == b"in"
    for path in ("/workspace/f", f"{sessions.root}/one/f"):
        with pytest.raises(AbsoluteError):
            read_session_file("one", path, sessions.root)


# Recording


def test_a_refusal_is_recorded_and_logged(
    sessions: WorkspaceManager, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "carrel")
    with WorkspaceManager(sessions.root).create("one") as workspace:
        with pytest.raises(EscapeError):
            workspace.read("../secret")
        with pytest.raises(OutsideError):
            workspace.write("/etc/passwd", b"x")
        events = [(event.operation, event.path, event.error) for event in workspace.changes()]
    assert events == [
        ("read", "../secret", "path.escape"),
        ("write", "/etc/passwd", "access.outside"),
    ]
    messages = [record.getMessage() for record in caplog.records]
    assert [message.split()[0] for message in messages] == ["security.path_escape", "security.access_outside"]
    assert "session_id=one" in messages[0]
    assert "operation=read" in messages[0]
    assert "path=../secret" in messages[0]


NASTY = "a\nsecurity.forged x\r\x1b[2J\u202e\u2028\udcff"


def test_a_log_event_is_one_line_whatever_a_name_holds(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "carrel")
    logger = SandboxLogger()
    logger.log_event("session.file.read", path=NASTY)
    logger.log_security_event("path_escape", path=NASTY)
    assert len(caplog.records) == 2
    for record in caplog.records:
        assert record.getMessage().isprintable()
        assert "\\n" in record.getMessage()


def test_a_journal_has_one_line_a_record_whatever_a_name_holds(tmp_path: Path) -> None:
    journal = FileJournal(os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY))
    for number in range(3):
        journal.record(Event(time_ns=number, session_id="s", actor="host", operation="write", path=NASTY))
    assert [event.path for event in journal.events()] == [NASTY] * 3
    lines = [line for line in (tmp_path / "journal.0").read_bytes().split(b"\n") if line]
    assert len(lines) == 3
    assert all(line.isascii() and line.decode().isprintable() for line in lines)
    first, second, _ = journal.events()
    assert [event.time_ns for event in journal.events(first.sequence)] == [1, 2]
    assert [event.time_ns for event in journal.events(second.sequence)] == [2]
    journal.close()


def test_a_torn_record_spoils_no_other(tmp_path: Path) -> None:
    journal = FileJournal(os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY))
    event = Event(time_ns=1, session_id="s", actor="host", operation="write", path="f")
    journal.record(event)
    with (tmp_path / "journal.0").open("ab") as file:
        file.write(b'\n[1,2,"s","ho')
    journal.record(event)
    assert [found.path for found in journal.events()] == ["f", "f"]
    journal.close()


def test_a_journal_that_became_a_link_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "journal.0").symlink_to("elsewhere")
    journal = FileJournal(os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY))
    with pytest.raises(OSError, match="symbolic links"):
        journal.record(Event(time_ns=1, session_id="s", actor="host", operation="write", path="f"))
    journal.close()
    assert not (tmp_path / "elsewhere").exists()


def test_a_closed_workspace_says_so(confined: Workspace) -> None:
    confined.close()
    with pytest.raises(ClosedError):
        confined.read("f")
    with pytest.raises(ClosedError):
        confined.write("f", b"x")


def test_a_closed_root_says_so(directory: Path) -> None:
    """Whoever holds the files below the gate, an operation that has begun for one, meets the same answer."""
    root = Root.open(directory)
    root.close()
    with pytest.raises(ClosedError):
        root.list(parse("."), limit=None)


# Editing


@requirement("W-21", "W-23")
def test_an_edit_that_is_not_clear_changes_nothing(confined: Workspace) -> None:
    confined.write("f", b"foo\nbar\nfoo\n")
    for old, new, code in (
        ("foo", "x", "edit.ambiguous"),
        ("absent", "x", "edit.not_found"),
        ("", "x", "edit.empty"),
        ("bar", "bar", "edit.identical"),
    ):
        with pytest.raises(EditError) as caught:
            confined.edit("f", old, new)
        assert caught.value.code == code
    assert confined.read("f") == b"foo\nbar\nfoo\n"


def test_an_edit_of_what_changed_meanwhile_is_refused(
    confined: Workspace, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = Root.read

    def read_and_change(self: Root, *args: Any, **more: Any) -> bytes:  # Any: as it is
        content = really(self, *args, **more)
        (directory / "f").write_bytes(b"theirs")
        return content

    monkeypatch.setattr(Root, "read", read_and_change)
    with pytest.raises(ChangedError):
        confined.edit("f", "in", "mine")
    assert (directory / "f").read_bytes() == b"theirs"


# Errors


@requirement("R-04")
def test_an_error_names_no_place_on_the_host(confined: Workspace, directory: Path) -> None:
    (directory / "l").symlink_to("../secret")
    for act in (
        lambda: confined.read("missing"),
        lambda: confined.read("d"),
        lambda: confined.read("l"),
        lambda: confined.list("f"),
        lambda: confined.remove("d"),
        lambda: confined.mkdir("f/x"),
    ):
        with pytest.raises(CarrelError) as caught:
            act()
        error: BaseException | None = caught.value
        assert str(directory) not in repr(caught.value) + str(caught.value)
        assert error is not None
        assert error.__cause__ is None
        assert error.__context__ is None


def test_every_descriptor_is_closed_on_exec(confined: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    opened, opened2 = os.open, syscalls.openat2_unchecked

    def spy(path: Any, flags: int, *args: Any, **more: Any) -> int:  # Any: a system call
        asked.append(flags)
        return opened(path, flags, *args, **more)

    def spy2(base: int, path: bytes, flags: int, resolve: int) -> int:
        asked.append(flags)
        return opened2(base, path, flags, resolve)

    monkeypatch.setattr(os, "open", spy)
    monkeypatch.setattr(syscalls, "openat2_unchecked", spy2)
    confined.read("d/f")
    confined.write("d/g", b"x")
    confined.append("d/g", b"x")
    confined.copy("d", "e", recursive=True)
    list(confined.walk())
    confined.mkdir("x/y/z")
    confined.remove("d", recursive=True)
    confined.move("f", "g")
    assert len(asked) > 10
    assert all(flags & os.O_CLOEXEC for flags in asked)


def test_an_error_number_becomes_the_error_that_people_catch(confined: Workspace) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        confined.read("missing")
    assert caught.value.errno == errno.ENOENT
    assert caught.value.filename == "missing"
