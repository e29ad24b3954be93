"""The protocols of storage: `Registry`, the records of all sessions.

A registry knows nothing about directories and reads no clock. Its guarantees hold across all processes that
share it: two cannot add the same session, the maximum is not exceeded, and a session that was used in the
meantime is not removed by a process that took it for idle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from carrel.storage.session_record import SessionRecord
from carrel.values import UNSET, Limits, Unset

Records = list[SessionRecord]
Problems = list[tuple[str, str]]
"""Session ids, each with the problem of its record."""


class Registry(Protocol):
    """The records of all sessions.

    Every method raises `SessionIdError` for an invalid id, `ValueError` for an invalid time or number,
    `UnavailableError` while the records cannot be reached, and `ClosedError` after `close`.
    """

    def add(self, record: SessionRecord, *, max_sessions: int | None = None) -> None:
        """Add a session unless there are *max_sessions* already, atomically.

        Raises:
            SessionExistsError: A session has that id, or one that differs only in case.
            LimitError: There are *max_sessions* already.
        """
        ...

    def adopt(self, session_id: str, now_ns: int, *, ttl_seconds: float | None = None) -> SessionRecord:
        """Return the record of a session whose directory exists, creating it if it is missing.

        The readable fields of a corrupt record are kept, the others are reset. The maximum does not apply,
        because the session exists already.

        Raises:
            SessionExistsError: Another session has an id that differs only in case.
        """
        ...

    def get(self, session_id: str) -> SessionRecord | None:
        """Return the record of a session, or `None` if it is missing or corrupt."""
        ...

    def touch(self, session_id: str, now_ns: int) -> None:
        """Set the last use to *now_ns*, unless it is later already. An unknown session is ignored."""
        ...

    def extend(self, session_id: str, ttl_seconds: float | None) -> SessionRecord:
        """Set how long the session may be idle.

        Raises:
            SessionMissingError: There is no such session, or its record is corrupt.
        """
        ...

    def update(
        self,
        session_id: str,
        *,
        limits: Limits | Unset | None = UNSET,
        labels: Mapping[str, str] | Unset = UNSET,
        role: str | Unset | None = UNSET,
    ) -> SessionRecord:
        """Change the given fields.

        Raises:
            SessionMissingError: There is no such session, or its record is corrupt.
        """
        ...

    def rewind(self, now_ns: int) -> int:
        """Set last uses in the future (the clock was set back) to *now_ns*; return how many there were.

        A session with such a time would not expire before that time comes.
        """
        ...

    def remove(
        self, session_id: str, *, if_unused_since: int | None = None, if_expired_at: int | None = None
    ) -> bool:
        """Remove a record, corrupt or not; return whether it was removed.

        Args:
            session_id: The session.
            if_unused_since: Only if it was not used after this time.
            if_expired_at: Only if it is expired at this time, by its current last use and lifetime.
        """
        ...

    def list(self, after: str | None = None, count: int = 100) -> Records:
        """Return up to *count* records ordered by id, starting after the id *after*."""
        ...

    def count(self) -> int:
        """Return the number of sessions, including those with corrupt records."""
        ...

    def expired(self, now_ns: int, count: int = 100, after: SessionRecord | None = None) -> Records:
        """Return up to *count* expired sessions, ordered by the time of expiry.

        With *after*, the last record of the previous page, only those that follow it.
        """
        ...

    def ids(self) -> set[str]:
        """Return the ids of all records, including corrupt ones whose id is text."""
        ...

    def corrupt(self) -> Problems:
        """Return the ids of corrupt records, each with `corrupted_timestamp` or `corrupted_metadata`."""
        ...

    def close(self) -> None:
        """Release the resources of the registry."""
        ...
