"""Nobody undoes what somebody else did: versions that are expected, and read with the content."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from carrel import AccessMode, Limits, PathRule, SandboxPolicy, Workspace
from carrel.audit.event import Event
from carrel.audit.journal import MemoryJournal
from carrel.errors import ChangedError, ExistsError, LimitError, MissingError
from carrel.sessions.manager import WorkspaceManager
from tests.workspace.planting import plant, snapshot

STALE = "1-1-1"

Act = Callable[[Workspace, str, str], object]

ACTS: dict[str, Act] = {
    "write": lambda workspace, path, version: workspace.write(path, b"new", if_version=version),
    "write by chunks": lambda workspace, path, version: workspace.write_chunks(
        path, [b"n", b"ew"], if_version=version
    ),
    "edit": lambda workspace, path, version: workspace.edit(path, "in", "out", if_version=version),
    "append": lambda workspace, path, version: workspace.append(path, b"new", if_version=version),
    "remove": lambda workspace, path, version: workspace.remove(path, if_version=version),
    "remove all": lambda workspace, path, version: workspace.remove(path, recursive=True, if_version=version),
    "move": lambda workspace, path, version: workspace.move(path, "moved", if_version=version),
}
every_act = pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)


def seen(workspace: Workspace, path: str) -> str:
    return workspace.stat(path, follow_symlinks=False).version


# Expected versions


@every_act
def test_the_version_that_was_seen_is_changed(workspace: Workspace, directory: Path, act: Act) -> None:
    plant(directory, "f")
    act(workspace, "f", seen(workspace, "f"))
    assert snapshot(directory).get("f") != b"in"


@every_act
def test_another_version_is_left_and_the_error_tells_which(
    workspace: Workspace, directory: Path, act: Act
) -> None:
    before = workspace.write("f", b"older").version
    plant(directory, "f")
    with pytest.raises(ChangedError, match="'f' was changed in the meantime") as caught:
        act(workspace, "f", before)
    assert caught.value.version == seen(workspace, "f")
    assert caught.value.path == "f"
    assert snapshot(directory) == {"f": b"in"}
    act(workspace, "f", caught.value.version or "")


@every_act
def test_a_refused_change_leaves_no_trace_in_the_journal(tmp_path: Path, act: Act) -> None:
    with WorkspaceManager(tmp_path / "sessions").create("s") as workspace:
        workspace.write("f", b"in")
        used = workspace.usage()
        with pytest.raises(ChangedError):
            act(workspace, "f", STALE)
        assert [event.operation for event in workspace.changes()] == ["write"]
        assert workspace.usage() == used == workspace.recount()


@pytest.mark.parametrize("path", ["missing", "missing/f", "dangling"])
def test_nothing_is_made_by_an_append_to_a_version_that_is_gone(
    workspace: Workspace, directory: Path, path: str
) -> None:
    plant(directory, "dangling => nothing")
    before = snapshot(directory)
    with pytest.raises(ChangedError, match=f"'{path}' was changed in the meantime") as caught:
        workspace.append(path, b"new", if_version=STALE)
    assert caught.value.version is None
    assert snapshot(directory) == before


@pytest.mark.parametrize("recursive", [True, False])
def test_what_is_gone_cannot_be_removed_or_moved_unless_by_force(
    workspace: Workspace, recursive: bool
) -> None:
    with pytest.raises(MissingError):
        workspace.remove("missing", recursive=recursive, if_version=STALE)
    with pytest.raises(MissingError):
        workspace.move("missing", "moved", if_version=STALE)
    workspace.remove("missing", recursive=recursive, force=True, if_version=STALE)


def test_force_removes_no_other_version(workspace: Workspace, directory: Path) -> None:
    plant(directory, "f")
    with pytest.raises(ChangedError):
        workspace.remove("f", force=True, if_version=STALE)
    assert snapshot(directory) == {"f": b"in"}


def test_a_change_by_the_host_is_noticed_by_every_operation(workspace: Workspace, directory: Path) -> None:
    before = workspace.write("f", b"one").version
    (directory / "f").write_bytes(b"in and more")
    for act in ACTS.values():
        with pytest.raises(ChangedError):
            act(workspace, "f", before)
    assert snapshot(directory) == {"f": b"in and more"}


def test_what_is_no_file_is_not_opened_to_look_at_its_version(workspace: Workspace, directory: Path) -> None:
    os.mkfifo(directory / "fifo")
    with pytest.raises(ChangedError):
        workspace.remove("fifo", if_version=STALE)
    workspace.move("fifo", "moved", if_version=seen(workspace, "fifo"))
    workspace.remove("moved", if_version=seen(workspace, "moved"))
    assert snapshot(directory) == {}


@pytest.mark.parametrize("mode", [0, 0o200, 0o400])
def test_a_file_is_removed_and_moved_whatever_its_mode(unprivileged: Path, mode: int) -> None:
    plant(unprivileged, "f")
    (unprivileged / "f").chmod(mode)
    with Workspace.open(unprivileged) as workspace:
        workspace.move("f", "g", if_version=seen(workspace, "f"))
        workspace.remove("g", if_version=seen(workspace, "g"))
        assert workspace.list() == []


# From one rule to another


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    plant(tmp_path, "shelf/book = text")
    return tmp_path / "shelf"


class Meddler(MemoryJournal):
    """Changes a file when a copy of it is recorded, after it was read and before it is removed."""

    meddle: Callable[[], object] | None = None

    def record(self, *events: Event) -> None:
        super().record(*events)
        if self.meddle and any(event.operation == "copy" for event in events):
            self.meddle()


@pytest.fixture
def meddler() -> Meddler:
    return Meddler()


@pytest.fixture
def wide(directory: Path, shelf: Path, meddler: Meddler) -> Iterator[Workspace]:
    """A workspace with a second directory that may be written."""
    rule = PathRule(str(shelf), AccessMode.READ_WRITE)
    policy = SandboxPolicy.for_workspace(directory, allow=[rule])
    with Workspace.open(directory, policy=policy, journal=meddler) as opened:
        yield opened


def test_only_the_version_that_was_seen_moves_to_another_rule(
    wide: Workspace, directory: Path, shelf: Path
) -> None:
    book = str(shelf / "book")
    with pytest.raises(ChangedError) as caught:
        wide.move(book, "new/book", if_version=STALE)
    assert caught.value.version == seen(wide, book)
    assert (snapshot(directory), snapshot(shelf)) == ({}, {"book": b"text"})
    wide.move(book, "book", if_version=seen(wide, book))
    assert (snapshot(directory), snapshot(shelf)) == ({"book": b"text"}, {})


def test_what_changes_while_it_moves_to_another_rule_stays_and_its_copy_goes(
    wide: Workspace, directory: Path, shelf: Path, meddler: Meddler
) -> None:
    book = str(shelf / "book")
    version = seen(wide, book)
    meddler.meddle = partial((shelf / "book").write_bytes, b"theirs")
    with pytest.raises(ChangedError):
        wide.move(book, "book", if_version=version)
    assert (snapshot(directory), snapshot(shelf)) == ({}, {"book": b"theirs"})


def test_what_changes_while_it_replaces_something_of_another_rule_stays(
    wide: Workspace, directory: Path, shelf: Path, meddler: Meddler
) -> None:
    plant(directory, "book = old")
    book = str(shelf / "book")
    version = seen(wide, book)
    with pytest.raises(ExistsError):
        wide.move(book, "book", if_version=version)
    meddler.meddle = partial((shelf / "book").write_bytes, b"theirs")
    with pytest.raises(ChangedError):
        wide.move(book, "book", overwrite=True, if_version=version)
    assert (snapshot(directory), snapshot(shelf)) == ({"book": b"text"}, {"book": b"theirs"})


# Content and version at once


def test_content_and_version_are_read_at_once(workspace: Workspace) -> None:
    written = workspace.write("sub/f", b"0123456789")
    info, content = workspace.read_with_info("sub/f")
    assert (info, content) == (written, b"0123456789")
    assert workspace.read_with_info("sub/f", offset=2, length=3) == (written, b"234")
    workspace.write("sub/f", b"next", if_version=info.version)


def test_a_window_that_cannot_be_is_refused(workspace: Workspace) -> None:
    for window in ({"offset": -1}, {"length": -1}):
        with pytest.raises(ValueError, match="cannot be negative"):
            workspace.read_with_info("f", **window)


def test_no_more_is_read_than_the_limit(directory: Path) -> None:
    plant(directory, "f = 0123456789")
    with Workspace.open(directory, limits=Limits(read_bytes=9)) as workspace:
        with pytest.raises(LimitError):
            workspace.read_with_info("f")
        assert workspace.read_with_info("f", offset=1)[1] == b"123456789"


def test_the_version_is_never_newer_than_the_content(
    workspace: Workspace, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changed between the look and the read, the content is newer, so a write with the version is refused."""
    plant(directory, "f = older")
    real = os.fstat

    def look_and_change(fd: int) -> os.stat_result:
        found = real(fd)
        monkeypatch.setattr(os, "fstat", real)
        (directory / "f").write_bytes(b"newer content")
        return found

    monkeypatch.setattr(os, "fstat", look_and_change)
    info, content = workspace.read_with_info("f")
    assert content == b"newer content"
    assert info.version != seen(workspace, "f")
    with pytest.raises(ChangedError):
        workspace.write("f", b"mine", if_version=info.version)


# Times


def test_stat_tells_the_times_that_the_host_knows(workspace: Workspace, directory: Path) -> None:
    plant(directory, "f", "link => f", "d/")
    os.utime(directory / "f", ns=(10**18, 2 * 10**18))
    info = workspace.stat("f")
    assert (info.accessed_ns, info.modified_ns) == (10**18, 2 * 10**18)
    for path in ("f", "link", "d"):
        found = workspace.stat(path, follow_symlinks=False)
        changed = os.stat(directory / path, follow_symlinks=False).st_ctime_ns
        assert found.created_ns is None or changed - 60 * 10**9 < found.created_ns <= changed


def test_a_host_that_does_not_tell_when_a_file_was_made_is_no_problem(
    workspace: Workspace, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(directory, "f")
    for answer in (None, lambda *args: -1, lambda *args: 0):
        monkeypatch.setattr("carrel.fs.syscalls._statx", answer)
        assert workspace.stat("f").created_ns is None


def test_times_that_were_not_asked_for_make_no_difference(workspace: Workspace) -> None:
    info = workspace.write("f", b"in")
    other = replace(info, accessed_ns=1, created_ns=2)
    assert other == info
    assert hash(other) == hash(info)
    assert replace(info, modified_ns=1) != info
