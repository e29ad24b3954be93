"""A session as a service describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from carrel.storage.session_record import SessionRecord
from carrel.values import Limits, Usage

if TYPE_CHECKING:
    from carrel.sessions.manager import SessionStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSession:
    """The status of a session; times are nanoseconds since the epoch."""

    session_id: str
    created_ns: int
    used_ns: int
    ttl_seconds: float | None
    role: str | None
    labels: Mapping[str, str]
    limits: Limits
    """The limits in effect."""
    usage: Usage | None = None
    in_use: bool | None = None

    def record(self) -> SessionRecord:
        """The session record."""
        return SessionRecord(
            session_id=self.session_id,
            created_ns=self.created_ns,
            used_ns=self.used_ns,
            ttl_seconds=self.ttl_seconds,
            role=self.role,
            limits=self.limits,
            labels=self.labels,
        )

    def status(self) -> SessionStatus:
        """The current status."""
        # Imported late: it loads the whole session manager, which clients rarely need.
        from carrel.sessions.manager import SessionStatus

        return SessionStatus(record=self.record(), usage=self.usage, in_use=bool(self.in_use))


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSessionPage:
    """A page of sessions, sorted by id."""

    sessions: tuple[RemoteSession, ...]
    next: str | None = None
    """Id after which the next page begins; `None` at the end."""
