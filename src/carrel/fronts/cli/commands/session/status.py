"""`carrel session show`: render the status of a session."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from carrel.fronts.cli.option_types import render_duration
from carrel.fronts.cli.output import Colours, Tone, display, render_local_time, render_size
from carrel.sessions.manager import SessionStatus
from carrel.values import Limits

_NAME_CHARACTERS = 12


def as_json(status: SessionStatus, limits: Limits) -> dict[str, Any]:
    """The status as a JSON document, with the *limits* in effect."""
    record, usage = status.record, status.usage
    return {
        "session_id": record.session_id,
        "created_ns": record.created_ns,
        "used_ns": record.used_ns,
        "expires_ns": record.expires_ns,
        "expired": _is_expired(status),
        "ttl_seconds": record.ttl_seconds,
        "in_use": status.in_use,
        "role": record.role,
        "labels": dict(record.labels),
        "limits": asdict(limits),
        "usage": usage
        and {
            "disk_bytes": usage.disk_bytes,
            "disk_percent": _percent(usage.disk_bytes, limits.disk_bytes),
            "entries": usage.entries,
            "entries_percent": _percent(usage.entries, limits.entries),
        },
    }


def lines(status: SessionStatus, limits: Limits, colours: Colours) -> Iterator[str]:
    """The status as lines for people."""
    for name, text in _rows(status, limits):
        tone = Tone.WARNING if name == "expires" and _is_expired(status) else None
        yield f"{colours.paint(f'{name:<{_NAME_CHARACTERS}}', Tone.HEADING)} {colours.paint(text, tone)}"


def _rows(status: SessionStatus, limits: Limits) -> Iterator[tuple[str, str]]:
    record, usage, now_ns = status.record, status.usage, time.time_ns()
    yield "id", record.session_id
    yield "created", render_local_time(record.created_ns, now_ns)
    yield "last used", render_local_time(record.used_ns, now_ns)
    yield "expires", _expiry(status, now_ns)
    yield "ttl", render_duration(record.ttl_seconds)
    yield "in use", "yes" if status.in_use else "no"
    yield "role", "none" if record.role is None else display(record.role)
    for name, text in record.labels.items():
        yield "label", display(f"{name}={text}")
    if usage is None:
        yield "size", "not counted yet"
    else:
        yield "size", _share("disk_bytes", usage.disk_bytes, limits.disk_bytes)
        yield "entries", _share("entries", usage.entries, limits.entries)
    for name, limit in asdict(limits).items():
        yield "limit", f"{name:<{_NAME_CHARACTERS}} {_amount(name, limit)}"


def _expiry(status: SessionStatus, now_ns: int) -> str:
    expires_ns = status.record.expires_ns
    if expires_ns is None:
        return "never"
    return f"{render_local_time(expires_ns, now_ns)}{', expired' if _is_expired(status) else ''}"


def _is_expired(status: SessionStatus) -> bool:
    """Whether the session has expired; a session in use never has."""
    return status.record.is_expired(time.time_ns()) and not status.in_use


def _share(name: str, used: int, limit: int | None) -> str:
    percent = _percent(used, limit)
    of_limit = "" if percent is None else f" of {_amount(name, limit)} ({percent}%)"
    return f"{_amount(name, used)}{of_limit}"


def _percent(used: int, limit: int | None) -> float | None:
    """The percentage of the limit that is used; a limit of 0 counts as 100 percent used."""
    if limit is None:
        return None
    return round(100 * used / limit, 1) if limit else 100.0


def _amount(name: str, value: int | None) -> str:
    if value is None:
        return "none"
    return render_size(value) if name.endswith("_bytes") else f"{value:,}"
