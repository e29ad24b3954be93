"""`SqliteRegistry`: a registry shared by all processes of one machine."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from itertools import islice
from pathlib import Path

from carrel.errors import UnavailableError
from carrel.fs.handle import Handle
from carrel.fs.host.durability import Durability
from carrel.fs.host.trusted_dirs import open_trusted_dir
from carrel.paths.session_id import require_session_id
from carrel.storage import registry_rules as rules
from carrel.storage.api import Problems, Records
from carrel.storage.local.database import Database
from carrel.storage.session_record import (
    END_NS,
    Column,
    CorruptRecordError,
    SessionRecord,
    require_ns,
    require_ttl,
)
from carrel.values import UNSET, Limits, Unset

FILE = "registry.db"
VERSION = 1
"""Version of the tables; a database of a later version is refused."""
BUSY_SECONDS = 10.0
"""Seconds to wait for other processes that write."""

_STRICT_SINCE = (3, 37)
_TABLE = """
    CREATE TABLE sessions (
        session_id TEXT NOT NULL PRIMARY KEY,
        folded TEXT NOT NULL UNIQUE,
        created_ns INTEGER NOT NULL,
        used_ns INTEGER NOT NULL,
        ttl_seconds REAL,
        role TEXT,
        limits TEXT,
        labels TEXT NOT NULL,
        owner TEXT,
        epoch INTEGER NOT NULL
    ) WITHOUT ROWID"""
_INDEX = "CREATE INDEX sessions_expire ON sessions (used_ns + CAST(ttl_seconds * 1e9 AS INTEGER))"
"""Index by `SessionRecord.expires_ns`. Queries must repeat the expression exactly to use it."""

_CHECK = """
    SELECT session_id, folded, created_ns, used_ns, ttl_seconds, role, limits, labels, owner, epoch
    FROM sessions LIMIT 0"""
_GET = "SELECT * FROM sessions WHERE session_id = ?"
_GET_FOLDED = "SELECT session_id FROM sessions WHERE folded = ?"
_LIST = "SELECT * FROM sessions WHERE session_id > ? ORDER BY session_id"
_ALL = "SELECT * FROM sessions"
_IDS = "SELECT session_id FROM sessions"
_COUNT = "SELECT count(*) FROM sessions"
_FULL = "SELECT 1 FROM sessions LIMIT 1 OFFSET ?"
_EXPIRED = """
    SELECT * FROM sessions WHERE used_ns + CAST(ttl_seconds * 1e9 AS INTEGER) BETWEEN :after_ns AND :now
    AND (used_ns + CAST(ttl_seconds * 1e9 AS INTEGER) > :after_ns OR session_id > :after_id)
    ORDER BY used_ns + CAST(ttl_seconds * 1e9 AS INTEGER), session_id"""
_ADD = """
    INSERT INTO sessions
    (session_id, folded, created_ns, used_ns, ttl_seconds, role, limits, labels, owner, epoch) VALUES
    (:session_id, :folded, :created_ns, :used_ns, :ttl_seconds, :role, :limits, :labels, :owner, :epoch)"""
_SET = """
    UPDATE sessions SET created_ns = :created_ns, used_ns = :used_ns, ttl_seconds = :ttl_seconds,
    role = :role, limits = :limits, labels = :labels, owner = :owner, epoch = :epoch
    WHERE session_id = :session_id"""
_TOUCH = "UPDATE sessions SET used_ns = :now WHERE session_id = :id AND used_ns < :now"
_REWIND = "UPDATE sessions SET used_ns = :now WHERE used_ns > :now AND used_ns < :end"
_REMOVE = """
    DELETE FROM sessions WHERE session_id = :id
    AND (:unused_since IS NULL OR used_ns <= :unused_since)
    AND (:expired_at IS NULL OR used_ns + CAST(ttl_seconds * 1e9 AS INTEGER) <= :expired_at)"""

DirectorySource = Handle | Callable[[], Handle] | str | os.PathLike[str]
"""A directory that only we may write to: open, as a function that returns it, or as its path on the host."""


class SqliteRegistry:
    """The records of all sessions in the file `registry.db`.

    It is opened by the first call and reopened after it was missing; see `database`. Pass a function or a
    path, not a handle, if the directory itself may be missing for a while.
    """

    def __init__(
        self,
        directory: DirectorySource,
        *,
        busy_seconds: float = BUSY_SECONDS,
        durability: Durability = Durability.PROCESS,
    ) -> None:
        self._database = Database(
            _opener(directory),
            FILE,
            called="registry of sessions",
            prepare=_prepare,
            busy_seconds=busy_seconds,
            path=Path(directory) if isinstance(directory, str | os.PathLike) else None,
            durability=durability,
        )

    def add(self, record: SessionRecord, *, max_sessions: int | None = None) -> None:
        rules.require_max_sessions(max_sessions)
        with self._database.transaction() as connection:
            _require_free(connection, record.session_id)
            if max_sessions is not None and _is_full(connection, max_sessions):
                raise rules.too_many_sessions(max_sessions)
            connection.execute(_ADD, _columns(record))

    def adopt(self, session_id: str, now_ns: int, *, ttl_seconds: float | None = None) -> SessionRecord:
        fresh = rules.adopted_record(session_id, now_ns, ttl_seconds)
        with self._database.transaction() as connection:
            row = connection.execute(_GET, (session_id,)).fetchone()
            if row is None:
                _require_free(connection, session_id)
                connection.execute(_ADD, _columns(fresh))
                return fresh
            record = _parse(row)
            if record is None:
                record = fresh.with_valid_columns(dict(row))
                connection.execute(_SET, _columns(record))
            return record

    def get(self, session_id: str) -> SessionRecord | None:
        require_session_id(session_id)
        with self._database.connection() as connection:
            return _get(connection, session_id)

    def touch(self, session_id: str, now_ns: int) -> None:
        values = {"id": require_session_id(session_id), "now": require_ns(now_ns)}
        with self._database.connection() as connection:
            connection.execute(_TOUCH, values)

    def extend(self, session_id: str, ttl_seconds: float | None) -> SessionRecord:
        return self._change(session_id, {"ttl_seconds": require_ttl(ttl_seconds)})

    def update(
        self,
        session_id: str,
        *,
        limits: Limits | Unset | None = UNSET,
        labels: Mapping[str, str] | Unset = UNSET,
        role: str | Unset | None = UNSET,
    ) -> SessionRecord:
        return self._change(session_id, {"limits": limits, "labels": labels, "role": role})

    def rewind(self, now_ns: int) -> int:
        values = {"now": require_ns(now_ns), "end": END_NS}
        with self._database.connection() as connection:
            return connection.execute(_REWIND, values).rowcount

    def remove(
        self, session_id: str, *, if_unused_since: int | None = None, if_expired_at: int | None = None
    ) -> bool:
        rules.require_removal(session_id, if_unused_since, if_expired_at)
        values = {"id": session_id, "unused_since": if_unused_since, "expired_at": if_expired_at}
        with self._database.connection() as connection:
            return connection.execute(_REMOVE, values).rowcount == 1

    def list(self, after: str | None = None, count: int = 100) -> Records:
        start = rules.require_page(after, count)
        with self._database.connection() as connection:
            return _page(connection.execute(_LIST, (start,)), count)

    def count(self) -> int:
        with self._database.connection() as connection:
            found: int = connection.execute(_COUNT).fetchone()[0]
            return found

    def expired(self, now_ns: int, count: int = 100, after: SessionRecord | None = None) -> Records:
        require_ns(now_ns)
        rules.require_page(None, count)
        after_ns, after_id = rules.expiry_key(after)
        values = {"now": now_ns, "after_ns": after_ns, "after_id": after_id}
        with self._database.connection() as connection:
            return _page(connection.execute(_EXPIRED, values), count)

    def ids(self) -> set[str]:
        with self._database.connection() as connection, closing(connection.execute(_IDS)) as rows:
            return {row[0] for row in rows if isinstance(row[0], str)}

    def corrupt(self) -> Problems:
        found = []
        with self._database.connection() as connection, closing(connection.execute(_ALL)) as rows:
            for row in rows:
                try:
                    SessionRecord.parse(dict(row))
                except CorruptRecordError as error:
                    found.append((_printable(row["session_id"]), str(error)))
        return found

    def close(self) -> None:
        self._database.close()

    def _change(self, session_id: str, changes: rules.RecordChanges) -> SessionRecord:
        require_session_id(session_id)
        with self._database.transaction() as connection:
            record = rules.with_changes(session_id, _get(connection, session_id), changes)
            connection.execute(_SET, _columns(record))
            return record


def _opener(directory: DirectorySource) -> Callable[[], Handle]:
    if isinstance(directory, Handle):
        return lambda: directory
    return _DirectoryAt(Path(directory)) if isinstance(directory, str | os.PathLike) else directory


class _DirectoryAt:
    """Returns the directory at a path, and reopens it when it was replaced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle: Handle | None = None

    def __call__(self) -> Handle:
        try:
            now = os.lstat(self._path)
        except OSError as error:
            raise UnavailableError(f"the registry of sessions cannot be used: {error.strerror}") from None
        if self._handle is None or not os.path.samestat(now, os.fstat(self._handle.fd)):
            self._handle = open_trusted_dir(self._path)
        return self._handle


def _prepare(connection: sqlite3.Connection) -> None:
    """Create the tables of a new database; refuse those of another version.

    Raises:
        UnavailableError: They are of another version.
    """
    connection.row_factory = sqlite3.Row
    connection.text_factory = _text
    if _version(connection) == 0:
        connection.execute("BEGIN IMMEDIATE")
        if _version(connection) == 0:
            _create_tables(connection)
        connection.execute("COMMIT")
    found = _version(connection)
    if found != VERSION:
        raise UnavailableError(
            f"the registry of sessions cannot be used: its version is {found}, this carrel knows {VERSION}"
        )
    connection.execute(_CHECK)


def _create_tables(connection: sqlite3.Connection) -> None:
    strict = ", STRICT" if sqlite3.sqlite_version_info >= _STRICT_SINCE else ""
    connection.execute(_TABLE + strict)
    connection.execute(_INDEX)
    connection.execute(f"PRAGMA user_version = {VERSION}")


def _version(connection: sqlite3.Connection) -> int:
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found


def _text(found: bytes) -> str:
    """Decode a stored text; bytes that are not UTF-8 become characters that no record accepts."""
    return found.decode("utf-8", "surrogateescape")


def _require_free(connection: sqlite3.Connection, session_id: str) -> None:
    row = connection.execute(_GET_FOLDED, (session_id.casefold(),)).fetchone()
    if row is not None:
        raise rules.session_exists(session_id, row["session_id"])


def _is_full(connection: sqlite3.Connection, max_sessions: int) -> bool:
    """Whether there are at least *max_sessions*; counts no further."""
    return max_sessions == 0 or connection.execute(_FULL, (max_sessions - 1,)).fetchone() is not None


def _columns(record: SessionRecord) -> dict[str, Column]:
    return {"folded": record.session_id.casefold(), **record.render()}


def _get(connection: sqlite3.Connection, session_id: str) -> SessionRecord | None:
    row = connection.execute(_GET, (session_id,)).fetchone()
    return None if row is None else _parse(row)


def _page(rows: sqlite3.Cursor, count: int) -> Records:
    """Return the first *count* records, not counting corrupt rows."""
    with closing(rows):
        return list(islice((record for row in rows if (record := _parse(row)) is not None), count))


def _parse(row: sqlite3.Row) -> SessionRecord | None:
    """Return the record of a row, or `None` if it is corrupt."""
    try:
        return SessionRecord.parse(dict(row))
    except CorruptRecordError:
        return None


def _printable(session_id: object) -> str:
    return session_id if isinstance(session_id, str) and session_id.isprintable() else ascii(session_id)
