"""A registry that cannot be used says so, loses nothing, and works again when it is back."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from carrel.errors import UnavailableError
from carrel.fs.handle import Handle
from carrel.fs.host.trusted_dirs import open_trusted_dir
from carrel.storage.local.registry import SqliteRegistry
from carrel.storage.session_record import SessionRecord
from tests.storage.registries import NOW, record, require_unavailable


@pytest.fixture
def place(tmp_path: Path) -> Path:
    made = tmp_path / ".carrel"
    made.mkdir(0o700)
    return made


@pytest.fixture(params=["handle", "path", "function"])
def registry(request: pytest.FixtureRequest, place: Path) -> Iterator[SqliteRegistry]:
    """With one session, and open."""
    given: dict[str, Callable[[], SqliteRegistry]] = {
        "handle": lambda: SqliteRegistry(open_trusted_dir(place), busy_seconds=0.01),
        "path": lambda: SqliteRegistry(str(place), busy_seconds=0.01),
        "function": lambda: SqliteRegistry(lambda: open_trusted_dir(place), busy_seconds=0.01),
    }
    with closing(given[request.param]()) as made:
        made.add(record("abc"))
        yield made


# Gone and back


def test_a_database_that_is_gone_is_not_made_anew_and_works_when_it_is_back(
    registry: SqliteRegistry, place: Path, tmp_path: Path
) -> None:
    away = tmp_path / "away"
    away.mkdir()
    for name in sorted(os.listdir(place)):
        (place / name).rename(away / name)
    require_unavailable(registry, "it is gone")
    assert os.listdir(place) == []
    for name in sorted(os.listdir(away)):
        (away / name).rename(place / name)
    assert registry.list() == [record("abc")]


def test_a_directory_that_is_gone_is_not_made_anew_and_works_when_it_is_back(
    place: Path, tmp_path: Path
) -> None:
    with closing(SqliteRegistry(place)) as registry:
        registry.add(record("abc"))
        place.rename(tmp_path / "away")
        require_unavailable(registry, "No such file or directory")
        assert not place.exists()
        place.mkdir(0o700)
        require_unavailable(registry, "it is gone")
        place.rmdir()
        (tmp_path / "away").rename(place)
        assert registry.list() == [record("abc")]
        registry.add(record("new"))


def test_a_database_that_was_replaced_is_the_one_that_is_used(
    registry: SqliteRegistry, place: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir(0o700)
    with closing(SqliteRegistry(tmp_path / "other")) as other:
        other.add(record("other"))
    for name in os.listdir(place):
        (place / name).unlink()
    shutil.move(tmp_path / "other/registry.db", place / "registry.db")
    assert registry.list() == [record("other")]
    registry.add(record("new"))
    with closing(SqliteRegistry(place)) as again:
        assert again.list() == [record("new"), record("other")]


def test_a_directory_that_was_replaced_is_the_one_that_is_used(place: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir(0o700)
    with closing(SqliteRegistry(tmp_path / "other")) as other:
        other.add(record("other"))
    with closing(SqliteRegistry(place)) as registry:
        registry.add(record("abc"))
        place.rename(tmp_path / "away")
        (tmp_path / "other").rename(place)
        assert registry.list() == [record("other")]
    with closing(SqliteRegistry(tmp_path / "away")) as away:
        assert away.list() == [record("abc")]


def test_a_directory_that_was_moved_is_still_found_by_its_handle(place: Path, tmp_path: Path) -> None:
    with closing(SqliteRegistry(open_trusted_dir(place))) as registry:
        registry.add(record("abc"))
        place.rename(tmp_path / "moved")
        registry.add(record("new"))
    with closing(SqliteRegistry(tmp_path / "moved")) as moved:
        assert moved.list() == [record("abc"), record("new")]


def test_a_write_into_a_file_that_is_taken_away_meanwhile_is_not_acknowledged(
    registry: SqliteRegistry, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = SessionRecord.render

    def render(self: SessionRecord) -> dict[str, Any]:
        (place / "registry.db").rename(place / "away")
        return dict(columns(self))

    with monkeypatch.context() as patched:
        patched.setattr(SessionRecord, "render", render)
        with pytest.raises(UnavailableError, match="cannot be used: "):
            registry.add(record("new"))
    (place / "away").rename(place / "registry.db")
    registry.touch("abc", NOW + 1)
    assert registry.get("abc") == record("abc", used_ns=NOW + 1)


def test_the_function_that_gives_the_directory_may_say_that_it_is_unavailable(place: Path) -> None:
    handle = open_trusted_dir(place)
    reachable = True

    def directory() -> Handle:
        if reachable:
            return handle
        raise UnavailableError("the sessions directory is not mounted")

    with closing(SqliteRegistry(directory)) as registry:
        registry.add(record("abc"))
        reachable = False
        require_unavailable(registry, "^the sessions directory is not mounted$")
        reachable = True
        assert registry.count() == 1


@pytest.mark.parametrize("number", [5, 116], ids=["EIO", "ESTALE"])
def test_a_file_system_that_fails_for_a_while_is_unavailable_for_a_while(
    registry: SqliteRegistry, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(*arguments: object, **options: object) -> os.stat_result:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", fail)
        patched.setattr(os, "lstat", fail)
        require_unavailable(registry, os.strerror(number))
    assert registry.list() == [record("abc")]


def test_a_missing_directory_is_unavailable_until_it_is_made(tmp_path: Path) -> None:
    place = tmp_path / "not yet"
    with closing(SqliteRegistry(place)) as registry:
        require_unavailable(registry, "No such file or directory")
        place.mkdir(0o700)
        registry.add(record("abc"))


def test_a_handle_of_a_removed_directory_is_unavailable(place: Path) -> None:
    handle = open_trusted_dir(place)
    place.rmdir()
    with closing(SqliteRegistry(handle)) as registry:
        require_unavailable(registry, "No such file or directory")


# Locked, read-only, full


def test_a_database_that_is_locked_for_long_is_unavailable_for_writers(
    registry: SqliteRegistry, place: Path
) -> None:
    with closing(sqlite3.connect(place / "registry.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnavailableError, match="another process has held it for too long"):
            registry.add(record("new"))
        with pytest.raises(UnavailableError, match="another process has held it for too long"):
            registry.touch("abc", NOW + 1)
        assert registry.list() == [record("abc")], "readers need not wait"
        other.execute("ROLLBACK")
    registry.add(record("new"))


def test_a_new_database_that_is_locked_for_long_is_unavailable(place: Path) -> None:
    with closing(sqlite3.connect(place / "registry.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with closing(SqliteRegistry(place, busy_seconds=0.01)) as registry:
            require_unavailable(registry, "another process has held it for too long")
            other.execute("ROLLBACK")
            registry.add(record("abc"))


def test_a_new_database_waits_for_those_who_read_it(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite itself does not wait when it changes to a write-ahead log."""
    seen: list[str] = []
    with closing(sqlite3.connect(place / "registry.db", isolation_level=None)) as other:
        other.execute("CREATE TABLE other (name)")
        other.execute("BEGIN")
        other.execute("SELECT * FROM other").fetchall()

        def trace(statement: str) -> None:
            seen.append(statement)
            if statement == "BEGIN EXCLUSIVE":
                other.rollback()

        def connect_traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
            connection = sqlite3.Connection(*arguments, **options)
            connection.set_trace_callback(trace)
            return connection

        monkeypatch.setattr(sqlite3, "connect", connect_traced)
        with closing(SqliteRegistry(place, busy_seconds=0.01)) as registry:
            registry.add(record("abc"))
    assert seen.count("PRAGMA journal_mode = WAL") == 2


def test_a_directory_without_write_permission_is_unavailable_until_it_has_it(unprivileged: Path) -> None:
    unprivileged.chmod(0o500)
    with closing(SqliteRegistry(unprivileged)) as registry:
        require_unavailable(registry, "Permission denied")
        unprivileged.chmod(0o700)
        registry.add(record("abc"))
        registry.close()
    unprivileged.chmod(0o500)
    with closing(SqliteRegistry(unprivileged)) as registry:
        require_unavailable(registry, "cannot be used: ")
        unprivileged.chmod(0o700)
        assert registry.list() == [record("abc")]


Mount = Callable[..., None]


@pytest.fixture
def mount() -> Iterator[Mount]:
    """Mounts something; what is left is unmounted at the end."""
    mounted: list[str] = []

    def run(*arguments: str | Path) -> None:
        done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True, check=False)
        if done.returncode:
            if os.environ.get("CI") == "true":
                pytest.fail(f"cannot mount: {done.stderr}")
            pytest.skip(f"needs root, to mount: {done.stderr.strip()}")
        mounted.append(str(arguments[-1]))

    yield run
    for place in mounted:
        subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)


def unmount(place: Path) -> None:
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.root
def test_a_read_only_file_system_is_unavailable_until_it_is_writable(place: Path, mount: Mount) -> None:
    mount("-t", "tmpfs", "-o", "mode=700", "tmpfs", place)
    with closing(SqliteRegistry(place)) as registry:
        registry.add(record("abc"))
    mount("-o", "remount,ro", place)
    with closing(SqliteRegistry(place)) as registry:
        require_unavailable(registry, "read-only|Read-only")
        mount("-o", "remount,rw", place)
        assert registry.list() == [record("abc")]
        registry.add(record("new"))


@pytest.mark.root
def test_an_unmounted_directory_loses_nothing_and_works_when_it_is_mounted_again(
    place: Path, tmp_path: Path, mount: Mount
) -> None:
    (tmp_path / "point").mkdir(0o700)
    mount("--bind", place, tmp_path / "point")
    with closing(SqliteRegistry(tmp_path / "point")) as registry:
        registry.add(record("abc"))
        unmount(tmp_path / "point")
        require_unavailable(registry, "it is gone")
        assert os.listdir(tmp_path / "point") == []
        mount("--bind", place, tmp_path / "point")
        assert registry.list() == [record("abc")]
        registry.add(record("new"))


def fill(place: Path) -> None:
    with open(place / "filler", "wb", buffering=0) as filler, suppress(OSError):
        while True:
            filler.write(b"x" * 4096)


def add_until_refused(registry: SqliteRegistry) -> tuple[list[str], str]:
    """Which sessions could still be added, and why no more."""
    added: list[str] = []
    for number in range(1000):
        try:
            registry.add(record(f"s{number}", labels={"long": "x" * 1000}))
        except UnavailableError as error:
            return added, str(error)
        added.append(f"s{number}")
    raise AssertionError("it never ended")


@pytest.mark.root
@pytest.mark.parametrize("kept_open", [True, False])
def test_a_full_disk_is_unavailable_and_loses_nothing(place: Path, mount: Mount, kept_open: bool) -> None:
    mount("-t", "tmpfs", "-o", "mode=700,size=1M", "tmpfs", place)
    with closing(SqliteRegistry(place)) as first, closing(SqliteRegistry(place)) as second:
        first.add(record("abc"))
        if not kept_open:
            first.close()
        registry = first if kept_open else second
        fill(place)
        added, problem = add_until_refused(registry)
        assert "the disk is full" in problem
        (place / "filler").unlink()
        assert sorted(found.session_id for found in registry.list()) == sorted(["abc", *added])
        registry.add(record("new"))


def test_the_files_stay_closed_to_others_after_every_fault(registry: SqliteRegistry, place: Path) -> None:
    (place / "registry.db").rename(place / "away")
    require_unavailable(registry, "it is gone")
    (place / "away").rename(place / "registry.db")
    registry.add(record("new"))
    assert {stat.S_IMODE(os.stat(place / name).st_mode) for name in os.listdir(place)} == {0o600}
