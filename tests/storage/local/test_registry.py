"""The registry in SQLite: its file, its rows, and how it finds them."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from carrel.errors import BusyError, ClosedError, SessionExistsError, SessionMissingError
from carrel.fs.host.trusted_dirs import open_trusted_dir
from carrel.storage.local.registry import SqliteRegistry
from carrel.values import Limits
from tests.faults.inject import first
from tests.requirements import requirement
from tests.storage.registries import NOW, record
from tests.workspace.dying import forked, survives

Interrupt = Callable[[Callable[[], object]], AbstractContextManager[None]]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / ".carrel"
    made.mkdir(0o700)
    return made


@pytest.fixture
def registry(place: Path) -> Iterator[SqliteRegistry]:
    with closing(SqliteRegistry(place)) as made:
        yield made


def execute(place: Path, statement: str, *values: object) -> None:
    """Change the database as somebody else would."""
    with closing(sqlite3.connect(place / "registry.db", isolation_level=None)) as connection:
        assert connection.execute(statement, values).rowcount == 1


# The file


def test_nothing_is_made_before_the_first_call(place: Path) -> None:
    with closing(SqliteRegistry(place)) as registry:
        assert os.listdir(place) == []
        assert registry.count() == 0
        assert "registry.db" in os.listdir(place)
    assert os.listdir(place) == ["registry.db"]


def test_no_file_is_readable_for_others(registry: SqliteRegistry, place: Path) -> None:
    before = os.umask(0)
    try:
        registry.add(record("abc"))
    finally:
        os.umask(before)
    modes = {name: stat.S_IMODE(os.stat(place / name).st_mode) for name in os.listdir(place)}
    assert modes == {"registry.db": 0o600, "registry.db-shm": 0o600, "registry.db-wal": 0o600}


def test_a_file_that_others_may_read_is_closed_to_them(place: Path) -> None:
    with closing(SqliteRegistry(place)) as registry:
        registry.add(record("abc"))
    (place / "registry.db").chmod(0o666)
    with closing(SqliteRegistry(place)) as registry:
        assert registry.get("abc") == record("abc")
        assert {stat.S_IMODE(os.stat(place / name).st_mode) for name in os.listdir(place)} == {0o600}


def test_records_outlive_the_registry(place: Path) -> None:
    full = record("abc", ttl_seconds=5, limits=Limits(depth=1), labels={"a": "ü"}, owner="key-1", epoch=2)
    with closing(SqliteRegistry(place)) as registry:
        registry.add(full)
    with closing(SqliteRegistry(open_trusted_dir(place))) as registry:
        assert registry.list() == [full]


def test_registries_of_one_directory_see_each_other(place: Path) -> None:
    with closing(SqliteRegistry(place)) as one, closing(SqliteRegistry(place)) as other:
        one.add(record("abc"), max_sessions=1)
        assert other.get("abc") == record("abc")
        with pytest.raises(SessionExistsError):
            other.add(record("abc"))
        assert other.remove("abc")
        assert one.count() == 0


def test_a_directory_with_any_name_will_do(tmp_path: Path) -> None:
    place = tmp_path / "100% #1?mode=memory&x ü"
    place.mkdir(0o700)
    with closing(SqliteRegistry(place)) as registry:
        registry.add(record("abc"))
    assert os.listdir(place) == ["registry.db"]


def test_a_host_without_proc_finds_the_directory_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "100% #1?mode=memory&x ü"
    place.mkdir(0o700)
    monkeypatch.setattr("carrel.storage.local.database._OWN_FILES", str(tmp_path / "no proc"))
    with closing(SqliteRegistry(place)) as registry:
        registry.add(record("abc"))
    assert os.listdir(place) == ["registry.db"]


# Rows that are no records

SPOILED = [
    ("created_ns", -1, "corrupted_timestamp"),
    ("used_ns", -(2**63), "corrupted_timestamp"),
    ("used_ns", 2**63 - 1, "corrupted_timestamp"),
    ("ttl_seconds", -1e300, "corrupted_timestamp"),
    ("ttl_seconds", 1e300, "corrupted_timestamp"),
    ("limits", '{"depth": "deep"}', "corrupted_metadata"),
    ("labels", "{ invalid json }", "corrupted_metadata"),
    ("labels", "[]", "corrupted_metadata"),
    ("role", "a\x1bb", "corrupted_metadata"),
    ("epoch", 0, "corrupted_metadata"),
]
SPOILED_TYPES = [
    ("created_ns", "2026-01-01T00:00:00", "corrupted_timestamp"),
    ("used_ns", "yesterday", "corrupted_timestamp"),
    ("used_ns", b"\xff", "corrupted_timestamp"),
    ("used_ns", 1.5, "corrupted_timestamp"),
    ("ttl_seconds", "soon", "corrupted_timestamp"),
    ("labels", b"{}", "corrupted_metadata"),
    ("epoch", "one", "corrupted_metadata"),
]


def require_only_reported(registry: SqliteRegistry, reason: str) -> None:
    """The row of 'bad' hinders nobody and is told of."""
    later = NOW + 10**12
    assert registry.rewind(NOW) == 0
    assert registry.corrupt() == [("bad", reason)]
    assert registry.get("bad") is None
    assert [found.session_id for found in registry.list()] == ["a", "z"]
    assert [found.session_id for found in registry.expired(later)] == ["a", "z"]
    assert registry.count() == 3
    with pytest.raises(SessionExistsError):
        registry.add(record("bad"))
    with pytest.raises(SessionMissingError):
        registry.update("bad", role="reader")
    registry.touch("bad", NOW + 1)
    assert registry.remove("bad")


@requirement("M-04")
@pytest.mark.parametrize(("column", "value", "reason"), SPOILED)
def test_a_corrupt_row_is_reported_and_hinders_nobody(
    registry: SqliteRegistry, place: Path, column: str, value: object, reason: str
) -> None:
    for name in ("a", "bad", "z"):
        registry.add(record(name, ttl_seconds=5))
    execute(place, f"UPDATE sessions SET {column} = ? WHERE session_id = 'bad'", value)
    require_only_reported(registry, reason)


@pytest.mark.parametrize(("column", "value", "reason"), [*SPOILED, *SPOILED_TYPES])
def test_an_old_sqlite_that_keeps_any_type_makes_no_difference(
    place: Path, monkeypatch: pytest.MonkeyPatch, column: str, value: object, reason: str
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 36, 0))
    with closing(SqliteRegistry(place)) as registry:
        for name in ("a", "bad", "z"):
            registry.add(record(name, ttl_seconds=5))
        execute(place, f"UPDATE sessions SET {column} = ? WHERE session_id = 'bad'", value)
        require_only_reported(registry, reason)


def test_text_that_is_no_text_is_corrupt(registry: SqliteRegistry, place: Path) -> None:
    registry.add(record("bad"))
    execute(place, "UPDATE sessions SET labels = CAST(x'ff7b7d' AS TEXT)")
    assert registry.corrupt() == [("bad", "corrupted_metadata")]
    assert registry.list() == []


def test_an_id_that_is_none_is_shown_without_control_characters(
    registry: SqliteRegistry, place: Path
) -> None:
    registry.add(record("bad"))
    execute(place, "UPDATE sessions SET session_id = ?", "..\n\x1b[31m")
    assert registry.corrupt() == [(r"'..\n\x1b[31m'", "corrupted_metadata")]


def test_many_corrupt_rows_do_not_keep_the_others_from_being_found(
    registry: SqliteRegistry, place: Path
) -> None:
    for number in range(150):
        registry.add(record(f"a{number}", ttl_seconds=1))
        execute(place, "UPDATE sessions SET labels = '' WHERE session_id = ?", f"a{number}")
    registry.add(record("good", ttl_seconds=2))
    assert registry.list(count=1) == [record("good", ttl_seconds=2)]
    assert registry.expired(NOW + 10**12, count=1) == [record("good", ttl_seconds=2)]
    assert len(registry.corrupt()) == 150


def test_adopting_mends_a_corrupt_record_and_keeps_what_can_be_read(
    registry: SqliteRegistry, place: Path
) -> None:
    registry.add(record("bad", owner="key-1", role="reader", limits=Limits(depth=2), ttl_seconds=7))
    execute(place, "UPDATE sessions SET labels = '{', used_ns = -1")
    mended = registry.adopt("bad", NOW + 5, ttl_seconds=60)
    assert mended == record(
        "bad", used_ns=NOW + 5, owner="key-1", role="reader", limits=Limits(depth=2), ttl_seconds=7
    )
    assert registry.get("bad") == mended
    assert registry.corrupt() == []


# What a call costs

Traced = Callable[[Callable[[SqliteRegistry], object]], list[str]]


@pytest.fixture
def traced(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Traced]:
    """Gives the statements that a call runs on a registry of 300 sessions."""
    seen: list[str] = []
    connect = sqlite3.connect

    def connect_traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.set_trace_callback(seen.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", connect_traced)
    with closing(SqliteRegistry(place)) as registry:
        for number in range(300):
            registry.add(record(f"s{number}", ttl_seconds=5 if number % 2 else None))

        def trace(call: Callable[[SqliteRegistry], object]) -> list[str]:
            seen.clear()
            call(registry)
            return list(seen)

        yield trace


def plan(place: Path, statement: str) -> list[str]:
    with closing(sqlite3.connect(place / "registry.db")) as connection:
        return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")]


INDEXED: dict[str, tuple[Callable[[SqliteRegistry], object], str]] = {
    "get": (lambda registry: registry.get("s5"), "PRIMARY KEY"),
    "touch": (lambda registry: registry.touch("s5", NOW + 1), "PRIMARY KEY"),
    "remove": (lambda registry: registry.remove("s5", if_expired_at=2**61), "PRIMARY KEY"),
    "list": (lambda registry: registry.list(), "PRIMARY KEY"),
    "next page": (lambda registry: registry.list(after="s5"), "PRIMARY KEY"),
    "expired": (lambda registry: registry.expired(NOW + 10**12), "sessions_expire"),
    "next expired": (
        lambda registry: registry.expired(NOW + 10**12, after=record("s5", ttl_seconds=1)),
        "sessions_expire",
    ),
}


@pytest.mark.parametrize("name", INDEXED)
def test_a_call_is_one_statement_that_searches_by_an_index(traced: Traced, place: Path, name: str) -> None:
    call, index = INDEXED[name]
    (statement,) = traced(call)
    (step,) = plan(place, statement)
    assert step.startswith("SEARCH sessions USING")
    assert index in step


def test_adding_counts_no_further_than_the_maximum(traced: Traced, place: Path) -> None:
    statements = traced(lambda registry: registry.add(record("new"), max_sessions=1000))
    assert [statement.split()[0] for statement in statements] == [
        "BEGIN",
        "SELECT",
        "SELECT",
        "INSERT",
        "COMMIT",
    ]
    assert plan(place, statements[1])[0].startswith("SEARCH sessions USING")
    assert "LIMIT 1 OFFSET 999" in statements[2]


def test_an_update_is_one_transaction(traced: Traced, place: Path) -> None:
    statements = traced(lambda registry: registry.update("s5", role="reader"))
    assert [statement.split()[0] for statement in statements] == ["BEGIN", "SELECT", "UPDATE", "COMMIT"]
    for statement in statements[1:3]:
        (step,) = plan(place, statement)
        assert step.startswith("SEARCH sessions USING PRIMARY KEY")


# Signals


@pytest.fixture
def interrupted(registry: SqliteRegistry, monkeypatch: pytest.MonkeyPatch) -> Interrupt:
    """Lets a signal come in the middle of the next call of the registry, and does what is asked for."""

    @contextmanager
    def interrupt(act: Callable[[], object]) -> Iterator[None]:
        database = registry._database
        with monkeypatch.context() as patch:
            in_place = first(database._require_in_place, lambda: signal.raise_signal(signal.SIGUSR1))
            patch.setattr(database, "_require_in_place", in_place)
            old = signal.signal(signal.SIGUSR1, lambda *_: act())
            try:
                yield
            finally:
                signal.signal(signal.SIGUSR1, old)

    return interrupt


def test_a_signal_handler_in_the_middle_of_a_call_is_told_so(
    registry: SqliteRegistry, interrupted: Interrupt
) -> None:
    def handler() -> None:
        with pytest.raises(BusyError, match="signal handler"):
            registry.count()
        told.append("busy")

    told: list[str] = []
    with interrupted(handler):
        registry.add(record("abc"))
    assert told == ["busy"]
    assert registry.count() == 1


def test_a_signal_handler_may_close_what_is_in_the_middle_of_a_call(
    registry: SqliteRegistry, interrupted: Interrupt, place: Path
) -> None:
    with interrupted(registry.close):
        registry.add(record("abc"))
    with pytest.raises(ClosedError):
        registry.count()
    assert os.listdir(place) == ["registry.db"], "the connection is closed"
    with closing(SqliteRegistry(place)) as again:
        assert again.count() == 1


def test_a_signal_handler_may_fork_in_the_middle_of_a_call(
    registry: SqliteRegistry, interrupted: Interrupt
) -> None:
    children: list[int] = []
    with interrupted(lambda: children.append(forked(lambda: None))):
        registry.add(record("abc"))
    assert survives(children[0])
    assert registry.count() == 1
