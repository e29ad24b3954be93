"""What the gate remembers: every change and every refusal, in order."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from carrel import AccessMode, SandboxPolicy, Workspace
from carrel.audit.event import Event
from carrel.audit.journal import FileJournal, MemoryJournal
from carrel.errors import EscapeError, IntoItselfError, ShellSyntaxError
from carrel.sessions.manager import WorkspaceManager
from tests.requirements import requirement
from tests.workspace.dying import die, forked, survives
from tests.workspace.planting import plant

Row = tuple[str, str, str | None, int | None, int | None, str | None]


def told(workspace: Workspace, since: int = 0) -> list[Row]:
    """The records, as far as they do not depend on the clock."""
    return [
        (event.operation, event.path, event.other_path, event.before_bytes, event.after_bytes, event.error)
        for event in workspace.changes(since)
    ]


def test_every_change_is_recorded_with_its_sizes(workspace: Workspace) -> None:
    workspace.write("f", b"12345")
    workspace.write("f", b"123")
    workspace.append("f", b"45")
    workspace.edit("f", "5", "five")
    workspace.write_chunks("g", [b"1", b"2"])
    workspace.mkdir("a/b")
    workspace.copy("f", "a/copy")
    workspace.move("f", "moved")
    workspace.remove("moved")
    workspace.remove("a", recursive=True)
    assert told(workspace) == [
        ("write", "f", None, None, 5, None),
        ("write", "f", None, 5, 3, None),
        ("append", "f", None, 3, 5, None),
        ("edit", "f", None, 5, 8, None),
        ("write", "g", None, None, 2, None),
        ("mkdir", "a", None, None, None, None),
        ("mkdir", "a/b", None, None, None, None),
        ("copy", "f", "a/copy", None, 8, None),
        ("move", "f", "moved", 8, 8, None),
        ("remove", "moved", None, 8, None, None),
        ("remove", "a", None, 0, None, None),
    ]


def test_directories_made_on_the_way_are_recorded_too(workspace: Workspace) -> None:
    workspace.write("a/b/f", b"1")
    workspace.append("c/f", b"1")
    workspace.copy("a/b/f", "d/f")
    assert [(row[0], row[1]) for row in told(workspace)] == [
        ("mkdir", "a"),
        ("mkdir", "a/b"),
        ("write", "a/b/f"),
        ("mkdir", "c"),
        ("append", "c/f"),
        ("mkdir", "d"),
        ("copy", "a/b/f"),
    ]


def test_reading_is_not_recorded(workspace: Workspace, directory: Path) -> None:
    plant(directory, "f = text", "sub/g")
    workspace.read("f")
    workspace.read_text("f")
    workspace.read_lines("f")
    list(workspace.read_chunks("f"))
    workspace.stat("f")
    workspace.exists("f")
    workspace.list()
    list(workspace.walk())
    workspace.glob("*")
    workspace.list_files()
    workspace.search("text")
    workspace.usage()
    workspace.explain("f")
    assert told(workspace) == []


def test_what_failed_without_being_refused_is_not_recorded(workspace: Workspace, directory: Path) -> None:
    plant(directory, "sub/f")
    attempts: tuple[Callable[[], object], ...] = (
        lambda: workspace.read("missing"),
        lambda: workspace.remove("missing"),
        lambda: workspace.remove("sub"),
        lambda: workspace.write("sub", b""),
        lambda: workspace.write("sub/f", b"", overwrite=False),
        lambda: workspace.mkdir("sub"),
        lambda: workspace.edit("sub/f", "absent", "x"),
        lambda: workspace.copy("sub", "sub/x", recursive=True),
    )
    for attempt in attempts:
        with pytest.raises((OSError, ValueError)):
            attempt()
    assert told(workspace) == []


def test_what_failed_when_it_was_made_is_recorded_and_taken_back(
    workspace: Workspace, directory: Path
) -> None:
    plant(directory, "sub/f")
    with pytest.raises(IntoItselfError):
        workspace.move("sub", "sub/x")
    assert [
        (event.operation, event.path, event.other_path, event.error) for event in workspace.changes()
    ] == [
        ("move", "sub", "sub/x", None),
        ("move", "sub", "sub/x", "change.undone"),
    ]


REFUSED: dict[str, Callable[[Workspace, str], object]] = {
    "read": lambda workspace, path: workspace.read(path),
    "stat": lambda workspace, path: workspace.stat(path),
    "exists": lambda workspace, path: workspace.exists(path),
    "list": lambda workspace, path: workspace.list(path),
    "walk": lambda workspace, path: workspace.walk(path),
    "search": lambda workspace, path: workspace.search("x", path),
    "archive": lambda workspace, path: workspace.archive(path),
    "extract": lambda workspace, path: workspace.extract(bytes(1024), path),
    "write": lambda workspace, path: workspace.write(path, b""),
    "append": lambda workspace, path: workspace.append(path, b""),
    "edit": lambda workspace, path: workspace.edit(path, "a", "b"),
    "mkdir": lambda workspace, path: workspace.mkdir(path),
    "remove": lambda workspace, path: workspace.remove(path),
    "move": lambda workspace, path: workspace.move(path, "x"),
    "copy": lambda workspace, path: workspace.copy(path, "x"),
}


@requirement("LOG-12", "LOG-10")
@pytest.mark.parametrize("operation", REFUSED)
@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("../etc/passwd", "path.escape"),
        ("out/x", "path.escape"),
        ("/etc/passwd", "access.outside"),
        ("C:evil", "path.absolute"),
        ("nul\0", "path.invalid"),
    ],
)
def test_every_refusal_is_recorded_once_and_logged_once_with_the_path_as_asked(
    workspace: Workspace,
    directory: Path,
    caplog: pytest.LogCaptureFixture,
    operation: str,
    path: str,
    code: str,
) -> None:
    plant(directory, "out => /etc")
    with pytest.raises((ValueError, PermissionError)):
        REFUSED[operation](workspace, path)
    assert told(workspace) == [(operation, path, None, None, None, code)]
    (record,) = [found for found in caplog.records if found.name == "carrel"]
    assert record.levelname == "WARNING"
    fields = record.__dict__
    assert fields["event"] == f"security.{code.replace('.', '_')}"
    assert (fields["session_id"], fields["operation"]) == ("abc-123", operation)
    assert fields["path"] == path.replace("\0", "\\x00")
    assert "\0" not in record.getMessage()


@pytest.mark.parametrize("operation", ["glob", "list"])
def test_a_pattern_through_a_link_out_is_recorded_as_a_refusal(
    workspace: Workspace, directory: Path, operation: str
) -> None:
    plant(directory, "out => /etc")
    with pytest.raises(ValueError, match="escapes"):
        (workspace.glob if operation == "glob" else workspace.list_files)("out/*")
    assert [(row[0], row[5]) for row in told(workspace)] == [(operation, "path.escape")]


def test_a_mistake_that_is_repeated_is_one_record_and_a_number(
    workspace: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "carrel"):
        for _ in range(1000):
            workspace.gate.record_mistake("shell", ShellSyntaxError("no", path="cat 'f"))
        found = [(event.path, event.error, event.repeats) for event in workspace.changes()]
    assert found == [("cat 'f", "shell.syntax", 0), ("cat 'f", "shell.syntax", 999)]
    logged = [(record.levelname, record.__dict__.get("repeats")) for record in caplog.records]
    assert logged == [("INFO", None), ("INFO", 999)]


def test_the_target_of_a_move_or_copy_is_what_was_refused(workspace: Workspace, directory: Path) -> None:
    plant(directory, "f")
    for name, attempt in (("move", workspace.move), ("copy", workspace.copy)):
        with pytest.raises(ValueError, match="escapes"):
            attempt("f", "../evil")
        assert told(workspace)[-1] == (name, "../evil", None, None, None, "path.escape")


def test_a_write_that_a_rule_forbids_is_recorded_as_denied(directory: Path) -> None:
    policy = SandboxPolicy.for_workspace(directory, AccessMode.READ_ONLY)
    with Workspace.open(directory, policy=policy) as workspace:
        with pytest.raises(PermissionError, match="read-only workspace"):
            workspace.write("f", b"")
        assert told(workspace) == [("write", "f", None, None, None, "access.denied")]


def test_a_record_says_who_when_and_in_which_session(directory: Path) -> None:
    times = iter(range(1000, 2000))
    with Workspace.open(directory, session_id="mine", actor="shell", clock=lambda: next(times)) as workspace:
        workspace.write("f", b"")
        workspace.remove("f")
        first, second = workspace.changes()
    assert (first.session_id, first.actor, first.time_ns) == ("mine", "shell", 1000)
    assert second.time_ns == 1001


@pytest.mark.parametrize("on_disk", [True, False])
def test_changes_go_on_from_where_one_left_off(directory: Path, tmp_path: Path, on_disk: bool) -> None:
    journal = FileJournal(os.open(tmp_path, os.O_RDONLY)) if on_disk else MemoryJournal()
    with Workspace.open(directory, journal=journal) as workspace:
        workspace.write("a", b"")
        workspace.write("b", b"")
        seen = list(workspace.changes())
        workspace.write("c", b"")
        assert [event.path for event in workspace.changes(seen[-1].sequence)] == ["c"]
        assert [event.path for event in workspace.changes(seen[0].sequence)] == ["b", "c"]
        assert [event.path for event in workspace.changes()] == ["a", "b", "c"]
        sequences = [event.sequence for event in workspace.changes()]
        assert sequences == sorted(set(sequences))


def test_a_journal_of_the_callers_own_is_used(directory: Path) -> None:
    class Collected:
        def __init__(self) -> None:
            self.events_: list[Event] = []
            self.closed = False

        def record(self, event: Event) -> None:
            self.events_.append(event)

        def events(self, since: int = 0) -> list[Event]:
            return self.events_[since:]

        def close(self) -> None:
            self.closed = True

    journal = Collected()
    with Workspace.open(directory, journal=journal) as workspace:  # type: ignore[arg-type]  # a list will do
        workspace.write("f", b"in")
    assert [event.operation for event in journal.events_] == ["write"]
    assert journal.closed


def test_a_journal_that_fails_is_told_and_the_change_stands(
    directory: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Full(MemoryJournal):
        def record(self, *events: Event) -> None:
            raise OSError(28, "No space left on device")

    with Workspace.open(directory, journal=Full(), session_id="s") as workspace:
        workspace.write("f", b"in")
        assert workspace.read("f") == b"in"
        with pytest.raises(ValueError, match="escapes"):
            workspace.read("../x")
    told = [record.__dict__ for record in caplog.records if record.name == "carrel"]
    assert [(found["event"], found["operation"], found["path"]) for found in told] == [
        ("security.journal_lost", "write", "f"),
        ("security.journal_lost", "read", "../x"),
        ("security.path_escape", "read", "../x"),
    ]
    assert all(found["levelname"] == "WARNING" for found in told)


@requirement("W-17", "R-04")
def test_no_record_holds_a_path_of_the_host(workspace: Workspace, directory: Path) -> None:
    workspace.write("a/f", b"in")
    workspace.copy("a", "b", recursive=True)
    with pytest.raises(ValueError, match="escapes"):
        workspace.read("../x")
    assert all(str(directory) not in repr(event) for event in workspace.changes())


# The same again and again


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[WorkspaceManager]:
    with WorkspaceManager(tmp_path / "sessions") as made:
        yield made


def refused(workspace: Workspace, path: str) -> None:
    with suppress(EscapeError):
        workspace.read(path)


def test_twenty_thousand_refusals_of_the_same_are_one_record_and_a_number(
    sessions: WorkspaceManager, caplog: pytest.LogCaptureFixture
) -> None:
    with sessions.create("one") as workspace:
        for _ in range(20_000):
            refused(workspace, "../x")
        refused(workspace, "../y")
        state = sessions.root / ".carrel/sessions/one"
        assert (state / "refusals.0").stat().st_size < 1000
        found = [(event.path, event.error, event.repeats) for event in workspace.changes()]
        assert found == [
            ("../x", "path.escape", 0),
            ("../y", "path.escape", 0),
            ("../x", "path.escape", 19_999),
        ]
    warned = [getattr(record, "repeats", 0) for record in caplog.records if record.levelname == "WARNING"]
    assert warned == [0, 0, 19_999]
    assert sessions.verify("one").problem is None


def test_what_was_counted_is_recorded_when_the_workspace_is_closed(sessions: WorkspaceManager) -> None:
    with sessions.create("one") as workspace:
        refused(workspace, "../x")
        refused(workspace, "../x")
    with sessions.open("one") as workspace:
        assert [event.repeats for event in workspace.changes()] == [0, 1]


def test_a_killed_process_leaves_the_first_of_many_refusals(sessions: WorkspaceManager) -> None:
    sessions.create("one").close()

    def flood() -> None:
        workspace = sessions.open("one")
        for _ in range(100):
            refused(workspace, "../x")
        die()

    assert not survives(forked(flood))
    with sessions.open("one") as workspace:
        assert [(event.path, event.repeats) for event in workspace.changes()] == [("../x", 0)]


def test_whoever_watches_sees_each_refusal(sessions: WorkspaceManager) -> None:
    with sessions.create("one") as workspace:
        refused(workspace, "../x")
        with workspace.gate.watching() as seen:
            refused(workspace, "../x")
            workspace.write("f", b"x")
            list(workspace.changes())
        assert [(event.operation, event.repeats) for event in seen] == [("read", 0), ("write", 0)]
