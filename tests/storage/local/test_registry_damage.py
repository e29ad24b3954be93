"""What is not a database of ours is neither used nor changed."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from carrel.errors import UnavailableError
from carrel.fs.host.trusted_dirs import open_trusted_dir
from carrel.storage.local.registry import SqliteRegistry
from tests.storage.registries import CALLS, record, require_unavailable


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / ".carrel"
    made.mkdir(0o700)
    return made


def test_a_damaged_database_is_left_as_it_is_and_works_when_it_is_repaired(place: Path) -> None:
    with closing(SqliteRegistry(place)) as registry:
        registry.add(record("abc"))
    good = (place / "registry.db").read_bytes()
    (place / "registry.db").write_bytes(b"this is not a database" * 1000)
    with closing(SqliteRegistry(place)) as registry:
        require_unavailable(registry, "damaged")
        assert (place / "registry.db").read_bytes() == b"this is not a database" * 1000
        (place / "registry.db").write_bytes(good)
        assert registry.list() == [record("abc")]


@pytest.mark.parametrize("page", [0, 1, 2, 3])
def test_a_page_of_rubbish_is_unavailable_and_nothing_worse(place: Path, page: int) -> None:
    with closing(SqliteRegistry(place)) as registry:
        registry.add(record("abc", ttl_seconds=5))
        for number in range(199):
            registry.add(record(f"s{number}", ttl_seconds=5))
    good = (place / "registry.db").read_bytes()
    bad = bytearray(good)
    bad[page * 4096 + 100 : (page + 1) * 4096] = b"\xa5" * (4096 - 100)
    (place / "registry.db").write_bytes(bad)
    refused = 0
    with closing(SqliteRegistry(place)) as registry:
        for call in CALLS:
            try:
                call(registry)
            except UnavailableError as error:
                refused += "damaged" in str(error)
    assert refused
    (place / "registry.db").write_bytes(good)
    with closing(SqliteRegistry(place)) as registry:
        assert registry.count() == 200


def test_a_database_of_a_later_version_is_refused_and_unchanged(place: Path) -> None:
    with closing(SqliteRegistry(place)) as registry:
        registry.add(record("abc"))
        with closing(sqlite3.connect(place / "registry.db")) as connection:
            connection.execute("PRAGMA user_version = 7")
    with closing(SqliteRegistry(place)) as registry:
        require_unavailable(registry, "its version is 7, this carrel knows 1")
        with closing(sqlite3.connect(place / "registry.db")) as connection:
            assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (1,)
            connection.execute("PRAGMA user_version = 1")
        assert registry.list() == [record("abc")]


@pytest.mark.parametrize("change", ["DROP TABLE sessions", "ALTER TABLE sessions RENAME COLUMN role TO part"])
def test_other_tables_than_ours_are_refused(place: Path, change: str) -> None:
    with closing(SqliteRegistry(place)) as registry:
        registry.add(record("abc"))
        with closing(sqlite3.connect(place / "registry.db")) as connection:
            connection.execute(change)
    with closing(SqliteRegistry(place)) as registry:
        require_unavailable(registry, "damaged")


PLANTED: dict[str, tuple[Callable[[Path, Path], object], str]] = {
    "a link": (lambda file, other: file.symlink_to(other), "it is a link"),
    "a link to nothing": (lambda file, other: file.symlink_to(other / "x"), "it is a link"),
    "a directory": (lambda file, other: file.mkdir(), "it is not a file"),
    "a FIFO": (lambda file, other: os.mkfifo(file), "it is not a file"),
}


@pytest.mark.attack
@pytest.mark.parametrize("what", PLANTED)
def test_anything_but_a_file_in_place_of_the_database_is_refused(
    place: Path, tmp_path: Path, what: str
) -> None:
    plant, problem = PLANTED[what]
    (tmp_path / "other").mkdir(0o700)
    with closing(SqliteRegistry(tmp_path / "other")) as other:
        other.add(record("other"))
    plant(place / "registry.db", tmp_path / "other/registry.db")
    with closing(SqliteRegistry(place)) as registry:
        require_unavailable(registry, problem)
    with closing(SqliteRegistry(tmp_path / "other")) as other:
        assert other.list() == [record("other")]


@pytest.mark.attack
@pytest.mark.parametrize("ending", ["-wal", "-shm"])
def test_a_link_in_place_of_the_files_beside_it_is_not_followed(
    place: Path, outside: Path, ending: str
) -> None:
    with closing(SqliteRegistry(place)) as registry:
        registry.add(record("abc"))
    (place / f"registry.db{ending}").symlink_to(outside / "secret")
    with closing(SqliteRegistry(place)) as registry, pytest.raises(UnavailableError):
        registry.add(record("new"))
    assert (outside / "secret").read_bytes() == b"secret data"


@pytest.mark.attack
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make a file of another user")
def test_the_database_of_another_user_is_refused(place: Path) -> None:
    (place / "registry.db").touch()
    os.chown(place / "registry.db", 65534, 65534)
    with closing(SqliteRegistry(place)) as registry:
        require_unavailable(registry, "another user")


@pytest.mark.attack
@pytest.mark.parametrize("swapped_at", ["open", "wal"])
def test_a_directory_that_is_swapped_for_a_moment_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, swapped_at: str
) -> None:
    """SQLite opens by a path of the host; whoever can rename what is above may lead it elsewhere."""
    store, away, trap = tmp_path / "store", tmp_path / "away", tmp_path / "trap"
    for path in (store, trap):
        (path / ".carrel").mkdir(0o700, parents=True)
        with closing(SqliteRegistry(path / ".carrel")) as made:
            made.add(record(path.name))

    def swap(first: Path, second: Path, third: Path) -> None:
        first.rename(second)
        third.rename(first)

    class Swapping(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            if swapped_at != "wal" or "journal_mode" not in arguments[0]:
                return super().execute(*arguments)
            swap(store, away, trap)
            try:
                return super().execute(*arguments)
            finally:
                swap(store, trap, away)

    def connect_elsewhere(*arguments: Any, **options: Any) -> sqlite3.Connection:
        if swapped_at != "open":
            return Swapping(*arguments, **options)
        swap(store, away, trap)
        try:
            return sqlite3.Connection(*arguments, **options)
        finally:
            swap(store, trap, away)

    with closing(SqliteRegistry(open_trusted_dir(store / ".carrel"))) as registry:
        with monkeypatch.context() as patched:
            patched.setattr(sqlite3, "connect", connect_elsewhere)
            with pytest.raises(UnavailableError):
                registry.add(record("new"))
        registry.add(record("new"))
        assert registry.list() == [record("new"), record("store")]
    with closing(SqliteRegistry(trap / ".carrel")) as other:
        assert other.list() == [record("trap")]


def test_a_handle_where_proc_is_missing_is_unavailable(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrel.storage.local.database._OWN_FILES", str(tmp_path / "no proc"))
    with closing(SqliteRegistry(open_trusted_dir(place))) as registry:
        require_unavailable(registry, "/proc is missing")
