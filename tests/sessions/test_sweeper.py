"""`WorkspaceManager.sweep`: what is over goes, what is used stays, and a kill at any point loses nothing."""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import FrameType, SimpleNamespace
from typing import Any, NoReturn

import pytest

from carrel.audit.logger import SandboxLogger
from carrel.errors import SessionMissingError
from carrel.sessions.manager import WorkspaceManager
from carrel.sessions.sweeper import SweepResult
from carrel.storage.local import lock
from tests.depth import STRIDE
from tests.faults.inject import failing, first, open_descriptors
from tests.requirements import requirement
from tests.sessions.children import in_processes, killed_before_step, paused
from tests.sessions.stand_ins import HOUR, Events, SetClock
from tests.workspace.planting import plant, snapshot
from tests.workspace.traces import (
    change_record,
    drafts_in,
    records_in,
    require_whole,
    state_of,
    states_in,
    trash_in,
    workspaces_in,
)

DAY = 24 * HOUR


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "sessions"


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def manager(root: Path, clock: SetClock, events: Events) -> Iterator[WorkspaceManager]:
    with WorkspaceManager(root, clock=clock, logger=SandboxLogger(events)) as made:
        yield made


@pytest.fixture
def never_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for the lock of a session is a failure."""

    def sleep(seconds: float) -> NoReturn:
        pytest.fail("somebody waited for the lock of a session")

    monkeypatch.setattr(lock, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))


def make(manager: WorkspaceManager, *names: str, content: bytes = b"content") -> None:
    for name in names:
        with manager.create(name) as workspace:
            workspace.write("d/f", content)


# What goes and what stays


@requirement("PR-01", "TTL-02")
def test_an_idle_session_is_deleted_and_one_that_was_used_stays(
    manager: WorkspaceManager, clock: SetClock, root: Path
) -> None:
    make(manager, "old", "young")
    clock.advance(24 * HOUR)
    manager.extend("young", DAY)
    clock.advance(HOUR)
    result = manager.sweep()
    assert (result.deleted, result.skipped, result.errors) == (["old"], {}, {})
    assert result.reclaimed_bytes > 0
    require_whole(root, "young")
    assert snapshot(root / "young") == {"d": None, "d/f": b"content"}


@requirement("PR-02")
def test_nothing_that_was_used_lately_is_deleted(
    manager: WorkspaceManager, clock: SetClock, root: Path
) -> None:
    make(manager, "a")
    clock.advance(22.9 * HOUR)
    make(manager, "b")
    clock.advance(0.1 * HOUR)
    assert manager.sweep() == SweepResult()
    require_whole(root, "a", "b")


@requirement("PR-06")
def test_the_idle_time_can_be_given_and_goes_before_that_of_each_session(
    manager: WorkspaceManager, clock: SetClock, root: Path
) -> None:
    make(manager, "old")
    manager.create("for-ever", ttl_seconds=None).close()
    clock.advance(3 * HOUR)
    make(manager, "young")
    manager.create("brief", ttl_seconds=1).close()
    clock.advance(2 * HOUR)
    assert manager.sweep(idle_seconds=3 * HOUR).deleted == ["for-ever", "old"]
    require_whole(root, "brief", "young")
    assert manager.sweep().deleted == ["brief"]


@pytest.mark.parametrize("sessions", [100, 101])
@pytest.mark.parametrize("idle_seconds", [None, 0.0])
def test_all_pages_are_swept(root: Path, clock: SetClock, sessions: int, idle_seconds: float | None) -> None:
    with WorkspaceManager(root, clock=clock, logger=SandboxLogger(Events())) as manager:
        names = [f"s{number:03}" for number in range(sessions)]
        for name in names:
            manager.create(name).close()
        with manager.open(names[0]):
            clock.advance(2 * DAY)
            result = manager.sweep(idle_seconds=idle_seconds)
        assert sorted(result.deleted) == names[1:]
        assert result.skipped == {names[0]: "in_use"}


@requirement("PR-03")
def test_a_dry_run_tells_what_would_go_and_changes_nothing(
    manager: WorkspaceManager, clock: SetClock, root: Path, events: Events
) -> None:
    make(manager, "old", "used", content=b"x" * 1000)
    draft = state_of(root, "old") / ".carrel-draft-old"
    draft.write_bytes(b"")
    os.utime(draft, (0, 0))
    (root / ".carrel/trash/old~1").mkdir()
    with manager.open("used"):
        clock.advance(30 * HOUR)
        manager.create("young").close()
        result = manager.sweep(dry_run=True)
        clock.advance(-30 * HOUR)
    clock.advance(30 * HOUR)
    assert (result.deleted, result.skipped, result.dry_run) == (["old"], {"used": "in_use"}, True)
    assert result.reclaimed_bytes == 1000
    assert str(result) == "Would prune 1 session (1 skipped), reclaimed 1000 B"
    assert draft.exists()
    assert trash_in(root) == ["old~1"]
    assert workspaces_in(root) == records_in(root) == states_in(root) == ["old", "used", "young"]
    assert events.named("session.prune.deleted") == []
    assert sorted(manager.sweep().deleted) == ["old", "used"]


@requirement("PR-04", "PR-10")
def test_a_directory_without_a_record_is_skipped_and_kept(
    manager: WorkspaceManager, clock: SetClock, root: Path, events: Events
) -> None:
    plant(root, "system_files/f", "we ird/f", ".hidden/f", "file")
    make(manager, "custom-session")
    clock.advance(30 * HOUR)
    before = snapshot(root / "system_files")
    result = manager.sweep(idle_seconds=0)
    assert (result.deleted, result.skipped) == (["custom-session"], {"system_files": "no_metadata"})
    assert snapshot(root / "system_files") == before
    assert sorted(os.listdir(root)) == [".carrel", ".hidden", "file", "system_files", "we ird"]
    assert events.named("session.prune.skipped") == [{"session_id": "system_files", "reason": "no_metadata"}]


@requirement("PR-07")
@pytest.mark.parametrize("size", [0, 10 * 1024, 3 * 2**20])
def test_a_sweep_tells_how_much_it_gave_back(
    manager: WorkspaceManager, clock: SetClock, root: Path, size: int
) -> None:
    make(manager, "old", content=bytes(size))
    plant(root / "old", "unseen = 12345")
    clock.advance(30 * HOUR)
    result = manager.sweep()
    assert result.reclaimed_bytes == size + 5


@requirement("PR-09")
def test_only_the_given_directory_is_swept(tmp_path: Path, clock: SetClock) -> None:
    managers = [WorkspaceManager(tmp_path / name, clock=clock) for name in ("here", "there")]
    for manager in managers:
        make(manager, "old")
    clock.advance(30 * HOUR)
    assert managers[0].sweep().deleted == ["old"]
    require_whole(tmp_path / "here")
    require_whole(tmp_path / "there", "old")


@requirement("PR-14")
def test_links_lead_a_sweep_nowhere(
    manager: WorkspaceManager, clock: SetClock, root: Path, tmp_path: Path
) -> None:
    plant(tmp_path, "outside/kept")
    make(manager, "old", "swapped")
    plant(root, "link => ../outside", "old/out => ../../outside", "old/d/abs => /tmp")
    os.rename(root / "swapped", tmp_path / "was")
    os.symlink(tmp_path / "outside", root / "swapped")
    clock.advance(30 * HOUR)
    result = manager.sweep()
    assert result.deleted == ["old"]
    assert list(result.errors) == ["swapped"]
    assert "symlink" in result.errors["swapped"]
    assert snapshot(tmp_path / "outside") == {"kept": b"in"}
    assert (root / "link").is_symlink()
    assert (root / "swapped").is_symlink()


# Last use


@pytest.mark.parametrize("source", ["registry", "lease", "ledger", "none"])
def test_the_latest_use_that_anything_tells_of_counts(
    manager: WorkspaceManager, clock: SetClock, root: Path, source: str
) -> None:
    make(manager, "one")
    now, long_ago = clock(), clock() - int(30 * HOUR * 1e9)
    change_record(root, "one", used_ns=now if source == "registry" else long_ago)
    for name in ("lease", "ledger"):
        then = now if source == name else long_ago
        os.utime(state_of(root, "one") / name, ns=(then, then))
    assert manager.sweep().deleted == ([] if source != "none" else ["one"])
    if source != "none":
        assert manager.status("one").record.used_ns == now
        assert manager.list_records()[0].used_ns == now, "the registry has learnt of it"
        clock.advance(25 * HOUR)
        assert manager.sweep().deleted == ["one"]


def test_a_state_that_was_lost_does_not_end_a_session(
    manager: WorkspaceManager, clock: SetClock, root: Path
) -> None:
    make(manager, "one")
    for path in state_of(root, "one").iterdir():
        path.unlink()
    state_of(root, "one").rmdir()
    assert manager.sweep().deleted == []
    with manager.open("one") as workspace:
        assert workspace.read("d/f") == b"content"
        assert workspace.usage().entries == 2
    require_whole(root, "one")


# Records that cannot be


@requirement("PR-05", "M-08")
@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"used_ns": -1}, "corrupted_timestamp"),
        ({"used_ns": 2**62}, "corrupted_timestamp"),
        ({"created_ns": -1}, "corrupted_timestamp"),
        ({"ttl_seconds": -5.0}, "corrupted_timestamp"),
        ({"ttl_seconds": float("inf")}, "corrupted_timestamp"),
        ({"labels": "[]"}, "corrupted_metadata"),
        ({"labels": "{ invalid json }"}, "corrupted_metadata"),
        ({"limits": "{}}"}, "corrupted_metadata"),
        ({"limits": '{"unknown": 1}'}, "corrupted_metadata"),
        ({"epoch": 0}, "corrupted_metadata"),
    ],
    ids=str,
)
def test_a_record_that_cannot_be_read_is_skipped_with_the_reason_and_goes_on_when_it_is_opened(
    manager: WorkspaceManager,
    clock: SetClock,
    root: Path,
    events: Events,
    columns: dict[str, object],
    reason: str,
) -> None:
    make(manager, "bad", "old")
    change_record(root, "bad", **columns)
    clock.advance(30 * HOUR)
    result = manager.sweep()
    assert (result.deleted, result.skipped, result.errors) == (["old"], {"bad": reason}, {})
    assert events.named("session.prune.skipped") == [{"session_id": "bad", "reason": reason}]
    require_whole(root, "bad")
    manager.extend("bad", 60)
    with manager.get_workspace("bad") as workspace:
        assert workspace.read("d/f") == b"content"
    assert manager.sweep() == SweepResult()
    clock.advance(61)
    assert manager.sweep().deleted == ["bad"]
    require_whole(root)


@requirement("PR-13")
def test_a_time_as_text_cannot_be_stored_and_where_it_was_the_session_is_skipped(
    manager: WorkspaceManager, clock: SetClock, root: Path
) -> None:
    make(manager, "bad", "old")
    clock.advance(30 * HOUR)
    naive = "2026-01-01T00:00:00"
    with pytest.raises(sqlite3.IntegrityError):
        change_record(root, "bad", used_ns=naive)
    allow_any_value(root)
    change_record(root, "bad", used_ns=naive)
    result = manager.sweep()
    assert (result.deleted, result.skipped) == (["old"], {"bad": "corrupted_timestamp"})
    assert manager.get_workspace("bad").read("d/f") == b"content"


def allow_any_value(root: Path) -> None:
    """Make the table as an SQLite would have that knows no strict ones."""
    with closing(sqlite3.connect(root / ".carrel/registry.db", isolation_level=None)) as registry:
        registry.execute("PRAGMA writable_schema = ON")
        registry.execute(
            "UPDATE sqlite_schema SET sql = replace(sql, 'WITHOUT ROWID, STRICT', 'WITHOUT ROWID')"
        )
        registry.execute("PRAGMA writable_schema = RESET")


@requirement("M-08")
def test_a_use_in_the_future_counts_as_now(manager: WorkspaceManager, clock: SetClock, root: Path) -> None:
    make(manager, "one")
    future = clock() + int(1000 * HOUR * 1e9)
    change_record(root, "one", used_ns=future)
    for name in ("lease", "ledger"):
        os.utime(state_of(root, "one") / name, ns=(future, future))
    assert manager.status("one").record.used_ns <= clock()
    assert manager.sweep().deleted == []
    assert manager.list_records()[0].used_ns <= clock()
    clock.advance(25 * HOUR)
    assert manager.sweep().deleted == ["one"]


@requirement("M-08")
def test_nothing_that_a_session_holds_disturbs_a_sweep(
    manager: WorkspaceManager, clock: SetClock, root: Path
) -> None:
    make(manager, "one", "two")
    plant(root / "one", ".metadata.json = []", "lease => /etc/passwd", "ledger/", ".carrel/registry.db = {}")
    os.mkfifo(root / "one" / "fifo")
    (root / "one" / "shut").mkdir()
    (root / "one" / "shut" / "f").write_bytes(b"x")
    (root / "one" / "shut").chmod(0)
    manager.open("one").close()
    clock.advance(30 * HOUR)
    assert sorted(manager.sweep().deleted) == ["one", "two"]
    require_whole(root)


@requirement("M-06")
def test_a_use_that_cannot_be_noted_hinders_nobody(
    manager: WorkspaceManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "utime", failing(os.utime, errno.EROFS))
    with manager.create("one") as workspace:
        workspace.write("f", b"in")
    assert manager.open("one").read("f") == b"in"


# In use


@requirement("PR-15")
@pytest.mark.usefixtures("never_waits")
def test_a_session_that_this_process_has_open_is_skipped(
    manager: WorkspaceManager, clock: SetClock, root: Path, events: Events
) -> None:
    make(manager, "old", "used")
    with manager.open("used") as workspace:
        clock.advance(30 * HOUR)
        result = manager.sweep()
        assert (result.deleted, result.skipped) == (["old"], {"used": "in_use"})
        assert ("warning", "session.prune.skipped", {"session_id": "used", "reason": "in_use"}) in events.all
        workspace.write("g", b"goes on")
    assert manager.sweep().deleted == [], "it was used until it was closed"
    clock.advance(25 * HOUR)
    assert manager.sweep().deleted == ["used"]
    require_whole(root)


@requirement("PR-15")
@pytest.mark.usefixtures("never_waits")
def test_a_session_that_another_process_has_open_is_skipped_until_that_is_killed(
    manager: WorkspaceManager, clock: SetClock, root: Path
) -> None:
    make(manager, "used")
    clock.advance(30 * HOUR)

    def use(pause: Callable[[], None]) -> None:
        with WorkspaceManager(root).open("used", limits=None):
            pause()

    with paused(use):
        clock.advance(30 * HOUR)
        assert manager.sweep().skipped == {"used": "in_use"}
    assert manager.sweep().deleted == ["used"]
    require_whole(root)


@pytest.mark.usefixtures("never_waits")
@pytest.mark.parametrize("where", ["thread", "process"])
def test_a_session_whose_lock_is_held_is_skipped_without_waiting(
    manager: WorkspaceManager, clock: SetClock, root: Path, where: str
) -> None:
    make(manager, "busy", "old")
    clock.advance(30 * HOUR)
    if where == "thread":
        with manager._store.claim("busy"):
            result = manager.sweep()
    else:

        def claim(pause: Callable[[], None]) -> None:
            with WorkspaceManager(root)._store.claim("busy"):
                pause()

        with paused(claim):
            result = manager.sweep()
    assert (result.deleted, result.skipped) == (["old"], {"busy": "in_use"})
    require_whole(root, "busy")
    assert manager.sweep().deleted == ["busy"]


def test_skipping_costs_no_descriptor(manager: WorkspaceManager, clock: SetClock) -> None:
    make(manager, "busy", "used")
    manager.sweep()
    with manager.open("used"), manager._store.claim("busy"):
        clock.advance(30 * HOUR)
        held = open_descriptors()
        for _ in range(5):
            assert len(manager.sweep().skipped) == 2
        assert open_descriptors() == held


def test_a_session_that_is_opened_while_it_is_judged_is_either_opened_or_gone(
    manager: WorkspaceManager, clock: SetClock, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(manager, "one")
    clock.advance(30 * HOUR)
    answers: list[str] = []

    def open_it() -> None:
        try:
            manager.open("one").close()
        except SessionMissingError:
            answers.append("missing")
        else:
            answers.append("opened")

    opener = threading.Thread(target=open_it)
    monkeypatch.setattr(os, "rename", first(os.rename, opener.start))
    assert manager.sweep().deleted == ["one"]
    opener.join()
    assert answers == ["missing"]
    require_whole(root)


# Errors


@requirement("PR-08")
@pytest.mark.parametrize(
    ("number", "problem"), [(errno.EACCES, "Access denied"), (errno.EIO, "Input/output error")]
)
def test_a_session_that_cannot_be_deleted_is_an_error_and_the_rest_goes_on(
    manager: WorkspaceManager,
    clock: SetClock,
    root: Path,
    events: Events,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    problem: str,
) -> None:
    make(manager, "a", "stuck", "z")
    clock.advance(30 * HOUR)
    is_stuck: Callable[..., bool] = lambda name, *rest, **more: name == b"stuck"  # noqa: E731
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", failing(os.rename, number, when=is_stuck))
        result = manager.sweep()
    assert result.deleted == ["a", "z"]
    assert list(result.errors) == ["stuck"]
    assert problem in result.errors["stuck"]
    assert str(root.parent) not in result.errors["stuck"]
    ((level, _, fields),) = [found for found in events.all if found[1] == "session.prune.error"]
    assert (level, fields) == ("error", {"session_id": "stuck", "error": result.errors["stuck"]})
    assert str(result).startswith("Pruned 2 sessions (1 error), reclaimed ")
    require_whole(root, "stuck")
    assert snapshot(root / "stuck") == {"d": None, "d/f": b"content"}
    assert manager.sweep().deleted == ["stuck"]
    require_whole(root)


def test_what_cannot_be_removed_waits_in_the_trash(
    manager: WorkspaceManager, clock: SetClock, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(manager, "one")
    clock.advance(30 * HOUR)
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", failing(os.unlink, errno.EPERM, when=lambda name, **more: name == "f"))
        assert manager.sweep().deleted == ["one"]
        assert len(trash_in(root)) == 1
        assert workspaces_in(root) == records_in(root) == states_in(root) == []
    manager.sweep()
    require_whole(root)


# What it says


@requirement("PR-12")
@pytest.mark.parametrize(
    ("result", "text"),
    [
        (SweepResult(deleted=["a", "b"], reclaimed_bytes=2**20), "Pruned 2 sessions, reclaimed 1.0 MB"),
        (
            SweepResult(deleted=["a", "b"], skipped={"c": ""}, errors={"d": ""}, reclaimed_bytes=1_468_006),
            "Pruned 2 sessions (1 skipped, 1 error), reclaimed 1.4 MB",
        ),
        (
            SweepResult(skipped={"c": "", "e": ""}, errors={"d": "", "f": ""}),
            "Pruned 0 sessions (2 skipped, 2 errors), reclaimed 0 B",
        ),
        (
            SweepResult(dry_run=True, deleted=["a"], reclaimed_bytes=500),
            "Would prune 1 session, reclaimed 500 B",
        ),
        (SweepResult(deleted=["a"], reclaimed_bytes=1024), "Pruned 1 session, reclaimed 1.0 KB"),
        (SweepResult(deleted=["a"], reclaimed_bytes=1023), "Pruned 1 session, reclaimed 1023 B"),
        (SweepResult(deleted=["a"], reclaimed_bytes=3 * 2**30), "Pruned 1 session, reclaimed 3.0 GB"),
        (SweepResult(deleted=["a"], reclaimed_bytes=5000 * 2**30), "Pruned 1 session, reclaimed 5000.0 GB"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_result_reads_as_a_sentence(result: SweepResult, text: str) -> None:
    assert str(result) == text


@requirement("LOG-7")
def test_a_sweep_logs_each_step(
    manager: WorkspaceManager, clock: SetClock, events: Events, tmp_path: Path
) -> None:
    make(manager, "old")
    clock.advance(30 * HOUR)
    events.all.clear()
    manager.sweep(idle_seconds=24 * HOUR)
    found = [(level, name.removeprefix("session.prune."), fields) for level, name, fields in events.all]
    age = found[1][2].pop("age_hours")
    assert found == [
        ("info", "started", {"dry_run": False, "threshold_hours": 24.0}),
        ("info", "candidate", {"session_id": "old"}),
        ("info", "deleted", {"session_id": "old", "reclaimed_bytes": 7}),
        (
            "info",
            "completed",
            {
                "dry_run": False,
                "deleted_count": 1,
                "skipped_count": 0,
                "error_count": 0,
                "reclaimed_bytes": 7,
                "container_count": 0,
            },
        ),
    ]
    assert 29.9 < age < 30.1
    assert str(tmp_path) not in str(events.all)


# Leftovers


def test_a_sweep_clears_what_killed_processes_left(manager: WorkspaceManager, root: Path) -> None:
    make(manager, "one", "two", "lost")
    for name, age in (("old", 100), ("young", 0)):
        draft = state_of(root, "one") / f".carrel-draft-{name}"
        draft.write_bytes(b"")
        os.utime(draft, (time.time() - age, time.time() - age))
    plant(root / ".carrel", "sessions/orphan/ledger = ", "trash/one~abc/d/f", "trash/strange")
    os.rename(root / "lost", root / ".carrel/trash/lost~abc")
    assert manager.sweep() == SweepResult()
    assert drafts_in(root) == [state_of(root, "one") / ".carrel-draft-young"]
    assert records_in(root) == states_in(root) == workspaces_in(root) == ["one", "two"]
    assert [name for name in trash_in(root) if name != "strange"] == []


def test_a_record_that_cannot_be_read_and_has_no_workspace_is_forgotten(
    manager: WorkspaceManager, root: Path
) -> None:
    make(manager, "one", "two")
    change_record(root, "one", used_ns=-1)
    change_record(root, "two", session_id="../two")
    for name in ("one", "two"):
        (root / name).rename(root / ".carrel/trash" / name)
    manager.sweep()
    assert records_in(root) == ["../two"], "an id that is none is left to be looked at"
    assert workspaces_in(root) == states_in(root) == trash_in(root) == []


# Killed


def step_before(step: Callable[[], None], owner: Any, name: str) -> None:
    """Let *step* come before every call, and nothing undo that: the process ends soon."""
    really = getattr(owner, name)

    def stepped(*args: Any, **kwargs: Any) -> Any:
        step()
        return really(*args, **kwargs)

    setattr(owner, name, stepped)


STEPS = 80
"""More than a sweep of this takes."""


@pytest.mark.deeper
@pytest.mark.parametrize("final", ["sweep", "create", "delete"])
def test_a_sweep_that_is_killed_at_any_step_is_finished_by_the_next_call(
    tmp_path: Path, clock: SetClock, final: str
) -> None:
    quiet = SandboxLogger(Events())
    for number in range(1, STEPS, STRIDE):
        root = tmp_path / str(number)
        with WorkspaceManager(root, clock=clock, logger=quiet) as manager:
            make(manager, "young")
            with manager.create("old", ttl_seconds=60) as workspace:
                workspace.write("d/f", b"x")
        clock.advance(100)

        def work(step: Callable[[], None], root: Path = root) -> None:
            for name in ("rename", "unlink", "rmdir", "mkdir", "pwrite"):
                step_before(step, os, name)
            with WorkspaceManager(root, clock=clock, logger=quiet) as manager:
                for name in ("remove", "touch", "rewind"):
                    step_before(step, manager._registry, name)
                manager.sweep()

        was_killed = killed_before_step(number, work)
        with WorkspaceManager(root, clock=clock, logger=quiet) as manager:
            if final == "create":
                manager.get_workspace("old").close()
                assert workspaces_in(root) == records_in(root) == states_in(root) == ["old", "young"]
                assert manager.open("old").list() == []
            elif final == "delete":
                manager.delete_workspace("old")
                assert workspaces_in(root) == records_in(root) == states_in(root) == ["young"]
            result = manager.sweep()
            assert result.errors == {}
            expected = ("old", "young") if final == "create" else ("young",)
            require_whole(root, *expected)
            assert snapshot(root / "young") == {"d": None, "d/f": b"content"}
        if not was_killed:
            assert number > 10
            return
    pytest.fail("there are more steps than that")


@pytest.mark.deeper
@pytest.mark.parametrize("door", ["create", "delete_workspace"])
def test_a_maker_or_deleter_that_is_killed_at_any_step_leaves_a_session_or_none(
    tmp_path: Path, door: str
) -> None:
    quiet = SandboxLogger(Events())
    for number in range(1, STEPS, STRIDE):
        root = tmp_path / str(number)
        with WorkspaceManager(root, logger=quiet) as manager:
            make(manager, "young")
            if door == "delete_workspace":
                make(manager, "one")

        def work(step: Callable[[], None], root: Path = root) -> None:
            for name in ("rename", "unlink", "rmdir", "mkdir", "pwrite", "symlink", "utime"):
                step_before(step, os, name)
            with WorkspaceManager(root, logger=quiet) as manager:
                for name in ("remove", "add"):
                    step_before(step, manager._registry, name)
                getattr(manager, door)("one")

        was_killed = killed_before_step(number, work)
        with WorkspaceManager(root, logger=quiet) as manager:
            there = manager.list_workspaces()
            manager.sweep()
            require_whole(root, *there)
            assert manager.get_workspace("one").usage().entries in (0, 2)
            require_whole(root, "one", "young")
        if not was_killed:
            assert number > 3
            return
    pytest.fail("there are more steps than that")


# At once


@pytest.mark.race
def test_two_sweepers_delete_each_session_once(root: Path, clock: SetClock) -> None:
    names = [f"s{number:02}" for number in range(40)]
    quiet = SandboxLogger(Events())
    with WorkspaceManager(root, clock=clock, logger=quiet) as manager:
        make(manager, *names)
        clock.advance(30 * HOUR)
        make(manager, "young")

    def work(number: int) -> tuple[list[str], list[dict[str, Any]], dict[str, str]]:
        events = Events()
        with WorkspaceManager(root, clock=clock, logger=SandboxLogger(events)) as manager:
            result = manager.sweep()
        return result.deleted, events.named("session.prune.deleted"), result.errors

    answers = in_processes(3, work)
    assert sorted(name for deleted, _, _ in answers for name in deleted) == names
    assert sum(len(logged) for _, logged, _ in answers) == len(names)
    assert [errors for _, _, errors in answers] == [{}, {}, {}]
    with WorkspaceManager(root, clock=clock, logger=quiet) as manager:
        manager.sweep()
    require_whole(root, "young")


@pytest.mark.thorough
@requirement("PR-11")
@pytest.mark.race
def test_a_sweep_of_a_thousand_sessions_holds_nobody_up(
    root: Path, clock: SetClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the middle of it, others write, make, open and delete, and wait for nothing that the sweep has."""
    count = 1_000
    manager = WorkspaceManager(root, clock=clock, max_sessions=None, logger=SandboxLogger(Events()))
    for number in range(count):
        manager.create(f"s{number:04}").close()
    clock.advance(30 * HOUR)
    workspace = manager.create("used")
    other = WorkspaceManager(root, clock=clock, max_sessions=None, logger=SandboxLogger(Events()))
    done: list[str] = []

    def live() -> None:
        workspace.write("f", b"in")
        with other.create("brief") as brief:
            brief.write("f", b"in")
        other.open("brief").close()
        other.delete_workspace("brief")
        done.append("all")

    renames = 0
    really = os.rename

    def rename(source: bytes, target: bytes, **more: int) -> None:
        nonlocal renames
        if source.startswith(b"s"):
            renames += 1
            if renames % 100 == 1:
                thread = threading.Thread(target=live)
                thread.start()
                thread.join()
        really(source, target, **more)

    never_wait = SimpleNamespace(
        sleep=lambda seconds: pytest.fail("somebody waited for a lock"), monotonic=time.monotonic
    )
    monkeypatch.setattr(os, "rename", rename)
    monkeypatch.setattr(lock, "time", never_wait)
    result = manager.sweep()
    assert len(result.deleted) == count
    assert renames == 2 * count, "workspace and state of each"
    assert len(done) == 2 * count // 100
    workspace.close()
    require_whole(root, "used")


# What a sweep costs


def steps(work: Callable[[], object]) -> Counter[str]:
    """How often each function was called by *work*, those of the operating system included."""
    found: Counter[str] = Counter()

    def note(frame: FrameType, event: str, function: Any) -> None:
        if event == "call":
            found[frame.f_code.co_qualname] += 1
        elif event == "c_call" and function.__module__ == os.open.__module__:
            found[function.__qualname__] += 1

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return found


def test_a_dry_run_takes_steps_in_proportion_to_what_is_expired(
    manager: WorkspaceManager, clock: SetClock
) -> None:
    counts = []
    for first_number in (0, 250):
        for number in range(first_number, first_number + 250):
            manager.create(f"s{number}").close()
        clock.advance(10 * DAY)
        counts.append(steps(lambda: manager.sweep(dry_run=True))["SessionRecord.parse"])
        assert len(manager.sweep(dry_run=True).deleted) == first_number + 250
    assert counts[1] <= 2 * counts[0] + 10


def test_a_first_sweep_with_nothing_to_do_claims_no_session(root: Path) -> None:
    counts = []
    for first_number in (0, 20):
        with WorkspaceManager(root) as manager:
            for number in range(first_number, first_number + 20):
                manager.create(f"s{number}").close()
            taken = steps(manager.sweep)
        assert taken["Store._claim"] == 0
        counts.append((taken["SqliteRegistry.get"], taken["Database.connection"]))
    assert counts[0] == counts[1]


@requirement("PR-16")
def test_a_later_sweep_with_nothing_to_do_takes_the_same_steps_however_many_sessions_there_are(
    manager: WorkspaceManager,
) -> None:
    manager.sweep()
    counts = []
    for first_number in (0, 5):
        for number in range(first_number, first_number * 10 + 5):
            manager.create(f"s{number}").close()
        counts.append(steps(manager.sweep))
    assert counts[0] == counts[1]
    assert counts[0]["SqliteRegistry.expired"] == 1


# Full looks


def leave(manager: WorkspaceManager, root: Path) -> None:
    """Leave what only a look at every session finds."""
    make(manager, "drafted", "lost", "bad", "future")
    draft = state_of(root, "drafted") / ".carrel-draft-old"
    draft.write_bytes(b"")
    os.utime(draft, (0, 0))
    os.rename(root / "lost", root / ".carrel/trash/lost~abc")
    change_record(root, "bad", used_ns=-1)
    change_record(root, "future", used_ns=manager._clock() + int(30 * DAY * 1e9))
    plant(root, "strange/f", ".carrel/sessions/orphan/ledger = ")


def looked_at_all(manager: WorkspaceManager, root: Path, result: SweepResult) -> bool:
    """Whether a sweep dealt with everything that `leave` left, or with none of it."""
    future = next(each for each in manager.list_records() if each.session_id == "future")
    found = {
        drafts_in(root) == [],
        "lost" not in records_in(root),
        "orphan" not in states_in(root),
        future.used_ns <= manager._clock(),
        result.skipped == {"bad": "corrupted_timestamp", "strange": "no_metadata"},
    }
    assert len(found) == 1
    return found == {True}


def test_only_the_first_sweep_of_an_hour_looks_at_every_session(
    manager: WorkspaceManager, clock: SetClock, root: Path
) -> None:
    manager.sweep()
    leave(manager, root)
    clock.advance(HOUR / 2)
    assert not looked_at_all(manager, root, manager.sweep())
    assert trash_in(root) == [], "the trash is emptied by every sweep"
    clock.advance(HOUR / 2)
    assert looked_at_all(manager, root, manager.sweep())


def test_the_first_sweep_of_a_manager_looks_at_every_session(
    manager: WorkspaceManager, clock: SetClock, root: Path
) -> None:
    manager.sweep()
    leave(manager, root)
    with WorkspaceManager(root, clock=clock, logger=SandboxLogger(Events())) as other:
        assert looked_at_all(other, root, other.sweep())


@pytest.mark.parametrize("why", ["clock set back", "idle time given"])
def test_a_sweep_looks_at_every_session_within_the_hour_for_a_reason(
    manager: WorkspaceManager, clock: SetClock, root: Path, why: str
) -> None:
    manager.sweep()
    leave(manager, root)
    clock.advance(-10 * HOUR if why == "clock set back" else 1)
    idle_seconds = 300 * DAY if why == "idle time given" else None
    assert looked_at_all(manager, root, manager.sweep(idle_seconds=idle_seconds))


def test_a_dry_run_tells_of_what_it_cannot_judge_and_does_not_put_off_the_next_look(
    manager: WorkspaceManager, root: Path
) -> None:
    leave(manager, root)
    for _ in range(2):
        result = manager.sweep(dry_run=True)
        assert result.skipped == {"bad": "corrupted_timestamp", "strange": "no_metadata"}
    assert looked_at_all(manager, root, manager.sweep())


def test_each_tenant_is_looked_at_once_an_hour_however_often_its_directory_is_opened(
    manager: WorkspaceManager, root: Path
) -> None:
    manager.sweep()
    for is_first in (True, False):
        with manager.elsewhere(root / "other") as other:
            taken = steps(other.sweep)
        assert taken["Store.leftover_states"] == is_first
