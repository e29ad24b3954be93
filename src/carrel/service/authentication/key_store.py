"""`KeyStore`: API keys in SQLite, next to the session registry.

Of a key only its SHA-256 is kept: whoever reads the file learns who may call, and cannot call. A file that
others may write to is not used at all, as they could have put in keys of their own.

Not covered: whoever is the same user on the host, and can write the file like carrel itself.
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
"""Of the table; a database of a later version is refused."""
BUSY_SECONDS = 5.0
FRESH_NS = 500 * 10**6
"""How long a key that was looked up is believed without looking again; others see no change sooner."""
USED_NS = 60 * 10**9
"""How exactly the last use is kept."""
MAX_CACHED_KEYS = 1_024
"""Most keys that are believed at one time."""

_CALLED = "file of keys"
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
_OF_TOKENS = ("jwt.", "jwt-")
"""How the tenants of tokens begin."""
_NO_DIGEST = bytes(32)
"""Compared with where no key has the id, so that both cases do the same."""

Clock = Callable[[], int]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """What a key is to be."""

    name: str
    role: str = DEFAULT_ROLE
    roles: tuple[str, ...] = ()
    """The roles besides its own that a request may choose."""
    tenant: str | None = None
    """`None`: one of its own, which has the name of the key in lower case."""
    session: str | None = None
    rate_per_minute: int | None = None
    ttl_seconds: int | None = None
    """`None`: it is in force until it is revoked."""

    def require(self) -> None:
        """Do nothing if there can be such a key.

        Raises:
            RequestError: A name breaks the rule, or a number is out of range.
        """
        self.key("", 0)

    def key(self, key_id: str, now_ns: int) -> ApiKey:
        """The key with that id, made at that time.

        Raises:
            RequestError: A name breaks the rule, or a number is out of range.
        """
        if self.tenant is None and self.name.lower().startswith(_OF_TOKENS):
            raise RequestError(
                f"the key {self.name!r} would have a tenant of tokens; if that is meant, name the tenant"
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
    """All keys of a sessions directory, for any number of threads and processes."""

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        clock: Clock = time.time_ns,
        monotonic: Clock = time.monotonic_ns,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        """Keep them in `.carrel` of the sessions directory *root*, made by the first use if it is missing.

        Raises:
            UnavailableError: The sessions directory cannot be used.
        """
        self._store = Store(Path(os.path.abspath(root)))
        self._database = Database(
            self._directory,
            KEYS_FILE,
            called=_CALLED,
            prepare=_prepare,
            busy_seconds=busy_seconds,
            path=self._store.root / STATE,
        )
        self._clock = clock
        self._monotonic = monotonic
        self._lock = Lock()
        self._known: OrderedDict[bytes, tuple[ApiKey, int]] = OrderedDict()
        """The keys that were looked up of late, by their digests, and when that was."""

    @staticmethod
    def are_in(root: str | os.PathLike[str]) -> bool:
        """Whether the sessions directory *root* has ever had a key; makes nothing."""
        return os.path.lexists(Path(root, STATE, KEYS_FILE))

    @property
    def are_some(self) -> bool:
        """Whether there has ever been a key; makes nothing."""
        return self.are_in(self._store.root)

    def close(self) -> None:
        """End all use."""
        self._database.close()

    # Those who give them out

    def create(self, new: NewKey, *, random: RandomBytes = os.urandom) -> tuple[ApiKey, str]:
        """Make a key; its text is given here and never again.

        Raises:
            RequestError: A name breaks the rule, or a number is out of range.
            KeyExistsError: A key that is in force has that name.
        """
        text = generate_key(random)
        key = new.key(parse_key_id(text) or "", self._clock())
        with self._database.transaction() as connection:
            if connection.execute(_FIND, {"name": key.name}).fetchone() is not None:
                raise KeyExistsError(f"there is a key {key.name!r} already; revoke it first")
            connection.execute(_ADD, {"digest": key_digest(text), **_columns(key)})
        return key, text

    def list(self) -> list[ApiKey]:
        """All keys by name, also those that are no longer in force."""
        with self._database.connection() as connection:
            return [key for row in connection.execute(_LIST) if (key := _parse(row)) is not None]

    def revoke(self, name: str) -> ApiKey:
        """Put a key out of force, for all processes and for good; *name* may also be its id.

        Raises:
            KeyMissingError: None that was not revoked before has that name.
        """
        with self._database.transaction() as connection:
            row = connection.execute(_FIND, {"name": name}).fetchone()
            key = None if row is None else _parse(row)
            if key is None:
                raise KeyMissingError(f"no such key: {name[:80]!r}")
            revoked = replace(key, revoked_ns=self._clock())
            connection.execute(_REVOKE, (revoked.revoked_ns, key.id))
        with self._lock:
            self._known.clear()
        return revoked

    # Those who come with one

    def find_cached(self, text: str) -> ApiKey | None:
        """The key of that *text*, if it was looked up a moment ago; does not touch the disk."""
        if parse_key_id(text) is None:
            return None
        digest = key_digest(text)
        with self._lock:
            found = self._known.get(digest)
            if found is None or self._monotonic() - found[1] >= FRESH_NS:
                return None
        return found[0] if found[0].is_in_force(self._clock()) else None

    def find(self, text: str) -> ApiKey | None:
        """The key of that *text*; `None` if there is none, or none that is in force.

        Raises:
            UnavailableError: The file cannot be used now, so nobody can tell.
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
        if key is None or not key.is_in_force(now):
            return None
        self._note_use(key, now)
        self._remember(digest, key, looked_ns)
        return key

    def _remember(self, digest: bytes, key: ApiKey, looked_ns: int) -> None:
        with self._lock:
            self._known[digest] = key, looked_ns
            self._known.move_to_end(digest)
            while len(self._known) > MAX_CACHED_KEYS:
                self._known.popitem(last=False)

    def _note_use(self, key: ApiKey, now: int) -> None:
        if key.used_ns is not None and abs(now - key.used_ns) < USED_NS:
            return
        # A disk that is full keeps nobody out.
        with suppress(UnavailableError), self._database.connection() as connection:
            connection.execute(_USED, (now, key.id))

    def _directory(self) -> Handle:
        """Where the file is, if only we could have written to it."""
        state = self._store.state()
        with suppress(FileNotFoundError):
            _require_own("its directory", os.fstat(state.fd))
            _require_own("it", os.stat(KEYS_FILE, dir_fd=state.fd, follow_symlinks=False))
        return state


def _require_own(what: str, found: os.stat_result) -> None:
    if found.st_mode & 0o022:
        problem = f"others may write to {what}, so there may be keys that nobody gave out"
        raise UnavailableError(f"the {_CALLED} cannot be used: {problem}")


def _prepare(connection: sqlite3.Connection) -> None:
    """Make the table of a new database; refuse one that is not ours.

    Raises:
        UnavailableError: It is of a later version.
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
        problem = f"its version is {found}, this carrel knows {VERSION}"
        raise UnavailableError(f"the {_CALLED} cannot be used: {problem}")
    connection.execute(_CHECK)


def _version(connection: sqlite3.Connection) -> int:
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return found


def _columns(key: ApiKey) -> dict[str, object]:
    return {each.name: getattr(key, each.name) for each in fields(key)} | {"roles": json.dumps(key.roles)}


def _parse(row: sqlite3.Row) -> ApiKey | None:
    """The key of a row; `None` if somebody has written what no key can be."""
    values: dict[str, Any] = {each.name: row[each.name] for each in fields(ApiKey)}  # Any: as SQLite has it
    try:
        return ApiKey(**values | {"roles": tuple(map(str, json.loads(values["roles"])))})
    except (TypeError, ValueError):
        return None
