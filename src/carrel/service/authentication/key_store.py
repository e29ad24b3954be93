"""`KeyStore`: API keys in SQLite, next to the session registry.

Only the SHA-256 of a key is stored: anyone who reads the file learns which keys exist, but cannot use them. A
file that other users may write to is refused, since they could have added keys of their own.

Not covered: processes of the same user on the host, which can write to the file like carrel itself.
"""

from __future__ import annotations

import hmac
import json
import os
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from threading import Lock
from typing import Any

from carrel.errors import KeyExistsError, KeyMissingError, RequestError, UnavailableError
from carrel.fs.handle import Handle
from carrel.policy.roles import DEFAULT_ROLE
from carrel.service.authentication.api_key import ApiKey, RandomBytes, generate_key, key_digest, parse_key_id
from carrel.storage.local.database import Database
from carrel.storage.local.store import STATE, Store

KEYS_FILE = "keys.db"
VERSION = 1
"""Schema version; a database of a later version is refused."""
BUSY_SECONDS = 5.0
"""How long to wait for the database lock."""
FRESH_NS = 500 * 10**6
"""How long a looked-up key is cached, and so how late other processes notice a revocation."""
USED_NS = 60 * 10**9
"""Resolution of the time of the last use."""
MAX_CACHED_KEYS = 1_024
"""Maximum number of cached keys."""

_DATABASE_NAME = "key file"
_STRICT_SINCE = (3, 37)
_TABLE = """
    CREATE TABLE keys (
        id TEXT NOT NULL PRIMARY KEY,
        digest BLOB NOT NULL,
        name TEXT NOT NULL,
        tenant TEXT NOT NULL,
        role TEXT NOT NULL,
        roles TEXT NOT NULL,
        session TEXT,
        rate_per_minute INTEGER,
        created_ns INTEGER NOT NULL,
        expires_ns INTEGER,
        used_ns INTEGER,
        revoked_ns INTEGER
    )"""
_INDEX = "CREATE UNIQUE INDEX keys_name ON keys (lower(name)) WHERE revoked_ns IS NULL"
_CHECK = """
    SELECT id, digest, name, tenant, role, roles, session, rate_per_minute,
    created_ns, expires_ns, used_ns, revoked_ns FROM keys LIMIT 0"""
_GET = "SELECT * FROM keys WHERE id = ?"
_FIND = "SELECT * FROM keys WHERE (id = :name OR lower(name) = lower(:name)) AND revoked_ns IS NULL"
_LIST = "SELECT * FROM keys ORDER BY lower(name), created_ns, id"
_ADD = """
    INSERT INTO keys
    (id, digest, name, tenant, role, roles, session, rate_per_minute, created_ns, expires_ns) VALUES
    (:id, :digest, :name, :tenant, :role, :roles, :session, :rate_per_minute, :created_ns, :expires_ns)"""
_USED = "UPDATE keys SET used_ns = ? WHERE id = ?"
_REVOKE = "UPDATE keys SET revoked_ns = ? WHERE id = ?"
_TOKEN_TENANTS = ("jwt.", "jwt-")
"""Prefixes of the tenants of tokens."""
_NO_DIGEST = bytes(32)
"""Compared with when no key has the id, so that both cases take the same time."""

Clock = Callable[[], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """The properties of a key to create."""

    name: str
    role: str = DEFAULT_ROLE
    roles: tuple[str, ...] = ()
    """Roles besides the default one that a request may choose."""
    tenant: str | None = None
    """`None` for a tenant of its own, with the name of the key in lower case."""
    session: str | None = None
    rate_per_minute: int | None = None
    ttl_seconds: int | None = None
    """`None` for a key that is valid until it is revoked."""

    def require_valid(self) -> None:
        """Require that such a key can be created.

        Raises:
            RequestError: A name breaks the rule, or a number is out of range.
        """
        self.key("", 0)

    def key(self, key_id: str, now_ns: int) -> ApiKey:
        """Return the key with the id *key_id*, created at *now_ns*.

        Raises:
            RequestError: A name breaks the rule, or a number is out of range.
        """
        if self.tenant is None and self.name.lower().startswith(_TOKEN_TENANTS):
            raise RequestError(
                f"the key {self.name!r} would get a tenant of JWT callers; to allow that, name the tenant"
            )
        return ApiKey(
            id=key_id,
            name=self.name,
            tenant=self.name.lower() if self.tenant is None else self.tenant,
            role=self.role,
            roles=tuple(dict.fromkeys((self.role, *self.roles))),
            session=self.session,
            rate_per_minute=self.rate_per_minute,
            created_ns=now_ns,
            expires_ns=None if self.ttl_seconds is None else now_ns + self.ttl_seconds * 10**9,
        )


class KeyStore:
    """The keys of a sessions directory, usable from any number of threads and processes."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        clock: Clock = time.time_ns,
        monotonic: Clock = time.monotonic_ns,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        """Store the keys in `.carrel` of the sessions directory *root*, created on first use.

        Raises:
            UnavailableError: The sessions directory cannot be used.
        """
        self._store = Store(Path(os.path.abspath(root)))
        self._database = Database(
            self._directory,
            KEYS_FILE,
            called=_DATABASE_NAME,
            prepare=_prepare,
            busy_seconds=busy_seconds,
            path=self._store.root / STATE,
        )
        self._clock = clock
        self._monotonic = monotonic
        self._lock = Lock()
        self._cache: OrderedDict[bytes, tuple[ApiKey, int]] = OrderedDict()
        """Recently looked-up keys and the times of their lookups, by digest."""

    @staticmethod
    def exists_in(root: str | os.PathLike[str]) -> bool:
        """Whether the sessions directory *root* has ever had a key; creates nothing."""
        return os.path.lexists(Path(root, STATE, KEYS_FILE))

    @property
    def has_keys(self) -> bool:
        """Whether there has ever been a key; creates nothing."""
        return self.exists_in(self._store.root)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    # Administration

    def create(self, new: NewKey, *, random: RandomBytes = os.urandom) -> tuple[ApiKey, str]:
        """Create a key and return it with its text, which cannot be retrieved later.

        Raises:
            RequestError: A name breaks the rule, or a number is out of range.
            KeyExistsError: A key that is not revoked has this name.
        """
        text = generate_key(random)
        key = new.key(parse_key_id(text) or "", self._clock())
        with self._database.transaction() as connection:
            if connection.execute(_FIND, {"name": key.name}).fetchone() is not None:
                raise KeyExistsError(f"the key {key.name!r} exists already; revoke it first")
            connection.execute(_ADD, {"digest": key_digest(text), **_columns(key)})
        return key, text

    def list(self) -> list[ApiKey]:
        """Return all keys ordered by name, including expired and revoked ones."""
        with self._database.connection() as connection:
            return [key for row in connection.execute(_LIST) if (key := _parse(row)) is not None]

    def revoke(self, name: str) -> ApiKey:
        """Revoke a key permanently, for all processes; *name* may also be its id.

        Raises:
            KeyMissingError: No key with this name is left to revoke.
        """
        with self._database.transaction() as connection:
            row = connection.execute(_FIND, {"name": name}).fetchone()
            key = None if row is None else _parse(row)
            if key is None:
                raise KeyMissingError(f"no such key: {name[:80]!r}")
            revoked = replace(key, revoked_ns=self._clock())
            connection.execute(_REVOKE, (revoked.revoked_ns, key.id))
        with self._lock:
            self._cache.clear()
        return revoked

    # Authentication

    def find_cached(self, text: str) -> ApiKey | None:
        """Return the valid key with this *text* from the cache; does not touch the disk."""
        if parse_key_id(text) is None:
            return None
        digest = key_digest(text)
        with self._lock:
            found = self._cache.get(digest)
            if found is None or self._monotonic() - found[1] >= FRESH_NS:
                return None
        return found[0] if found[0].is_valid(self._clock()) else None

    def find(self, text: str) -> ApiKey | None:
        """Return the valid key with this *text*, or `None`.

        Raises:
            UnavailableError: The key file cannot be used now.
        """
        name = parse_key_id(text)
        if name is None:
            return None
        digest = key_digest(text)
        looked_ns = self._monotonic()
        with self._database.connection() as connection:
            row = connection.execute(_GET, (name,)).fetchone()
        expected = row["digest"] if row is not None and isinstance(row["digest"], bytes) else _NO_DIGEST
        if not hmac.compare_digest(digest, expected) or row is None:
            return None
        now = self._clock()
        key = _parse(row)
        if key is None or not key.is_valid(now):
            return None
        self._note_use(key, now)
        self._add_to_cache(digest, key, looked_ns)
        return key

    def _add_to_cache(self, digest: bytes, key: ApiKey, looked_ns: int) -> None:
        with self._lock:
            self._cache[digest] = key, looked_ns
            self._cache.move_to_end(digest)
            while len(self._cache) > MAX_CACHED_KEYS:
                self._cache.popitem(last=False)

    def _note_use(self, key: ApiKey, now: int) -> None:
        if key.used_ns is not None and abs(now - key.used_ns) < USED_NS:
            return
        # A full disk must not lock callers out.
        with suppress(UnavailableError), self._database.connection() as connection:
            connection.execute(_USED, (now, key.id))

    def _directory(self) -> Handle:
        """Open the directory of the key file.

        Raises:
            UnavailableError: Other users may write to the directory or to the file.
        """
        state = self._store.state()
        with suppress(FileNotFoundError):
            _require_not_writable_by_others("its directory", os.fstat(state.fd))
            file_stat = os.stat(KEYS_FILE, dir_fd=state.fd, follow_symlinks=False)
            _require_not_writable_by_others("it", file_stat)
        return state


def _require_not_writable_by_others(name: str, found: os.stat_result) -> None:
    if found.st_mode & 0o022:
        problem = f"other users may write to {name}, and could have added keys"
        raise UnavailableError(f"the {_DATABASE_NAME} cannot be used: {problem}")


def _prepare(connection: sqlite3.Connection) -> None:
    """Create the table of a new database, or check the schema of an existing one.

    Raises:
        UnavailableError: The database has another schema version.
    """
    connection.row_factory = sqlite3.Row
    if _version(connection) == 0:
        connection.execute("BEGIN IMMEDIATE")
        if _version(connection) == 0:
            strict = " STRICT" if sqlite3.sqlite_version_info >= _STRICT_SINCE else ""
            connection.execute(_TABLE + strict)
            connection.execute(_INDEX)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    found = _version(connection)
    if found != VERSION:
        problem = f"its version is {found}, this carrel supports {VERSION}"
        raise UnavailableError(f"the {_DATABASE_NAME} cannot be used: {problem}")
    connection.execute(_CHECK)


def _version(connection: sqlite3.Connection) -> int:
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found


def _columns(key: ApiKey) -> dict[str, object]:
    return {each.name: getattr(key, each.name) for each in fields(key)} | {"roles": json.dumps(key.roles)}


def _parse(row: sqlite3.Row) -> ApiKey | None:
    """Return the key of a row, or `None` if the row is not a valid key."""
    values: dict[str, Any] = {each.name: row[each.name] for each in fields(ApiKey)}  # Any: as SQLite has it
    try:
        return ApiKey(**values | {"roles": tuple(map(str, json.loads(values["roles"])))})
    except (TypeError, ValueError):
        return None
