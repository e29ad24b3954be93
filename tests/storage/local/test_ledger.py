"""One ledger in many threads and processes, and what it makes of what others left."""

from __future__ import annotations

import fcntl
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from carrel.audit.event import UNDONE, Event
from carrel.errors import BusyError, ClosedError, QuotaError, SessionExistsError, SessionMissingError
from carrel.fs.handle import Handle
from carrel.policy.rules import Access
from carrel.sessions.manager import WorkspaceManager
from carrel.storage.local import ledger_page as ledgers
from carrel.storage.local.lock import SessionLock
from carrel.storage.recorder import Recorder
from carrel.values import Limits, Usage
from carrel.workspace.unmediated_run import UnmediatedRun
from carrel.workspace.workspace import Workspace
from tests.faults.inject import first, in_memory
from tests.requirements import requirement
from tests.storage.ledgers import count, page, require_agreement, state
from tests.workspace.dying import die, forked, survives

if TYPE_CHECKING:
    from typing_extensions import Buffer

ROUNDS = 20


@pytest.fixture
def sessions() -> Iterator[WorkspaceManager]:
    with in_memory() as place, WorkspaceManager(place / "sessions", limits=Limits(disk_bytes=100)) as made:
        yield made


def usage(disk_bytes: int, entries: int) -> Usage:
    return Usage(disk_bytes=disk_bytes, entries=entries)


# Many at once


def fits(workspace: Workspace, name: str) -> bool:
    """Whether 60 bytes can be written."""
    try:
        workspace.write(name, b"n" * 60)
    except QuotaError:
        return False
    return True


def in_threads(first_one: Workspace, second: Workspace) -> list[bool]:
    """What two threads answer that begin at once."""
    start = threading.Barrier(2)
    answers: list[bool] = []

    def work(workspace: Workspace, name: str) -> None:
        start.wait()
        answers.append(fits(workspace, name))

    threads = [threading.Thread(target=work, args=row) for row in ((first_one, "a"), (second, "b"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def in_processes(act: Callable[[int], bool], processes: int = 2) -> list[bool]:
    """What processes answer that begin at once."""
    gate, gate_writer = os.pipe()
    answers, answers_writer = os.pipe()

    def work(number: int) -> None:
        os.close(gate_writer)
        os.read(gate, 1)
        os.write(answers_writer, b"\1" if act(number) else b"\0")

    children = [forked(partial(work, number)) for number in range(processes)]
    for end in (gate, gate_writer, answers_writer):
        os.close(end)
    with open(answers, "rb") as file:
        found = file.read()
    assert [child for child in children if not survives(child)] == []
    return [bool(answer) for answer in found]


def open_and_fit(sessions: WorkspaceManager, session_id: str, number: int) -> bool:
    with sessions.open(session_id) as workspace:
        return fits(workspace, str(number))


def inherit_and_fit(workspace: Workspace, number: int) -> bool:
    return fits(workspace, str(number))


RACES: dict[str, Callable[[WorkspaceManager, Workspace, Workspace], list[bool]]] = {
    "threads": lambda _, workspace, other: in_threads(workspace, workspace),
    "workspaces": lambda _, workspace, other: in_threads(workspace, other),
    "processes": lambda sessions, workspace, _: in_processes(
        partial(open_and_fit, sessions, str(workspace.session_id))
    ),
    "forked": lambda _, workspace, other: in_processes(partial(inherit_and_fit, workspace)),
}


@requirement("Q-09")
@pytest.mark.parametrize("how", RACES)
def test_of_two_writers_that_do_not_fit_together_one_succeeds(sessions: WorkspaceManager, how: str) -> None:
    for _ in range(ROUNDS):
        with sessions.create() as workspace, sessions.open(str(workspace.session_id)) as other:
            answers = RACES[how](sessions, workspace, other)
            assert sorted(answers) == [False, True]
            assert workspace.usage() == usage(60, 1) == other.recount()


def test_sixteen_processes_fill_a_session_to_its_limit_and_no_further(sessions: WorkspaceManager) -> None:
    limits = Limits(disk_bytes=1000, entries=100)
    sessions.create("one", limits=limits).close()

    def work(number: int) -> bool:
        refused = False
        with sessions.open("one") as workspace:
            for turn in range(30):
                try:
                    workspace.write(f"{number}/{turn}", b"n" * (number + turn))
                except QuotaError:
                    refused = True
                    workspace.remove(f"{number}", recursive=True, force=True)
        return refused

    assert any(in_processes(work, 16))
    with sessions.open("one") as workspace:
        found = workspace.usage()
        assert found == count(sessions.root / "one")
        assert found.disk_bytes <= 1000
        assert found.entries <= 100
        assert page(sessions, "one").recounts == 0
        require_agreement(sessions, workspace)


def test_a_child_that_was_forked_in_the_middle_of_a_change_goes_on(sessions: WorkspaceManager) -> None:
    """Another thread has the lock at the moment of the fork, and is not there in the child."""
    with sessions.create("one") as workspace:
        is_over = threading.Event()

        def work() -> None:
            while not is_over.is_set():
                workspace.write("f", b"f")

        thread = threading.Thread(target=work)
        thread.start()
        try:
            for number in range(ROUNDS):

                def act(name: str = f"child-{number}") -> None:
                    signal.signal(signal.SIGALRM, signal.SIG_DFL)
                    signal.alarm(10)
                    workspace.write(name, b"c")
                    workspace.remove(name)

                assert survives(forked(act))
        finally:
            is_over.set()
            thread.join()
        assert workspace.usage() == usage(1, 1) == workspace.recount()


def test_a_forked_child_does_not_share_the_lock_of_its_parent(sessions: WorkspaceManager) -> None:
    with sessions.create("one") as workspace:
        ledger = workspace.gate.ledger
        with ledger:

            def act() -> None:
                lock = SessionLock(Handle(os.open(state(sessions, "one"), os.O_PATH)), wait_seconds=0.05)
                with pytest.raises(BusyError):
                    lock.acquire()

            assert survives(forked(act))
        workspace.write("f", b"f")


def test_an_idle_child_does_not_keep_the_lock_of_a_parent_that_was_killed(sessions: WorkspaceManager) -> None:
    sessions.create("one").close()
    told, tell = os.pipe()
    gate, gate_writer = os.pipe()

    def act() -> None:
        workspace = sessions.open("one")
        workspace.write("f", b"f")

        def idle() -> None:
            os.close(gate_writer)
            os.read(gate, 1)

        os.write(tell, str(forked(idle)).encode())
        os.rename = first(os.rename, die)
        workspace.write("f", b"ff")

    assert not survives(forked(act))
    child = int(os.read(told, 20))
    lock = SessionLock(Handle(os.open(state(sessions, "one"), os.O_PATH)), wait_seconds=0.5)
    lock.acquire()
    lock.release()
    os.kill(child, 0)
    with sessions.open("one") as workspace:
        require_agreement(sessions, workspace)
    for end in (told, tell, gate, gate_writer):
        os.close(end)


def test_a_directory_that_somebody_makes_meanwhile_is_no_hindrance(
    sessions: WorkspaceManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is missing when it is looked for, and there a moment later."""
    with sessions.create("one") as workspace, sessions.open("one") as other:

        def is_top(name: object, **_: object) -> bool:
            return name == b"d"

        with monkeypatch.context() as patch:
            patch.setattr(os, "stat", first(os.stat, lambda: other.mkdir("d/e"), when=is_top))
            workspace.write_chunks("d/e/f", [b"f"])
        assert workspace.usage() == usage(1, 3)
        require_agreement(sessions, workspace)


# Who keeps the lock


@pytest.fixture
def impatient(sessions: WorkspaceManager) -> Iterator[SessionLock]:
    """Another lock of the session `one`, for somebody who does not wait long."""
    sessions.create("one").close()
    lock = SessionLock(Handle(os.open(state(sessions, "one"), os.O_PATH)), wait_seconds=0.05)
    yield lock
    lock.close()


def test_who_waits_too_long_for_another_process_is_told_to_try_again(
    sessions: WorkspaceManager, impatient: SessionLock
) -> None:
    with (state(sessions, "one") / "ledger").open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(BusyError, match="busy"):
            impatient.acquire()
        fcntl.flock(file, fcntl.LOCK_UN)
        impatient.acquire()
        with pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        impatient.release()
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_who_waits_too_long_for_another_thread_is_told_to_try_again(impatient: SessionLock) -> None:
    with ThreadPoolExecutor(1) as other:
        other.submit(impatient.acquire).result()
        with pytest.raises(BusyError, match="busy"):
            impatient.acquire()
        other.submit(impatient.release).result()
    impatient.acquire()
    impatient.release()


def test_a_thread_that_was_interrupted_before_it_knew_does_not_wait_for_itself(
    impatient: SessionLock,
) -> None:
    impatient.acquire()
    impatient.close()


def test_a_lock_that_was_closed_says_so(impatient: SessionLock) -> None:
    impatient.acquire()
    impatient.release()
    impatient.close()
    for _ in range(2):
        with pytest.raises(ClosedError):
            impatient.acquire()


def test_a_lock_goes_with_its_process(sessions: WorkspaceManager, impatient: SessionLock) -> None:
    def act() -> None:
        SessionLock(Handle(os.open(state(sessions, "one"), os.O_PATH))).acquire()
        die()

    assert not survives(forked(act))
    impatient.acquire()
    impatient.release()


# A session that is gone


CHANGES: dict[str, Callable[[Workspace], object]] = {
    "write": lambda workspace: workspace.write("new", b"n"),
    "write over": lambda workspace: workspace.write("f", b"n"),
    "write much": lambda workspace: workspace.write("f", b"n" * 2**21),
    "write by chunks": lambda workspace: workspace.write_chunks("f", [b"n"]),
    "append": lambda workspace: workspace.append("f", b"n"),
    "append to a new one": lambda workspace: workspace.append("new", b"n"),
    "mkdir": lambda workspace: workspace.mkdir("new"),
    "remove": lambda workspace: workspace.remove("f"),
    "remove a tree": lambda workspace: workspace.remove("d", recursive=True),
    "move": lambda workspace: workspace.move("f", "new"),
    "usage": lambda workspace: workspace.usage(),
    "recount": lambda workspace: workspace.recount(),
}


@pytest.mark.parametrize("again", [False, True], ids=["gone", "made again"])
@pytest.mark.parametrize("never_used", [False, True], ids=["used", "never used"])
@pytest.mark.parametrize("name", CHANGES)
def test_whoever_has_a_deleted_session_open_hears_of_it(
    sessions: WorkspaceManager, name: str, never_used: bool, again: bool
) -> None:
    with sessions.create("one", limits=Limits()) as workspace, sessions.open("one") as idle:
        workspace.write("f", b"old")
        workspace.write("d/f", b"old")
        sessions.delete_workspace("one")
        if again:
            sessions.create("one").close()
        with pytest.raises(SessionMissingError, match="no such session"):
            CHANGES[name](idle if never_used else workspace)
        assert sessions.list_workspaces() == (["one"] if again else [])
        if again:
            assert os.listdir(sessions.root / "one") == []


def test_many_create_use_and_delete_one_session_at_once(sessions: WorkspaceManager) -> None:
    """Each of them finds a session or none, and nothing in between."""

    def work(number: int) -> bool:
        for _ in range(40):
            with suppress(SessionMissingError, SessionExistsError):
                if number % 4 == 0:
                    sessions.delete_workspace("one")
                elif number % 4 == 1:
                    sessions.create("one").close()
                else:
                    with sessions.get_workspace("one") as workspace:
                        workspace.write("f", b"f")
                        workspace.remove("f", force=True)
        return True

    assert in_processes(work, 8) == [True] * 8
    sessions.delete_workspace("one")
    sessions.sweep()
    assert os.listdir(sessions.root / ".carrel/sessions") == []
    assert os.listdir(sessions.root / ".carrel/trash") == []


def test_who_creates_a_session_that_is_just_going_tries_again(
    sessions: WorkspaceManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state of the old one is there when it is looked for, and gone when its lock is opened."""
    sessions.create("other").close()

    def is_ledger(path: object, *_: object, **__: object) -> bool:
        return path == "ledger"

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", first(os.open, state(sessions, "one").rmdir, when=is_ledger))
        with sessions.create("one") as workspace:
            workspace.write("f", b"f")
            assert workspace.usage() == usage(1, 1)


# What others left


@pytest.fixture
def holding(sessions: WorkspaceManager) -> Path:
    """The ledger of a session that holds 30 bytes in two entries."""
    with sessions.create("one") as workspace:
        workspace.write("d/f", b"f" * 30)
    return state(sessions, "one") / "ledger"


SIZE = ledgers._HEADER.size
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "truncated": lambda whole: whole[: SIZE // 2],
    "one byte short": lambda whole: whole[: SIZE - 1],
    "zeros": lambda _: bytes(SIZE),
    "foreign": lambda _: b"SQLite format 3\0" * 100,
    "of a later format": lambda whole: whole[:7] + b"\2" + whole[8:],
    "of another boot": lambda whole: whole[:-16] + bytes(16),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_ledger_that_cannot_be_relied_on_is_counted_anew(
    sessions: WorkspaceManager, holding: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "carrel")
    holding.write_bytes(DAMAGES[damage](holding.read_bytes()))
    assert sessions.status("one").usage is None
    with sessions.open("one") as workspace, sessions.open("one") as other:
        with pytest.raises(QuotaError, match="101B > 100B"):
            workspace.write("g", b"g" * 71)
        assert workspace.usage() == usage(30, 2) == other.usage()
        require_agreement(sessions, workspace)
    events = [record for record in caplog.records if getattr(record, "event", "") == "session.recounted"]
    fields = [(getattr(record, "size_bytes", 0), getattr(record, "entries", 0)) for record in events]
    assert fields[0] == (30, 2)
    assert len(fields) == 2, "once, and once by the recount of this test"


def test_a_ledger_that_is_missing_is_made_anew(sessions: WorkspaceManager, holding: Path) -> None:
    holding.unlink()
    with sessions.open("one") as workspace:
        assert workspace.usage() == usage(30, 2)
    assert page(sessions, "one")[:5] == (0, 30, 2, 0, 1)


def test_a_ledger_is_never_followed_out(sessions: WorkspaceManager, holding: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"kept")
    holding.unlink()
    holding.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="cannot be used"):
        sessions.open("one")
    assert (tmp_path / "elsewhere").read_bytes() == b"kept"


def test_nothing_is_counted_after_an_ordinary_end(sessions: WorkspaceManager, holding: Path) -> None:
    for _ in range(3):
        with (
            WorkspaceManager(sessions.root, limits=Limits(disk_bytes=100)) as again,
            again.open("one") as workspace,
        ):
            workspace.append("d/f", b"f")
            with pytest.raises(QuotaError):
                workspace.append("d/f", b"f" * 100)
    assert page(sessions, "one")[:5] == (0, 33, 2, 0, 0)


def test_what_the_host_does_counts_only_when_it_is_counted(sessions: WorkspaceManager, holding: Path) -> None:
    with sessions.open("one") as workspace:
        (sessions.root / "one/g").write_bytes(b"g" * 50)
        assert workspace.usage() == usage(30, 2)
        assert workspace.recount() == usage(80, 3)
        (sessions.root / "one/d/f").unlink()
        workspace.remove("g")
        workspace.remove("d")
        assert workspace.usage() == usage(30, 1), "more than there is, never less"


@pytest.mark.parametrize("path", ["f", "s"])
@pytest.mark.parametrize("written", [1, 4, 9])
def test_an_append_that_was_killed_halfway_is_cut_back(
    sessions: WorkspaceManager, path: str, written: int
) -> None:
    with sessions.create("one") as workspace:
        workspace.write("f", b"old")
        files, where = workspace.gate.permit(Access.WRITE, "s")
        files.link(where, "f")

        def act() -> None:
            really = os.write

            def write(fd: int, data: Buffer) -> int:
                if bytes(data) == b"n" * 10:
                    really(fd, bytes(data)[:written])
                    die()
                return really(fd, data)

            os.write = write
            workspace.append(path, b"n" * 10)

        assert not survives(forked(act))
        assert (sessions.root / "one/f").stat().st_size == 3 + written
        assert workspace.usage() == usage(3, 2)
        assert workspace.read("f") == b"old"
        assert [event.error for event in workspace.changes()] == [None, None, None, UNDONE]
        assert page(sessions, "one").recounts == 1
        require_agreement(sessions, workspace)


def test_an_interrupt_leaves_the_books_to_the_next_one(
    sessions: WorkspaceManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    with sessions.create("one") as workspace:
        workspace.mkdir("d")
        with monkeypatch.context() as patch:
            patch.setattr(os, "rename", first(os.rename, interrupt))
            with pytest.raises(KeyboardInterrupt):
                workspace.write("d/f", b"f")
        assert page(sessions, "one").mark
        workspace.write("d/g", b"g")
        assert page(sessions, "one")[:5] == (0, 1, 2, 0, 1)
        require_agreement(sessions, workspace)


def test_a_move_that_was_begun_before_closing_is_counted_and_recorded(
    sessions: WorkspaceManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sessions.create("one") as workspace:
        workspace.write("f", b"f" * 10)
        workspace.write("g", b"g" * 20)
        files, _ = workspace.gate.permit(Access.WRITE, ".")

        def is_target(name: object, **_: object) -> bool:
            return name == b"g"

        with monkeypatch.context() as patch:
            patch.setattr(os, "stat", first(os.stat, files.close, when=is_target))
            workspace.move("f", "g", overwrite=True)
    assert page(sessions, "one")[:5] == (0, 10, 1, 0, 0)
    with sessions.open("one") as workspace:
        require_agreement(sessions, workspace)


def test_a_removed_tree_counts_until_its_remover_is_done_or_dead(sessions: WorkspaceManager) -> None:
    with sessions.create("one") as workspace:
        workspace.write("d/f", b"f" * 60)
        told, tell = os.pipe()
        go, let_go = os.pipe()

        def act() -> None:
            def pause() -> None:
                os.write(tell, b"!")
                os.read(go, 1)
                die()

            os.unlink = first(os.unlink, pause)
            workspace.remove("d", recursive=True)

        child = forked(act)
        os.read(told, 1)
        assert count(sessions.root / "one") == usage(0, 0)
        for _ in range(2):
            assert workspace.usage() == usage(60, 2)
            with pytest.raises(QuotaError):
                workspace.write("g", b"g" * 60)
        assert page(sessions, "one")[3:5] == (1, 0)
        os.write(let_go, b"!")
        assert not survives(child)
        for _ in range(2):
            workspace.write("g", b"g" * 60)
            assert workspace.usage() == usage(60, 1)
        assert page(sessions, "one")[3:5] == (0, 1)
        require_agreement(sessions, workspace)
        for end in (told, tell, go, let_go):
            os.close(end)


def test_a_removal_that_was_counted_meanwhile_gives_nothing_back(sessions: WorkspaceManager) -> None:
    with sessions.create("one") as workspace, sessions.open("one") as other:
        workspace.write("d/f", b"f" * 60)
        workspace.write("g", b"g" * 10)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "unlink", first(os.unlink, other.recount))
            workspace.remove("d", recursive=True)
        assert page(sessions, "one")[:5] == (0, 10, 1, 0, 1)
        assert workspace.usage() == usage(10, 1) == other.recount()


def test_a_kill_between_mark_and_change_is_seen_by_all_who_have_the_session_open(
    sessions: WorkspaceManager,
) -> None:
    """The others have opened it long before, and do not open it again."""
    with sessions.create("one") as workspace, sessions.open("one") as other:
        workspace.write("f", b"f")

        def act() -> None:
            os.rename = first(os.rename, die)
            workspace.write("f", b"f" * 50)

        assert not survives(forked(act))
        other.write("g", b"g")
        assert workspace.usage() == usage(2, 2) == other.usage()
        require_agreement(sessions, other)


# Programs that change the files by themselves


def test_a_change_does_not_take_away_the_count_that_killed_programs_need(sessions: WorkspaceManager) -> None:
    """Also after others have changed something, and counted, while the programs ran."""
    sessions.create("s").close()

    def work() -> None:
        with sessions.open("s") as own:
            UnmediatedRun(own).begin()
            own.write("through the gate", b"12")
            own.recount()
            (sessions.root / "s" / "by itself").write_bytes(b"12345")
            die()

    assert not survives(forked(work))
    with sessions.open("s") as workspace:
        assert workspace.usage() == usage(7, 2)
        assert page(sessions, "s").recounts == 2
        workspace.write("more", b"1")
        assert workspace.usage() == usage(8, 3)
        assert page(sessions, "s").recounts == 2


def test_nothing_is_counted_while_programs_run_and_once_when_they_end(sessions: WorkspaceManager) -> None:
    with sessions.create("s") as workspace, sessions.open("s") as other:
        use = UnmediatedRun(workspace)
        use.begin()
        (sessions.root / "s" / "by itself").write_bytes(b"12345")
        for number in range(3):
            other.write(f"f{number}", b"1")
        assert page(sessions, "s").recounts == 0
        assert other.gate.ledger.known_entries() is None
        assert use.end().created == ["by itself"]
        assert page(sessions, "s").recounts == 1
        assert other.usage() == usage(8, 4)
        assert other.gate.ledger.known_entries() == 4


# Signal handlers


@pytest.mark.parametrize("kind", ["session", "bare"])
def test_a_signal_handler_in_the_middle_of_a_change_is_told_so(
    sessions: WorkspaceManager, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """It may read; a change it begins is refused and disturbs nothing."""
    heard: list[object] = []
    with (
        sessions.create("s")
        if kind == "session"
        else Workspace.open(tmp_path, limits=Limits(disk_bytes=100)) as workspace
    ):
        workspace.write("before", b"1")

        def handler(number: int, frame: object) -> None:
            heard.append([event.path for event in workspace.changes()])
            heard.append(workspace.read("before"))
            with pytest.raises(BusyError, match="signal handler"):
                workspace.write("from the handler", b"22")
            heard.append(None)

        owner, name = (Event, "render") if kind == "session" else (Recorder, "write")
        monkeypatch.setattr(
            owner, name, first(getattr(owner, name), lambda: signal.raise_signal(signal.SIGUSR1))
        )
        old = signal.signal(signal.SIGUSR1, handler)
        try:
            workspace.write("f", b"333")
        finally:
            signal.signal(signal.SIGUSR1, old)
        assert heard == [["before"], b"1", None]
        assert workspace.usage() == usage(4, 2)
        workspace.write("after", b"4")
        assert [event.path for event in workspace.changes()] == ["before", "f", "after"]


def test_a_change_that_an_interrupt_ended_anywhere_keeps_nobody_out(sessions: WorkspaceManager) -> None:
    with sessions.create("s") as workspace:
        ledger = workspace.gate.ledger

        def interrupted() -> None:
            ledger.__enter__()

        interrupted()
        workspace.write("f", b"1")
        assert workspace.read("f") == b"1"
