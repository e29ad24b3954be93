"""`WorkspaceManager`: sessions are made, opened, listed, counted, extended and deleted."""

from __future__ import annotations

import errno
import os
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from carrel.audit.logger import SandboxLogger
from carrel.errors import (
    CarrelError,
    ClosedError,
    ConfigError,
    LimitError,
    QuotaError,
    SessionExistsError,
    SessionIdError,
    SessionMissingError,
    UnavailableError,
)
from carrel.policy.rules import AccessMode, PathRule
from carrel.sessions.functions import (
    delete_session_workspace,
    list_session_files,
    read_session_file,
    write_session_file,
)
from carrel.sessions.manager import WorkspaceManager
from carrel.values import Limits, Usage
from tests.faults.inject import failing, first, open_descriptors
from tests.requirements import requirement
from tests.sessions.children import in_process, in_processes, in_threads
from tests.sessions.stand_ins import HOUR, Events, SetClock
from tests.workspace.planting import plant, snapshot
from tests.workspace.traces import (
    change_record,
    records_in,
    require_whole,
    state_of,
    states_in,
    trash_in,
    workspaces_in,
)

BAD_IDS = ["", ".", "..", "../outside", "a/b", ".carrel", "a..b", "we ird", "nul\0", "a" * 129]


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


# Making


def test_a_new_session_has_a_directory_a_record_and_state_and_nothing_else(
    manager: WorkspaceManager, root: Path
) -> None:
    assert snapshot(root) == {}
    manager.create("one").close()
    require_whole(root, "one")
    assert os.listdir(root / "one") == []


@requirement("ID-01", "ID-02")
def test_a_session_without_an_id_gets_a_uuid(manager: WorkspaceManager, root: Path) -> None:
    for _ in range(3):
        manager.create().close()
    names = manager.list_workspaces()
    assert len(set(names)) == 3
    assert [str(uuid.UUID(name, version=4)) for name in names] == names
    require_whole(root, *names)


@requirement("M-01")
def test_a_new_session_was_created_and_used_now(manager: WorkspaceManager, clock: SetClock) -> None:
    before = clock()
    manager.create("one").close()
    (record,) = manager.list_records()
    assert record.session_id == "one"
    assert before <= record.created_ns == record.used_ns <= clock()
    assert record.ttl_seconds == 86_400


def test_what_a_session_was_made_with_holds_in_another_process(root: Path) -> None:
    with WorkspaceManager(root) as manager:
        manager.create(
            "one",
            ttl_seconds=60,
            limits=Limits(disk_bytes=10),
            role="critic",
            labels={"team": "blue", "ümlaut": "ja"},
        ).close()
        manager.create("for-ever", ttl_seconds=None).close()

    def look() -> tuple[object, ...]:
        with WorkspaceManager(root, ttl_seconds=5, limits=Limits(disk_bytes=1000)) as again:
            record = again.status("one").record
            with again.open("one") as workspace:
                workspace.write("f", b"0123456789")
                with pytest.raises(QuotaError):
                    workspace.append("f", b"x")
            with again.open("one", limits=Limits(disk_bytes=11)) as workspace:
                workspace.append("f", b"x")
            return (
                record.ttl_seconds,
                record.limits,
                record.role,
                dict(record.labels),
                again.status("for-ever").record.ttl_seconds,
            )

    assert in_process(look) == (
        60.0,
        Limits(disk_bytes=10),
        "critic",
        {"team": "blue", "ümlaut": "ja"},
        None,
    )


def test_the_limits_of_the_manager_are_for_sessions_without_their_own(root: Path) -> None:
    with WorkspaceManager(root).create("one") as workspace:
        workspace.write("f", b"0123456789")
    with (
        WorkspaceManager(root, limits=Limits(disk_bytes=10)).open("one") as workspace,
        pytest.raises(QuotaError),
    ):
        workspace.append("f", b"x")


@pytest.mark.parametrize(
    "wrong",
    [
        {"ttl_seconds": 0},
        {"ttl_seconds": -1},
        {"ttl_seconds": float("nan")},
        {"role": ""},
        {"labels": {"": "x"}},
        {"labels": {"a": "b\n"}},
        {"limits": 5},
    ],
    ids=repr,
)
def test_a_session_is_not_made_with_what_cannot_be(
    manager: WorkspaceManager, root: Path, wrong: dict[str, object]
) -> None:
    with pytest.raises(ValueError, match=r"must be|must have"):
        manager.create("one", **wrong)  # type: ignore[arg-type]  # that is the point
    assert snapshot(root) == {}
    assert not (root / ".carrel").exists()


def test_an_id_that_differs_only_in_case_is_taken(manager: WorkspaceManager, root: Path) -> None:
    manager.create("One").close()
    with pytest.raises(SessionExistsError):
        manager.create("one")
    require_whole(root, "One")


def test_a_directory_without_a_record_is_opened_as_it_is_and_never_created(
    manager: WorkspaceManager, root: Path, events: Events
) -> None:
    plant(root, "old/f = kept")
    with pytest.raises(SessionExistsError, match="session 'old' already exists"):
        manager.create("old")
    assert records_in(root) == []
    with manager.open("old") as workspace:
        assert workspace.read("f") == b"kept"
        assert workspace.usage() == Usage(disk_bytes=4, entries=1)
    require_whole(root, "old")
    assert events.named("session.created") == []


@requirement("M-07")
def test_a_directory_without_a_record_gets_one_when_it_is_used(
    manager: WorkspaceManager, root: Path, clock: SetClock
) -> None:
    plant(root, "old/f = kept")
    before = clock()
    with manager.get_workspace("old") as workspace:
        workspace.write("g", b"new")
    (record,) = manager.list_records()
    assert record.created_ns >= before
    assert snapshot(root) == {"old": None, "old/f": b"kept", "old/g": b"new"}


def test_the_record_of_a_session_that_lost_its_directory_does_not_hinder_a_new_one(
    manager: WorkspaceManager, root: Path
) -> None:
    manager.create("one", role="critic").close()
    os.rmdir(root / "one")
    with pytest.raises(SessionMissingError):
        manager.open("one")
    manager.create("one").close()
    require_whole(root, "one")
    assert manager.status("one").record.role is None


def test_a_record_that_cannot_be_read_is_mended_when_the_session_is_opened(
    manager: WorkspaceManager, root: Path
) -> None:
    manager.create("one", role="critic", labels={"team": "blue"}).close()
    change_record(root, "one", used_ns=-5, labels="[]")
    assert manager.list_records() == []
    manager.open("one").close()
    (record,) = manager.list_records()
    assert (record.role, dict(record.labels)) == ("critic", {})


# Failing to make


def no_space(monkeypatch: pytest.MonkeyPatch, name: str, session_id: str) -> None:
    """Let one system call fail when it is about the session."""
    call = failing(
        getattr(os, name), errno.ENOSPC, when=lambda first, *rest, **more: os.fsdecode(first) == session_id
    )
    monkeypatch.setattr(os, name, call)


def test_a_session_that_has_no_room_for_its_state_leaves_nothing(
    manager: WorkspaceManager, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager.create("other").close()
    with monkeypatch.context() as patch:
        no_space(patch, "mkdir", "one")
        with pytest.raises(UnavailableError, match="No space left on device"):
            manager.create("one")
    require_whole(root, "other")
    manager.create("one").close()
    require_whole(root, "one", "other")


@pytest.mark.parametrize(
    "step",
    ["mkdir of the workspace", "ledger", "lease", "journal"],
)
def test_a_session_that_cannot_be_made_whole_leaves_nothing(
    manager: WorkspaceManager, root: Path, monkeypatch: pytest.MonkeyPatch, step: str, events: Events
) -> None:
    manager.create("other").close()
    top = os.stat(root)

    def is_in_root(name: object, *rest: object, dir_fd: int = -1, **more: object) -> bool:
        return name == "one" and os.path.samestat(os.fstat(dir_fd), top)

    held = open_descriptors()
    with monkeypatch.context() as patch:
        if step == "mkdir of the workspace":
            patch.setattr(os, "mkdir", failing(os.mkdir, errno.ENOSPC, when=is_in_root))
        elif step == "ledger":
            patch.setattr(os, "pwrite", failing(os.pwrite, errno.ENOSPC, times=1))
        elif step == "lease":
            patch.setattr(
                os, "open", failing(os.open, errno.ENOSPC, when=lambda name, *r, **m: name == "lease")
            )
        else:
            patch.setattr(os, "open", failing(os.open, errno.EMFILE, when=lambda name, *r, **m: name == "."))
        with pytest.raises(UnavailableError) as caught:
            manager.create("one")
    assert str(root.parent) not in str(caught.value)
    del caught
    assert open_descriptors() == held
    require_whole(root, "other")
    assert [fields["session_id"] for fields in events.named("session.created")] == ["other"]
    manager.create("one").close()
    require_whole(root, "one", "other")


def test_a_session_that_cannot_be_registered_leaves_nothing(
    manager: WorkspaceManager, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager.create("other").close()
    registry = manager._registry
    with monkeypatch.context() as patch:
        patch.setattr(registry, "add", failing(registry.add, errno.EIO))
        with pytest.raises(UnavailableError):
            manager.create("one")
    require_whole(root, "other")


# At once


@pytest.mark.race
@requirement("ID-21")
@pytest.mark.parametrize("door", ["create", "get_workspace"])
@pytest.mark.parametrize("runner", [in_threads, in_processes], ids=["threads", "processes"])
def test_of_many_that_make_one_session_at_once_exactly_one_makes_it(
    root: Path, runner: Callable[..., list[tuple[bool, int]]], door: str
) -> None:
    def work(number: int) -> tuple[bool, int]:
        events = Events()
        with WorkspaceManager(root, ttl_seconds=77, logger=SandboxLogger(events)) as manager:
            try:
                with getattr(manager, door)("one") as workspace:
                    workspace.write(f"{number}.txt", b"in")
            except SessionExistsError:
                return False, len(events.named("session.created"))
            return True, len(events.named("session.created"))

    answers = runner(8, work)
    assert sum(created for _, created in answers) == 1
    expected = 1 if door == "create" else 8
    assert sum(done for done, _ in answers) == expected
    require_whole(root, "one")
    assert len(os.listdir(root / "one")) == expected
    assert WorkspaceManager(root).status("one").record.ttl_seconds == 77


@pytest.mark.race
@pytest.mark.parametrize("runner", [in_threads, in_processes], ids=["threads", "processes"])
@pytest.mark.parametrize("door", ["create", "get_workspace"])
def test_making_and_deleting_at_once_ends_with_a_whole_session_or_none(
    root: Path, runner: Callable[..., list[object]], door: str
) -> None:
    rounds = 100
    with WorkspaceManager(root) as manager:
        manager.create("other").close()

    def work(number: int) -> None:
        with WorkspaceManager(root, ttl_seconds=99) as manager:
            for _ in range(rounds):
                try:
                    if number % 2:
                        manager.delete_workspace("one")
                    else:
                        with getattr(manager, door)("one") as workspace:
                            workspace.write("a/f", b"in")
                except (SessionExistsError, SessionMissingError):
                    pass

    runner(4, work)
    if (root / "one").exists():
        require_whole(root, "one", "other")
        with WorkspaceManager(root) as manager:
            assert manager.status("one").record.ttl_seconds == 99
            found = manager.status("one").usage
            assert found is not None
            assert found.entries == sum(1 for _ in (root / "one").rglob("*"))
    else:
        require_whole(root, "other")


def test_a_deleter_that_comes_in_the_middle_of_making_waits_for_its_end(
    manager: WorkspaceManager, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The record is there already and the directory is not: the record is not to be taken for a leftover."""
    manager.create("other").close()
    really, top = os.mkdir, os.stat(root)
    deleters: list[threading.Thread] = []

    def mkdir(name: str, mode: int = 0o777, *, dir_fd: int = -1) -> None:
        if name == "one" and not deleters and os.path.samestat(os.fstat(dir_fd), top):
            deleters.append(threading.Thread(target=lambda: manager._delete("one", only_expired=True)))
            deleters[0].start()
            deleters[0].join(0.05)
        really(name, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "mkdir", mkdir)
    manager.create("one", role="critic").close()
    deleters[0].join()
    require_whole(root, "one", "other")
    assert manager.status("one").record.role == "critic"


def test_a_maker_that_comes_in_the_middle_of_deleting_waits_for_its_end(
    manager: WorkspaceManager, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory is gone already and the record is not: it is not to be the record of the new session."""
    manager.create("one", role="critic").close()
    maker = threading.Thread(target=lambda: manager.create("one", role="developer").close())

    def begin() -> None:
        maker.start()
        maker.join(0.05)

    with monkeypatch.context() as patch:
        patch.setattr(manager._registry, "remove", first(manager._registry.remove, begin))
        assert manager.delete_workspace("one") is True
        maker.join()
    require_whole(root, "one")
    assert manager.status("one").record.role == "developer"


# Opening


def test_a_session_that_is_not_there_is_not_opened_and_nothing_is_made(
    manager: WorkspaceManager, root: Path
) -> None:
    for call in (
        manager.open,
        manager.status,
        manager.get_workspace_size,
        lambda name: manager.extend(name, 5),
    ):
        with pytest.raises(SessionMissingError, match="no such session: 'one'"):
            call("one")
    assert snapshot(root) == {}
    assert not (root / ".carrel").exists()


@requirement("ID-16")
def test_a_session_is_made_once_and_then_found(manager: WorkspaceManager, root: Path, events: Events) -> None:
    with manager.get_workspace("one") as workspace:
        workspace.write("f", b"kept")
    with manager.get_workspace("one") as workspace:
        assert workspace.read("f") == b"kept"
    assert [name for _, name, _ in events.all if not name.startswith("session.file")] == [
        "session.created",
        "session.retrieved",
    ]
    for _, name, fields in events.all:
        if name in ("session.created", "session.retrieved"):
            assert fields == {"session_id": "one", "workspace_path": str(root / "one")}


def test_a_session_is_found_without_absolute_paths_from_the_first_time_on(manager: WorkspaceManager) -> None:
    for _ in range(2):
        with (
            manager.get_workspace("one", absolute_paths=False) as workspace,
            pytest.raises(ValueError, match="absolute"),
        ):
            workspace.write("/workspace/f", b"x")


def test_the_workspaces_of_one_session_share_one_account(manager: WorkspaceManager) -> None:
    with manager.create("one") as first, manager.open("one") as second:
        first.write("a", b"12")
        second.write("b", b"345")
        assert first.usage() == second.usage() == Usage(disk_bytes=5, entries=2)


def test_a_manager_that_was_closed_says_so_and_its_workspaces_go_on(
    manager: WorkspaceManager, root: Path
) -> None:
    with manager.create("one") as workspace:
        manager.close()
        workspace.write("f", b"in")
        with pytest.raises(ClosedError):
            manager.create("two")
        with pytest.raises(ClosedError):
            manager.sweep()
    assert snapshot(root) == {"one": None, "one/f": b"in"}


# What there is


@requirement("ID-20")
def test_all_sessions_are_listed_and_nothing_else(
    manager: WorkspaceManager, root: Path, tmp_path: Path
) -> None:
    assert manager.list_workspaces() == []
    for name in ("session-b", "session-a", "session-c"):
        manager.create(name).close()
    assert manager.list_workspaces() == ["session-a", "session-b", "session-c"]
    plant(tmp_path, "outside/kept")
    plant(root, "file", "link => session-a", "out => ../outside", "we ird/", ".hidden/", "a..b/", "legacy/")
    assert manager.list_workspaces() == ["legacy", "session-a", "session-b", "session-c"]


@requirement("ID-20", "ID-15")
def test_a_sessions_directory_that_is_missing_is_made_and_lists_nothing(tmp_path: Path) -> None:
    with WorkspaceManager(tmp_path / "deep/nested/sessions") as manager:
        assert manager.list_workspaces() == []
        assert manager.list_records() == []
    assert (tmp_path / "deep/nested/sessions").stat().st_mode & 0o777 == 0o700


def test_records_are_listed_page_by_page(manager: WorkspaceManager) -> None:
    names = [f"s{number:02}" for number in range(7)]
    for name in reversed(names):
        manager.create(name).close()
    assert [record.session_id for record in manager.list_records()] == names
    found: list[str] = []
    while page := manager.list_records(found[-1] if found else None, 3):
        assert len(page) <= 3
        found += [record.session_id for record in page]
    assert found == names
    assert manager.list_records("s06") == []


def test_the_size_of_a_session_is_the_sum_of_its_files(manager: WorkspaceManager, root: Path) -> None:
    with manager.create("one") as workspace:
        workspace.write("a.txt", "hello")
        workspace.write("d/b.txt", "world")
    assert manager.get_workspace_size("one") == 10
    plant(root, "legacy/d/f = 123", "legacy/l => d/f")
    assert manager.get_workspace_size("legacy") == 3


@requirement("M-05")
def test_every_use_is_later_than_the_one_before_and_looking_is_no_use(
    manager: WorkspaceManager, clock: SetClock
) -> None:
    manager.create("one").close()
    created = manager.status("one").record.created_ns
    uses: list[int] = []
    for number in range(3):
        clock.advance(10)
        with manager.open("one") as workspace:
            if number == 2:
                with pytest.raises(CarrelError):
                    workspace.read("missing")
        uses.append(manager.status("one").record.used_ns)
        clock.advance(10)
        for _ in range(2):
            manager.list_records()
            manager.list_workspaces()
            status = manager.status("one")
            assert status.record.used_ns == uses[-1]
            assert status.record.created_ns == created
    assert uses == sorted(set(uses))
    assert uses[0] > created


def test_a_change_is_a_use_and_so_is_closing(manager: WorkspaceManager, clock: SetClock) -> None:
    with manager.create("one") as workspace:
        opened = manager.status("one").record.used_ns
        workspace.write("f", b"x")
        changed = manager.status("one").record.used_ns
        assert changed > opened
        clock.advance(HOUR)
        closing = clock()
    assert manager.status("one").record.used_ns >= closing > changed


def test_the_status_tells_what_a_session_holds_and_who_has_it_open(
    manager: WorkspaceManager, root: Path
) -> None:
    with manager.create("one") as workspace:
        workspace.write("d/f", b"12345")
        status = manager.status("one")
        assert (status.usage, status.in_use) == (Usage(disk_bytes=5, entries=2), True)
        assert in_process(lambda: WorkspaceManager(root).status("one").in_use) is True
    assert manager.status("one").in_use is False
    plant(root, "legacy/f")
    assert manager.status("legacy").usage is None


# Lifetime


@requirement("TTL-01", "TTL-02")
def test_a_session_that_was_idle_for_too_long_is_gone_and_its_id_begins_anew(
    manager: WorkspaceManager, clock: SetClock, root: Path, events: Events
) -> None:
    with manager.create("one", ttl_seconds=600, role="critic") as workspace:
        workspace.write("f", b"old")
    clock.advance(599)
    manager.open("one").close()
    clock.advance(599)
    assert manager.status("one").record.is_expired(clock()) is False
    clock.advance(1)
    assert manager.status("one").record.is_expired(clock()) is True
    with pytest.raises(SessionMissingError, match="no such session: 'one': it has expired"):
        manager.open("one")
    with manager.get_workspace("one") as workspace:
        assert workspace.list() == []
        assert workspace.usage() == Usage(disk_bytes=0, entries=0)
    require_whole(root, "one")
    assert manager.status("one").record.role is None
    assert len(events.named("session.created")) == 2


def test_a_session_in_use_does_not_expire(manager: WorkspaceManager, clock: SetClock) -> None:
    with manager.create("one", ttl_seconds=600) as workspace:
        workspace.write("f", b"old")
        clock.advance(6000)
        with manager.open("one") as another:
            assert another.read("f") == b"old"


def test_a_session_can_be_extended_also_after_its_time(
    manager: WorkspaceManager, clock: SetClock, root: Path
) -> None:
    with manager.create("one", ttl_seconds=600) as workspace:
        workspace.write("f", b"kept")
    clock.advance(6000)
    record = manager.extend("one", 50)
    assert (record.ttl_seconds, record.used_ns) == (50.0, manager.status("one").record.used_ns)
    clock.advance(49)
    manager.open("one").close()
    assert manager.extend("one", None).ttl_seconds is None
    clock.advance(10**9)
    assert manager.sweep().deleted == []
    assert manager.open("one").read("f") == b"kept"
    with pytest.raises(ValueError, match="ttl_seconds"):
        manager.extend("one", 0)


@requirement("TTL-04")
def test_when_there_are_too_many_sessions_the_expired_ones_are_cleaned_first(
    root: Path, clock: SetClock
) -> None:
    manager = WorkspaceManager(root, max_sessions=2, clock=clock)
    manager.create("old", ttl_seconds=600).close()
    manager.create("kept", ttl_seconds=None).close()
    with pytest.raises(LimitError, match="2") as caught:
        manager.create("third")
    assert (caught.value.code, caught.value.limit) == ("limit.sessions", 2)
    assert isinstance(caught.value, OSError)
    require_whole(root, "kept", "old")
    with pytest.raises(LimitError):
        manager.get_workspace("third")
    require_whole(root, "kept", "old")
    clock.advance(601)
    manager.create("third").close()
    require_whole(root, "kept", "third")


def test_a_directory_without_a_record_is_opened_whatever_the_maximum(root: Path) -> None:
    manager = WorkspaceManager(root, max_sessions=1)
    manager.create("one").close()
    plant(root, "legacy/f")
    manager.open("legacy").close()
    require_whole(root, "legacy", "one")


@pytest.mark.race
def test_many_processes_make_no_more_sessions_than_there_may_be(root: Path) -> None:
    WorkspaceManager(root).create("first").close()

    def work(number: int) -> int:
        made = 0
        with WorkspaceManager(root, max_sessions=6) as manager:
            for turn in range(3):
                try:
                    manager.create(f"s{number}-{turn}").close()
                except LimitError:
                    continue
                made += 1
        return made

    assert sum(in_processes(4, work)) == 5
    require_whole(root, *WorkspaceManager(root).list_workspaces())


# Deleting


@requirement("D-18", "D-19", "D-20", "LOG-2")
def test_a_deleted_session_is_gone_and_deleting_it_again_is_no_error(
    manager: WorkspaceManager, root: Path, events: Events
) -> None:
    manager.create("other").close()
    with manager.create("one") as workspace:
        workspace.write("d/f", b"old")
    assert manager.delete_workspace("one") is True
    require_whole(root, "other")
    assert manager.delete_workspace("one") is False
    require_whole(root, "other")
    assert events.named("session.deleted") == [{"session_id": "one"}]
    with manager.get_workspace("one") as workspace:
        assert workspace.list() == []
        assert list(workspace.changes()) == []


@requirement("ID-12")
@pytest.mark.parametrize("name", BAD_IDS)
def test_a_bad_id_deletes_nothing(manager: WorkspaceManager, root: Path, tmp_path: Path, name: str) -> None:
    plant(tmp_path, "outside/kept")
    with manager.create("one") as workspace:
        workspace.write("f", b"kept")
    before = snapshot(tmp_path)
    with pytest.raises(SessionIdError):
        manager.delete_workspace(name)
    with pytest.raises(ValueError, match="invalid session id"):
        delete_session_workspace(name, root)
    assert snapshot(tmp_path) == before
    require_whole(root, "one")


def test_a_link_or_a_file_in_place_of_a_session_is_not_deleted_and_nor_is_its_target(
    manager: WorkspaceManager, root: Path, tmp_path: Path
) -> None:
    plant(tmp_path, "outside/kept", "sessions/link => ../outside", "sessions/file = text")
    before = snapshot(tmp_path)
    for name in ("link", "file"):
        with pytest.raises(UnavailableError):
            manager.delete_workspace(name)
    assert snapshot(tmp_path) == before


def test_links_in_a_deleted_session_are_not_followed(
    manager: WorkspaceManager, root: Path, tmp_path: Path
) -> None:
    plant(tmp_path, "outside/kept")
    manager.create("other").write("f", b"kept")
    manager.create("one").close()
    plant(
        root / "one", "out => ../../outside", "d/out => ../../../outside", "other => ../other", "abs => /tmp"
    )
    manager.delete_workspace("one")
    assert snapshot(tmp_path / "outside") == {"kept": b"in"}
    assert snapshot(root) == {"other": None, "other/f": b"kept"}


CHANGES: dict[str, Callable[..., object]] = {
    "write": lambda workspace: workspace.write("f", b"new"),
    "write in a directory": lambda workspace: workspace.write("a/b/f", b"new"),
    "write_chunks": lambda workspace: workspace.write_chunks("f", [b"new"]),
    "append": lambda workspace: workspace.append("new", b"new"),
    "mkdir": lambda workspace: workspace.mkdir("new"),
    "copy": lambda workspace: workspace.copy("f", "new"),
    "move": lambda workspace: workspace.move("f", "new"),
    "remove": lambda workspace: workspace.remove("f"),
    "remove a tree": lambda workspace: workspace.remove("d", recursive=True),
    "usage": lambda workspace: workspace.usage(),
    "recount": lambda workspace: workspace.recount(),
}
NEED_THE_FILE = {"copy", "move", "remove", "remove a tree"}
"""Here the missing file may be noticed before the missing session."""


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("was_used", [True, False], ids=["used before", "fresh"])
def test_who_still_uses_a_deleted_session_hears_of_it_and_nothing_comes_back(
    manager: WorkspaceManager, root: Path, change: str, was_used: bool
) -> None:
    with manager.create("one") as workspace:
        workspace.write("f", b"old")
        workspace.write("d/f", b"old")
    with manager.open("one") as workspace:
        if was_used:
            workspace.write("g", b"old")
        assert manager.delete_workspace("one") is True
        for _ in range(2):
            with pytest.raises(FileNotFoundError) as caught:
                CHANGES[change](workspace)
            if change not in NEED_THE_FILE:
                assert isinstance(caught.value, SessionMissingError)
                assert "one" in str(caught.value)
        assert snapshot(root) == {}
    require_whole(root)


def test_no_ledger_is_made_in_the_trash(
    manager: WorkspaceManager, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state of a deleted session is being removed when one comes who has never needed its ledger."""
    manager.create("one").close()
    with manager.open("one") as workspace:
        with monkeypatch.context() as patch:
            patch.setattr(os, "rmdir", failing(os.rmdir, errno.EPERM))
            manager.delete_workspace("one")
        assert len(trash_in(root)) == 2
        with pytest.raises(SessionMissingError):
            workspace.mkdir("new")
        assert list((root / ".carrel/trash").rglob("*/*")) == []
    manager.sweep()
    require_whole(root)


def test_who_still_uses_a_deleted_session_does_not_reach_the_new_one_of_that_id(
    manager: WorkspaceManager, root: Path
) -> None:
    old = manager.create("one")
    old.write("f", b"old")
    manager.delete_workspace("one")
    with manager.create("one") as new:
        new.write("f", b"new")
        with pytest.raises(SessionMissingError):
            old.write("f", b"ghost")
        with pytest.raises(FileNotFoundError):
            old.read("f")
        old.close()
        assert manager.status("one").in_use is True
        assert new.read("f") == b"new"
    require_whole(root, "one")


def test_a_session_is_deleted_between_the_changes_of_another_process(root: Path) -> None:
    with WorkspaceManager(root) as manager:
        manager.create("one").close()

    def work(number: int) -> str:
        with WorkspaceManager(root) as manager:
            if number == 0:
                return str(manager.delete_workspace("one"))
            try:
                with manager.open("one") as workspace:
                    for turn in range(2000):
                        workspace.write(f"d{turn % 7}/f", b"x")
            except SessionMissingError:
                return "missing"
            return "finished"

    answers = in_processes(3, work)
    assert answers[0] == "True"
    assert set(answers[1:]) <= {"missing"}
    require_whole(root)


@requirement("D-18", "D-19", "D-20")
def test_the_file_functions_delete_a_session_too(root: Path) -> None:
    delete_session_workspace("one", root)
    assert not root.exists()
    write_session_file("one", "f", b"old", root)
    write_session_file("other", "f", b"kept", root)
    events = Events()
    delete_session_workspace("one", root, logger=SandboxLogger(events))
    assert events.named("session.deleted") == [{"session_id": "one"}]
    delete_session_workspace("one", root, logger=SandboxLogger(events))
    assert len(events.all) == 1
    require_whole(root, "other")
    assert list_session_files("one", root) == []
    write_session_file("one", "g", b"new", root)
    assert list_session_files("one", root) == ["g"]
    assert read_session_file("other", "f", root) == b"kept"


def test_the_record_of_a_session_that_lost_its_directory_is_deleted_too(
    manager: WorkspaceManager, root: Path
) -> None:
    manager.create("one").close()
    os.rmdir(root / "one")
    assert manager.delete_workspace("one") is True
    require_whole(root)


# Forks


def test_a_forked_child_uses_the_manager_and_the_workspaces_of_its_parent(
    manager: WorkspaceManager, root: Path
) -> None:
    with manager.create("one") as workspace:
        workspace.write("parent", b"12")

        def child() -> tuple[list[str], int]:
            workspace.write("child", b"345")
            manager.create("two").close()
            return manager.list_workspaces(), workspace.usage().disk_bytes

        assert in_process(child) == (["one", "two"], 5)
        workspace.write("again", b"6")
        assert workspace.usage() == Usage(disk_bytes=6, entries=3)
    require_whole(root, "one", "two")
    assert manager.status("one").in_use is False


def test_forked_children_change_one_workspace_at_once_and_the_account_is_exact(
    manager: WorkspaceManager,
) -> None:
    with manager.create("one") as workspace:
        workspace.write("first", b"x")

        def work(number: int) -> None:
            for turn in range(30):
                workspace.write(f"{number}-{turn % 5}", bytes(turn))

        in_processes(4, work)
        counted = workspace.usage()
        assert counted == workspace.recount() == Usage(disk_bytes=1 + 4 * sum(range(25, 30)), entries=21)


# Settings


def test_a_manager_is_made_as_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, shared = tmp_path / "here", tmp_path / "shared"
    here.mkdir()
    shared.mkdir()
    monkeypatch.chdir(here)
    environ = {
        "CARREL_SESSIONS_DIR": str(tmp_path / "own"),
        "CARREL_MAX_WORKSPACE_MB": "1",
        "CARREL_MAX_ENTRIES": "3",
        "CARREL_MIN_FREE_MB": "0",
        "CARREL_TTL_SECONDS": "123",
        "CARREL_MAX_SESSIONS": "2",
        "CARREL_SHARED_WORKSPACE": str(shared),
        "CARREL_DEV_ALLOW_CWD": "1",
    }
    with WorkspaceManager.from_env(environ) as manager, manager.create("one") as workspace:
        assert manager.root == tmp_path / "own"
        assert manager.status("one").record.ttl_seconds == 123
        with pytest.raises(QuotaError) as caught:
            workspace.write("f", bytes(2**20 + 1))
        assert (caught.value.code, caught.value.limit) == ("quota.bytes", 2**20)
        workspace.write("a/b/c", b"")
        with pytest.raises(QuotaError, match=r"entries|files"):
            workspace.write("d", b"")
        workspace.write(f"{shared}/f", b"shared")
        workspace.write(f"{here}/f", b"here")
        with pytest.raises(PermissionError):
            workspace.write(f"{tmp_path}/f", b"elsewhere")
        with pytest.raises(PermissionError):
            workspace.write("/tmp/carrel-elsewhere", b"elsewhere")
        manager.create("two").close()
        with pytest.raises(LimitError):
            manager.create("three")
    assert (shared / "f").read_bytes() == b"shared"
    assert not (tmp_path / "f").exists()


def test_a_manager_is_made_by_the_other_names_of_the_variables(tmp_path: Path) -> None:
    environ = {
        "SHANNON_SESSION_WORKSPACES_DIR": str(tmp_path / "own"),
        "SHANNON_MAX_WORKSPACE_SIZE_MB": "2",
        "SHANNON_WORKSPACE": str(tmp_path),
        "SHANNON_ALLOW_GLOBAL_TMP": "1",
        "CARREL_MIN_FREE_MB": "0",
    }
    with WorkspaceManager.from_env(environ) as manager, manager.create("one") as workspace:
        assert manager.root == tmp_path / "own"
        workspace.write(f"{tmp_path}/shared", b"in")
        with pytest.raises(QuotaError):
            workspace.write("f", bytes(2**21 + 1))
        assert workspace.exists("/tmp")


def test_a_disk_with_too_little_free_space_is_not_written(tmp_path: Path) -> None:
    environ = {"CARREL_SESSIONS_DIR": str(tmp_path / "own"), "CARREL_MIN_FREE_MB": "1000000000"}
    with (
        WorkspaceManager.from_env(environ) as manager,
        manager.create("one") as workspace,
        pytest.raises(OSError, match="free") as caught,
    ):
        workspace.write("f", b"x")
    assert getattr(caught.value, "code", "") == "disk.low"


def test_the_defaults_and_the_given_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with WorkspaceManager.from_env({}) as manager:
        assert manager.root == tmp_path / "workspace"
        manager.create("one").close()
        assert manager.status("one").record.ttl_seconds == 86_400
    with WorkspaceManager.from_env(
        {"CARREL_SESSIONS_DIR": str(tmp_path / "a")}, root=tmp_path / "b"
    ) as manager:
        assert manager.root == tmp_path / "b"
    assert not (tmp_path / "a").exists()
    monkeypatch.setenv("CARREL_SESSIONS_DIR", str(tmp_path / "c"))
    with WorkspaceManager.from_env() as manager:
        assert manager.root == tmp_path / "c"


@pytest.mark.parametrize(
    ("name", "value"),
    [("CARREL_TTL_SECONDS", "0"), ("CARREL_MAX_SESSIONS", "many"), ("CARREL_MAX_WORKSPACE_MB", "-1")],
)
def test_a_variable_that_cannot_be_used_is_named_and_nothing_is_made(
    tmp_path: Path, name: str, value: str
) -> None:
    with pytest.raises(ConfigError, match=name):
        WorkspaceManager.from_env({"CARREL_SESSIONS_DIR": str(tmp_path / "own"), name: value})
    assert os.listdir(tmp_path) == []


def test_a_rule_for_one_opening_is_for_that_one_only(manager: WorkspaceManager, tmp_path: Path) -> None:
    plant(tmp_path, "extra/f")
    manager.create("one").close()
    rule = PathRule(str(tmp_path / "extra"), AccessMode.READ_ONLY)
    with manager.open("one", allow=[rule], actor="agent") as workspace:
        assert workspace.read(f"{tmp_path}/extra/f") == b"in"
        workspace.write("f", b"in")
        (event,) = workspace.changes()
        assert event.actor == "agent"
    with manager.open("one") as workspace, pytest.raises(PermissionError):
        workspace.read(f"{tmp_path}/extra/f")
    assert states_in(manager.root) == workspaces_in(manager.root) == ["one"]
    assert trash_in(manager.root) == []
    assert state_of(manager.root, "one").is_dir()


@requirement("TTL-05")
def test_a_session_that_is_reset_is_empty_and_still_there(manager: WorkspaceManager, root: Path) -> None:
    with manager.create("one", labels={"kept": "yes"}) as workspace:
        workspace.write("d/e/f", b"in")
        workspace.write("g", b"in")
    assert manager.reset_workspace("one")
    assert os.listdir(root / "one") == []
    status = manager.status("one")
    assert (status.usage, dict(status.record.labels)) == (Usage(disk_bytes=0, entries=0), {"kept": "yes"})
    assert not manager.reset_workspace("nobody")
    assert manager.list_workspaces() == ["one"]
