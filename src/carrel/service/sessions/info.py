"""Values about sessions: `NewSession` in requests, `SessionInfo` and `SessionPage` in results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from carrel.errors import RequestError
from carrel.sessions.manager import SessionStatus
from carrel.storage.session_record import SessionRecord
from carrel.values import UNSET, Limits, Unset, Usage


def require_lifetime(asked: float | None, most: float | None) -> None:
    """Do nothing if a session may be idle for *asked* seconds where *most* are configured.

    Raises:
        RequestError: That is for ever, or longer than configured.
    """
    if asked is None:
        raise RequestError("ttl_seconds must be a number: only the operator lets a session live for ever")
    if most is not None and asked > most:
        raise RequestError(f"ttl_seconds must be at most {most:g}, not {asked:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
    """What a new session is to be like; what is left out is as configured."""

    session_id: str | None = None
    """A fresh one by default."""
    ttl_seconds: float | Unset | None = UNSET
    limits: Limits | None = None
    role: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def require_within(self, most: Limits, ttl_seconds: float | None) -> None:
        """Do nothing if no ceiling, and no lifetime, is higher than those that are configured.

        Raises:
            RequestError: One is, or the session would live for ever.
        """
        if self.ttl_seconds is not UNSET:
            require_lifetime(self.ttl_seconds, ttl_seconds)
        if self.limits is None:
            return
        for each in fields(Limits):
            asked, ceiling = getattr(self.limits, each.name), getattr(most, each.name)
            if ceiling is not None and (asked is None or asked > ceiling):
                raise RequestError(f"limits.{each.name} must be at most {ceiling}, not {asked}")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """A session, as far as a caller may know it; times are nanoseconds since the epoch."""

    session_id: str
    created_ns: int
    used_ns: int
    """Last use."""
    expires_ns: int | None
    """When it has been idle for too long; `None` means never."""
    ttl_seconds: float | None
    role: str | None
    labels: Mapping[str, str]
    limits: Limits
    """The ceilings in force."""
    usage: Usage | None = None
    """What it holds; `None` if nobody looked, or until that is counted."""
    in_use: bool | None = None
    """Whether somebody has it open; `None` if nobody looked."""

    @classmethod
    def of(cls, status: SessionStatus, limits: Limits) -> SessionInfo:
        """What is known about a session that was looked at; *limits* are those that are configured."""
        return cls._of(status.record, limits, usage=status.usage, in_use=status.in_use)

    @classmethod
    def of_record(cls, record: SessionRecord, limits: Limits) -> SessionInfo:
        """What its record says, without a look at the session itself."""
        return cls._of(record, limits, usage=None, in_use=None)

    @classmethod
    def _of(
        cls, record: SessionRecord, limits: Limits, *, usage: Usage | None, in_use: bool | None
    ) -> SessionInfo:
        return cls(
            session_id=record.session_id,
            created_ns=record.created_ns,
            used_ns=record.used_ns,
            expires_ns=record.expires_ns,
            ttl_seconds=record.ttl_seconds,
            role=record.role,
            labels=dict(record.labels),
            limits=record.limits or limits,
            usage=usage,
            in_use=in_use,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPage:
    """Some sessions in the order of their ids."""

    sessions: tuple[SessionInfo, ...]
    next: str | None
    """Give this as `after` for those that follow; `None` at the end."""
