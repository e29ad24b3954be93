"""The protocols of storage: `Registry`, the records of all sessions.

A registry knows nothing about directories and reads no clock. What it promises holds for all processes that
share it: two cannot add the same session, the maximum is not passed, and a session that was used meanwhile
is not removed by one that believed it idle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from carrel.storage.session_record import SessionRecord
from carrel.values import UNSET, Limits, Unset

Records = list[SessionRecord]
Problems = list[tuple[str, str]]
"""Session ids, each with a reason."""


class Registry(Protocol):
    """The records of all sessions.

    Every method raises `SessionIdError` for an id that breaks the rule, `ValueError` for a time or a number
    that cannot be, `UnavailableError` while the records cannot be reached, and `ClosedError` after `close`.
    """

    def add(self, record: SessionRecord, *, most: int | None = None) -> None:
        """Add a session, unless there are *most* already; both are decided in one step.

        Raises:
            SessionExistsError: A session has that id, or one that differs only in case.
            LimitError: There are *most* sessions already.
        """
        ...

    def adopt(self, session_id: str, now_ns: int, *, ttl_seconds: float | None = None) -> SessionRecord:
        """The record of a session whose directory is there: the present one, or a new one.

        What can still be read of a corrupt record is kept, and the rest is made new. The maximum is not
        asked, because the session is there already.

        Raises:
            SessionExistsError: Another session has an id that differs only in case.
        """
        ...

    def get(self, session_id: str) -> SessionRecord | None:
        """The record of a session; `None` if there is none or a corrupt one."""
        ...

    def touch(self, session_id: str, now_ns: int) -> None:
        """Note that the session is used; never goes back in time, and an unknown session is no error."""
        ...

    def extend(self, session_id: str, ttl_seconds: float | None) -> SessionRecord:
        """Change how long the session may be idle.

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
        """Change what is given and keep the rest.

        Raises:
            SessionMissingError: There is no such session, or its record is corrupt.
        """
        ...

    def rewind(self, now_ns: int) -> int:
        """Let uses in the future (the clock was set back) count as now; how many there were.

        Without it a session with such a time would not expire before that time comes.
        """
        ...

    def remove(
        self, session_id: str, *, if_unused_since: int | None = None, if_expired_at: int | None = None
    ) -> bool:
        """Remove a record, corrupt or not; whether it was removed.

        Args:
            session_id: The session.
            if_unused_since: Only if it was not used after this time.
            if_expired_at: Only if it is expired at this time, whatever was used or extended meanwhile.
        """
        ...

    def list(self, after: str | None = None, count: int = 100) -> Records:
        """Up to *count* records in the order of their ids, beginning after the id *after*."""
        ...

    def count(self) -> int:
        """How many sessions there are, corrupt ones included."""
        ...

    def expired(self, now_ns: int, count: int = 100, after: SessionRecord | None = None) -> Records:
        """Up to *count* sessions that have been idle for too long, those that expired first in front.

        With *after*, which is one of them, only those that follow it in this order.
        """
        ...

    def ids(self) -> set[str]:
        """The ids of all records, corrupt ones included, as far as they are text."""
        ...

    def corrupt(self) -> Problems:
        """The ids of records that cannot be read, each with `corrupted_timestamp` or `corrupted_metadata`."""
        ...

    def close(self) -> None:
        """Release what is held open."""
        ...
