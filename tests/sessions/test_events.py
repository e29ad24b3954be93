"""What the session file functions and the gate log, and with which fields."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from carrel import (
    SandboxLogger,
    Workspace,
    delete_session_path,
    list_session_files,
    read_session_file,
    write_session_file,
)
from carrel.sessions.manager import WorkspaceManager
from tests.requirements import requirement
from tests.workspace.planting import plant

SESSION = "abc-123"
Fields = dict[str, Any]  # Any: as structlog gives them


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A sessions directory with one session and one file."""
    made = tmp_path / "sessions"
    write_session_file(SESSION, "data.txt", b"12345", made)
    return made


class Log:
    """The events of one test, from structlog or from the standard library."""

    def __init__(self, logger: SandboxLogger, read: Callable[[], list[Fields]]) -> None:
        self.logger = logger
        self._read = read

    def events(self) -> list[Fields]:
        return self._read()

    def only(self) -> Fields:
        (found,) = self._read()
        return found


FIELDS = {
    "event",
    "file_count",
    "match_count",
    "operation",
    "path",
    "pattern",
    "recursive",
    "session_id",
    "size_bytes",
    "target",
    "workspace_path",
}


@pytest.fixture(params=["stdlib", "structlog"])
def log(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[Log]:
    """Both kinds of logger; what they get is the same."""
    if request.param == "stdlib":
        caplog.set_level(logging.INFO, logger="tests.sessions")
        logger = logging.getLogger("tests.sessions")

        def read() -> list[Fields]:
            return [
                {
                    "log_level": record.levelname.lower(),
                    **{name: record.__dict__[name] for name in FIELDS if name in record.__dict__},
                }
                for record in caplog.records
                if record.name == "tests.sessions"
            ]

        yield Log(SandboxLogger(logger), read)
    else:
        with structlog.testing.capture_logs() as captured:
            yield Log(SandboxLogger(structlog.get_logger()), lambda: [dict(found) for found in captured])


# The file functions


@requirement("LOG-3")
@pytest.mark.parametrize(("pattern", "count"), [("*.csv", 2), ("*.json", 0), (None, 3)])
def test_a_listing_is_logged_with_session_pattern_and_count(
    root: Path, log: Log, pattern: str | None, count: int
) -> None:
    plant(root / SESSION, "a.csv", "sub/b.csv")
    list_session_files(SESSION, root, pattern, logger=log.logger)
    assert log.only() == {
        "event": "session.file.list",
        "log_level": "info",
        "session_id": SESSION,
        "pattern": pattern or "**",
        "file_count": count,
    }


@requirement("LOG-3")
def test_a_listing_of_an_unknown_session_is_logged_too(root: Path, log: Log) -> None:
    list_session_files("unknown", root, "*.csv", logger=log.logger)
    found = log.only()
    assert (found["session_id"], found["pattern"], found["file_count"]) == ("unknown", "*.csv", 0)


@requirement("LOG-4")
def test_a_read_is_logged_with_session_path_and_size(root: Path, log: Log) -> None:
    read_session_file(SESSION, "data.txt", root, logger=log.logger)
    assert log.only() == {
        "event": "session.file.read",
        "log_level": "info",
        "session_id": SESSION,
        "path": "data.txt",
        "size_bytes": 5,
    }


@requirement("LOG-4")
@pytest.mark.parametrize(("data", "size"), [(b"123", 3), ("Hello 世界", 12), ("", 0)])
def test_a_write_is_logged_with_session_path_and_size_in_bytes(
    root: Path, log: Log, data: bytes | str, size: int
) -> None:
    write_session_file(SESSION, "output.txt", data, root, logger=log.logger)
    assert log.events()[-1] == {
        "event": "session.file.write",
        "log_level": "info",
        "session_id": SESSION,
        "path": "output.txt",
        "size_bytes": size,
    }


@requirement("LOG-5")
@pytest.mark.parametrize("recursive", [True, False])
def test_a_deletion_is_logged_with_session_path_and_whether_it_was_recursive(
    root: Path, log: Log, recursive: bool
) -> None:
    delete_session_path(SESSION, "data.txt", root, recursive=recursive, logger=log.logger)
    assert log.only() == {
        "event": "session.file.delete",
        "log_level": "info",
        "session_id": SESSION,
        "path": "data.txt",
        "recursive": recursive,
    }


@requirement("LOG-1")
def test_a_session_is_created_once_and_retrieved_afterwards(tmp_path: Path, log: Log) -> None:
    root = tmp_path / "fresh"
    for _ in range(3):
        write_session_file("new", "f", b"", root, logger=log.logger)
    told = [found for found in log.events() if not found["event"].startswith("session.file.")]
    assert [found["event"] for found in told] == ["session.created", "session.retrieved", "session.retrieved"]
    for found in told:
        assert found == {
            "event": found["event"],
            "log_level": "info",
            "session_id": "new",
            "workspace_path": str(root / "new"),
        }


@requirement("LOG-1")
def test_sessions_log_creating_and_retrieving(tmp_path: Path, log: Log) -> None:
    sessions = WorkspaceManager(tmp_path / "fresh", logger=log.logger)
    sessions.create("one").close()
    sessions.get_workspace("one").close()
    sessions.get_workspace("two").close()
    assert [(found["event"], found["session_id"]) for found in log.events()] == [
        ("session.created", "one"),
        ("session.retrieved", "one"),
        ("session.created", "two"),
    ]


@requirement("LOG-11")
def test_what_fails_is_not_logged_as_done(root: Path, log: Log) -> None:
    attempts: tuple[Callable[[], object], ...] = (
        lambda: read_session_file(SESSION, "missing", root, logger=log.logger),
        lambda: delete_session_path(SESSION, "missing", root, logger=log.logger),
        lambda: write_session_file(SESSION, "data.txt", b"", root, overwrite=False, logger=log.logger),
        lambda: read_session_file("no/id", "f", root, logger=log.logger),
    )
    for attempt in attempts:
        with pytest.raises((OSError, ValueError)):
            attempt()
    assert [found["event"] for found in log.events() if "file" in found["event"]] == []


@requirement("LOG-11")
def test_everything_works_without_a_logger_and_sets_nothing_up(root: Path) -> None:
    loggers = [logging.getLogger(name) for name in (None, "carrel")]
    before = [(found.level, list(found.handlers), found.propagate) for found in loggers]
    read_session_file(SESSION, "data.txt", root)
    list_session_files(SESSION, root)
    delete_session_path(SESSION, "data.txt", root)
    with pytest.raises(ValueError, match="escapes"):
        read_session_file(SESSION, "../x", root)
    assert [(found.level, list(found.handlers), found.propagate) for found in loggers] == before


# Refusals


@requirement("LOG-10", "LOG-12")
@pytest.mark.parametrize("session", [SESSION, "unknown"])
@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("../../../etc/passwd", "path_escape"),
        ("/etc/passwd", "path_absolute"),
        ("C:x", "path_absolute"),
        ("a\0b", "path_invalid"),
    ],
)
def test_a_refusal_is_a_warning_with_session_operation_and_path_as_asked(
    root: Path, log: Log, path: str, problem: str, session: str
) -> None:
    for operation, attempt in (
        ("read", lambda: read_session_file(session, path, root, logger=log.logger)),
        ("remove", lambda: delete_session_path(session, path, root, logger=log.logger)),
    ):
        with pytest.raises(ValueError, match="path"):
            attempt()
        assert log.events()[-1] == {
            "event": f"security.{problem}",
            "log_level": "warning",
            "session_id": session,
            "operation": operation,
            "path": path.replace("\0", "\\x00"),
        }
    assert len(log.events()) == 2


@requirement("LOG-12", "LOG-10")
def test_a_link_that_leads_out_is_a_warning(root: Path, log: Log) -> None:
    plant(root / SESSION, "link => /etc/passwd")
    with pytest.raises(ValueError, match="escapes"):
        write_session_file(SESSION, "link", b"", root, logger=log.logger)
    found = log.events()[-1]
    assert (found["event"], found["operation"], found["path"]) == ("security.path_escape", "write", "link")


# The gate


def test_every_operation_of_the_gate_logs_its_event(directory: Path, log: Log) -> None:
    with Workspace.open(directory, session_id="s", logger=log.logger) as workspace:
        calls: tuple[tuple[str, Callable[[], object]], ...] = (
            ("write", lambda: workspace.write("f", "text")),
            ("append", lambda: workspace.append("f", "!")),
            ("edit", lambda: workspace.edit("f", "text", "words")),
            ("write", lambda: workspace.write_chunks("g", [b"12"])),
            ("read", lambda: workspace.read("f")),
            ("read", lambda: workspace.read_with_info("f")),
            ("read", lambda: workspace.read_text("f")),
            ("read", lambda: workspace.read_lines("f")),
            ("read", lambda: list(workspace.read_chunks("f"))),
            ("list", workspace.list),
            ("list", lambda: list(workspace.walk())),
            ("list", lambda: workspace.glob("*")),
            ("list", workspace.list_files),
            ("search", lambda: workspace.search("words")),
            ("mkdir", lambda: workspace.mkdir("d")),
            ("copy", lambda: workspace.copy("f", "d/f")),
            ("move", lambda: workspace.move("g", "h")),
            ("delete", lambda: workspace.remove("h")),
            ("archive", lambda: list(workspace.archive("d"))),
            ("extract", lambda: workspace.extract(bytes(1024), "d")),
        )
        for number, (name, call) in enumerate(calls, 1):
            call()
            assert len(log.events()) == number
            assert log.events()[-1]["event"] == f"session.file.{name}"
    assert {found["session_id"] for found in log.events()} == {"s"}
    assert all("path" in found or "pattern" in found for found in log.events())


@requirement("LOG-4")
def test_lines_are_logged_by_their_size_in_bytes(directory: Path, log: Log) -> None:
    (directory / "f").write_text("é\nsecond\n")
    with Workspace.open(directory, logger=log.logger) as workspace:
        workspace.read_lines("f", count=1)
    assert log.only()["size_bytes"] == 3


@pytest.mark.parametrize(
    "name",
    [b"new\nline", b"\x1b[31mred", "\u202eevil".encode(), b"caf\xe9", b"tab\t", "\u2028".encode(), b"\x7f"],
)
def test_a_file_of_any_name_makes_one_line_for_each_event(
    directory: Path, caplog: pytest.LogCaptureFixture, name: bytes
) -> None:
    path = os.fsdecode(name)
    with (
        caplog.at_level(logging.INFO, logger="carrel"),
        Workspace.open(directory, session_id="s") as workspace,
    ):
        workspace.write(path, b"in")
        workspace.read(path)
        workspace.move(path, path + "2")
        workspace.remove(path + "2")
        with pytest.raises(ValueError, match="escapes"):
            workspace.read("../" + path)
    lines = [record.getMessage() for record in caplog.records if record.name == "carrel"]
    assert len(lines) == 5
    assert all(line.isprintable() and line.isascii() for line in lines)
    assert caplog.text.count("\n") == 5


@requirement("R-04", "W-17")
def test_no_event_tells_a_path_of_the_host_but_the_workspace_path(tmp_path: Path, log: Log) -> None:
    sessions = WorkspaceManager(tmp_path / "fresh", logger=log.logger)
    with sessions.get_workspace("one") as workspace:
        workspace.write("sub/f", b"in")
        workspace.copy("sub", "copy", recursive=True)
        workspace.read("sub/f")
        workspace.list("sub")
        workspace.search("in")
        workspace.remove("sub", recursive=True)
        with pytest.raises(ValueError, match="escapes"):
            workspace.read("../x")
    for found in log.events():
        shown = {name: value for name, value in found.items() if name != "workspace_path"}
        assert str(tmp_path) not in repr(shown)
        assert ("workspace_path" in found) == (found["event"] in ("session.created", "session.retrieved"))
