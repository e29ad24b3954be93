"""One registry in many processes: races, forks and `kill -9`."""

from __future__ import annotations

import ctypes
import os
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

from carrel.errors import LimitError, SessionExistsError, UnavailableError
from carrel.fs.host.trusted_dirs import open_trusted_dir
from carrel.storage.local.registry import SqliteRegistry
from tests.depth import rounds
from tests.storage.registries import NOW, record


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / ".carrel"
    made.mkdir(0o700)
    return made


def require_sound(place: Path) -> None:
    """SQLite finds nothing wrong, and no file is left but its own."""
    with closing(sqlite3.connect(place / "registry.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert os.listdir(place) == ["registry.db"]


# Races; all processes begin at once, and the database is not there yet

ADDED, REFUSED = b"+", b"-"
Work = Callable[[SqliteRegistry, int], Iterator[bool]]


def race(work: Work, place: Path) -> list[bytes]:
    """What the processes answer, in any order."""
    gate, gate_writer = os.pipe()
    answers, answers_writer = os.pipe()
    children = [
        os.fork() or run(work, place, number, (gate, gate_writer, answers_writer)) for number in range(8)
    ]
    for end in (gate, gate_writer, answers_writer):
        os.close(end)
    with open(answers, "rb") as file:
        found = file.read()
    assert {os.waitpid(child, 0)[1] for child in children} == {0}
    return [found[at : at + 1] for at in range(len(found))]


def run(work: Work, place: Path, number: int, ends: tuple[int, int, int]) -> NoReturn:
    """Be one of the processes."""
    status = 1
    gate, gate_writer, answers_writer = ends
    with suppress(BaseException), closing(SqliteRegistry(place, busy_seconds=60)) as registry:
        os.close(gate_writer)
        os.read(gate, 1)
        for answer in work(registry, number):
            os.write(answers_writer, ADDED if answer else REFUSED)
        status = 0
    os._exit(status)


@pytest.mark.race
def test_many_processes_cannot_pass_the_maximum(place: Path) -> None:
    def work(registry: SqliteRegistry, number: int) -> Iterator[bool]:
        for turn in range(5):
            try:
                registry.add(record(f"p{number}-{turn}"), max_sessions=5)
                yield True
            except LimitError:
                yield False

    answers = race(work, place)
    assert (answers.count(ADDED), answers.count(REFUSED)) == (5, 35)
    with closing(SqliteRegistry(place)) as registry:
        assert registry.count() == 5
    require_sound(place)


@pytest.mark.race
def test_of_many_processes_that_add_one_id_one_succeeds(place: Path) -> None:
    def work(registry: SqliteRegistry, number: int) -> Iterator[bool]:
        for turn in range(5):
            try:
                registry.add(record(f"S{turn}" if number % 2 else f"s{turn}"))
                yield True
            except SessionExistsError:
                yield False

    answers = race(work, place)
    assert (answers.count(ADDED), answers.count(REFUSED)) == (5, 35)
    with closing(SqliteRegistry(place)) as registry:
        found = sorted(found.session_id.lower() for found in registry.list())
    assert found == [f"s{turn}" for turn in range(5)]
    require_sound(place)


@pytest.mark.race
def test_use_and_removal_by_many_processes_end_cleanly(place: Path) -> None:
    """Half of them use the session, the others remove it if it was not used since they looked."""

    def work(registry: SqliteRegistry, number: int) -> Iterator[bool]:
        for turn in range(50):
            if number % 2:
                registry.adopt("shared", NOW)
                registry.touch("shared", NOW + turn)
            elif (found := registry.get("shared")) is not None:
                yield registry.remove("shared", if_unused_since=found.used_ns)

    race(work, place)
    with closing(SqliteRegistry(place)) as registry:
        assert registry.corrupt() == []
        assert registry.count() <= 1
    require_sound(place)


# Forks


def in_child(work: Callable[[], object]) -> int:
    """Exit status of a child that does *work*."""
    return wait_for(os.fork(), work)


def wait_for(child: int, work: Callable[[], object]) -> int:
    if child == 0:
        status = 1
        with suppress(BaseException):
            work()
            status = 0
        os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def open_databases() -> list[str]:
    found = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{number}"))
    return [name for name in found if "registry.db" in name]


def own_locks() -> list[str]:
    return [line for line in Path("/proc/locks").read_text().splitlines() if f" {os.getpid()} " in line]


def test_a_child_inherits_no_connection_and_has_its_own_locks(place: Path) -> None:
    with closing(SqliteRegistry(place)) as registry:
        registry.add(record("parent"))
        assert open_databases()

        def work() -> None:
            assert open_databases() == []
            registry.add(record("child"))
            assert own_locks()

        assert in_child(work) == 0
        registry.add(record("parent-again"))
        assert registry.count() == 3


def test_a_fork_waits_for_the_call_of_another_thread(place: Path) -> None:
    entered, go = threading.Event(), threading.Event()
    with closing(SqliteRegistry(open_trusted_dir(place))) as registry:
        registry.add(record("parent"))

        def call() -> None:
            with registry._database.transaction() as connection:
                entered.set()
                go.wait()
                connection.execute("UPDATE sessions SET role = 'reader'")

        thread = threading.Thread(target=call)
        thread.start()
        entered.wait()
        os.register_at_fork(before=go.set)  # the last one registered is the first one called

        def work() -> None:
            registry.add(record("child"))
            assert registry.get("parent") == record("parent", role="reader")

        assert in_child(work) == 0
        thread.join()
        assert registry.count() == 2


def test_a_fork_that_python_does_not_know_of_is_noticed(place: Path) -> None:
    with closing(SqliteRegistry(place)) as registry:
        registry.add(record("parent"))

        def work() -> None:
            registry.add(record("child"))
            assert own_locks()

        assert wait_for(ctypes.PyDLL(None).fork(), work) == 0
        registry.add(record("parent-again"))
        assert registry.count() == 3


@pytest.mark.skipif(
    sys.version_info >= (3, 13),
    reason="since 3.13 Python ends a child whose fork it was not told of",
)
def test_a_fork_in_the_middle_of_a_call_leaves_the_call_to_the_parent(place: Path) -> None:
    """A server in C may fork without asking before; it tells Python afterwards."""
    with closing(SqliteRegistry(place, busy_seconds=0.01)) as registry:
        registry.add(record("parent"))

        def work() -> None:
            ctypes.pythonapi.PyOS_AfterFork_Child()
            assert registry.get("parent") == record("parent")
            with pytest.raises(UnavailableError):
                registry.add(record("child"))

        with registry._database.transaction() as connection:
            connection.execute("UPDATE sessions SET role = 'reader'")
            assert wait_for(ctypes.PyDLL(None).fork(), work) == 0
        registry.add(record("parent-again"))
        assert registry.list() == [record("parent", role="reader"), record("parent-again")]
    require_sound(place)


def test_a_child_that_ends_disturbs_nobody(place: Path) -> None:
    with closing(SqliteRegistry(place)) as registry:
        registry.add(record("parent"))
        assert in_child(registry.close) == 0
        assert in_child(registry.count) == 0
        registry.add(record("parent-again"))
        assert registry.count() == 2
    require_sound(place)


# kill -9


@contextmanager
def child(work: Callable[[int], object]) -> Iterator[int]:
    """A child that is killed at the end; *work* may write into the pipe that is read here."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reader)
        with suppress(BaseException):
            work(writer)
        os._exit(0)
    os.close(writer)
    try:
        yield reader
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        os.close(reader)


def pause_at(statement: int, writer: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stop for ever before the statement with that number."""
    connect, seen = sqlite3.connect, 0

    def trace(text: str) -> None:
        nonlocal seen
        seen += 1
        if seen == statement:
            os.write(writer, b"paused\n")
            signal.pause()

    def connect_traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.set_trace_callback(trace)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_traced)


def test_a_process_that_is_killed_before_any_statement_leaves_a_usable_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for statement in range(1, 100):
        place = tmp_path / f"{statement}"
        place.mkdir(0o700)

        def work(writer: int, place: Path = place, statement: int = statement) -> None:
            pause_at(statement, writer, monkeypatch)
            registry = SqliteRegistry(place)
            registry.add(record("one"), max_sessions=9)
            registry.update("one", role="reader")
            registry.remove("one")
            os.write(writer, b"done\n")

        with child(work) as reader:
            answer = os.read(reader, 100)
        with closing(SqliteRegistry(place, busy_seconds=1)) as registry:
            assert registry.list() in ([], [record("one")], [record("one", role="reader")])
            registry.add(record("two"), max_sessions=9)
            assert registry.get("two") == record("two")
        require_sound(place)
        if answer == b"done\n":
            assert statement > 10
            return
    pytest.fail("it never came to its end")


@pytest.mark.deeper
@pytest.mark.slow
def test_what_was_acknowledged_before_a_kill_is_there(place: Path) -> None:
    acknowledged: set[str] = set()
    for turn in range(rounds(10, 3)):

        def work(writer: int, turn: int = turn) -> None:
            registry = SqliteRegistry(place)
            for number in range(10_000):
                name = f"t{turn}-{number}"
                registry.add(record(name))
                registry.touch(name, NOW + 1)
                os.write(writer, f"{name}\n".encode())

        with child(work) as reader:
            read = b""
            while read.count(b"\n") < turn * 7 + 1:
                read += os.read(reader, 64)
        acknowledged |= set(read.decode().split("\n")[:-1])
        with closing(SqliteRegistry(place, busy_seconds=1)) as registry:
            for name in acknowledged:
                assert registry.get(name) == record(name, used_ns=NOW + 1)
            assert registry.corrupt() == []
    require_sound(place)
