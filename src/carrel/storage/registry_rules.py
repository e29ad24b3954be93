"""Rules shared by every implementation of `Registry`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from carrel.errors import ClosedError, LimitError, SessionExistsError, SessionMissingError
from carrel.paths.session_id import require_session_id
from carrel.storage.session_record import SessionRecord, require_ns, require_ttl
from carrel.values import UNSET

RecordChanges = Mapping[str, Any]  # the record checks what it is given


def expiry_key(record: SessionRecord | None) -> tuple[int, str]:
    """Return the sort key of an expired session; that of `None` comes before all others."""
    return (-1, "") if record is None else (record.expires_ns or 0, record.session_id)


def adopted_record(session_id: str, now_ns: int, ttl_seconds: float | None) -> SessionRecord:
    """Create a record for a session that has only a directory."""
    require_ns(now_ns)
    return SessionRecord(
        session_id=session_id, created_ns=now_ns, used_ns=now_ns, ttl_seconds=require_ttl(ttl_seconds)
    )


def with_changes(session_id: str, record: SessionRecord | None, changes: RecordChanges) -> SessionRecord:
    """Return the record with *changes*, except those that are `UNSET`."""
    if record is None:
        raise SessionMissingError(f"no such session: {session_id!r}")
    return replace(record, **{name: value for name, value in changes.items() if value is not UNSET})


def require_free(session_id: str, taken: Iterable[str]) -> None:
    """Refuse an id that is *taken*, or that differs from one only in case.

    Raises:
        SessionExistsError: It does.
    """
    folded = session_id.casefold()
    for other in taken:
        if other.casefold() == folded:
            raise session_exists(session_id, other)


def session_exists(session_id: str, other: str) -> SessionExistsError:
    """Return the error for an id that conflicts with the id *other*."""
    if other == session_id:
        return SessionExistsError(f"session {session_id!r} already exists")
    return SessionExistsError(f"session {session_id!r} already exists, spelled in another case")


def too_many_sessions(max_sessions: int) -> LimitError:
    """Return the error for more than *max_sessions* sessions."""
    return LimitError(
        "sessions",
        limit=max_sessions,
        asked=max_sessions + 1,
        message=f"too many sessions: the maximum of {max_sessions} is reached; delete one first",
    )


def registry_closed() -> ClosedError:
    """Return the error for any use after `close`."""
    return ClosedError("the registry of sessions is closed")


def require_max_sessions(max_sessions: int | None) -> None:
    """Refuse an invalid maximum of sessions."""
    if max_sessions is not None and (type(max_sessions) is not int or not 0 <= max_sessions < 2**63):
        raise ValueError(f"max_sessions must be a whole number of at least 0 or None, not {max_sessions!r}")


def require_page(after: str | None, count: int) -> str:
    """Check the arguments of a page; return the text after which it begins."""
    if type(count) is not int or count < 1:
        raise ValueError(f"count must be a whole number of at least 1, not {count!r}")
    return "" if after is None else require_session_id(after)


def require_removal(session_id: str, if_unused_since: int | None, if_expired_at: int | None) -> None:
    """Refuse invalid conditions of a removal."""
    require_session_id(session_id)
    if if_unused_since is not None:
        require_ns(if_unused_since, "if_unused_since")
    if if_expired_at is not None:
        require_ns(if_expired_at, "if_expired_at")
