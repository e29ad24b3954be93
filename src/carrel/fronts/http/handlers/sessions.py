"""Sessions: create, list, inspect, extend, reset and delete them."""

from __future__ import annotations

from urllib.parse import quote

from msgspec import UNSET as NOT_SENT
from msgspec import Struct, UnsetType

from carrel.fronts.http.request import Request
from carrel.remote.json_codec import render
from carrel.service.sessions.info import NewSession, SessionInfo
from carrel.values import UNSET, Limits


class NewSessionBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a new session is to be like; what is left out is as configured."""

    session_id: str | None = None
    ttl_seconds: float | UnsetType | None = NOT_SENT
    """How long it may be idle; `null`, which only the operator may ask for, is for ever."""
    limits: Limits | None = None
    role: str | None = None
    labels: dict[str, str] = {}


class ExtendBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long a session may be idle from now on."""

    ttl_seconds: float | None


class PageQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which sessions to list."""

    after: str | None = None
    """Those whose ids follow this one."""
    count: int = 100


async def create(call: Request) -> None:
    """Make a session."""
    body = await call.document(NewSessionBody)
    new = NewSession(
        session_id=body.session_id,
        ttl_seconds=UNSET if isinstance(body.ttl_seconds, UnsetType) else body.ttl_seconds,
        limits=body.limits,
        role=body.role,
        labels=body.labels,
    )
    info = await call.app.service.sessions.create(call.who, new)
    place = f"/api/v1/sessions/{quote(info.session_id, safe='')}".encode("ascii")
    await call.json(201, render(info), [(b"location", place)])


async def list_page(call: Request) -> None:
    """One page of the caller's sessions."""
    query = call.query(PageQuery)
    page = await call.app.service.sessions.list(call.who, after=query.after, count=query.count)
    await call.json(200, render(page))


async def show(call: Request) -> None:
    """What is known about a session."""
    await _tell(call, await call.app.service.sessions.status(call.who, call.session_id))


async def ensure(call: Request) -> None:
    """A session, made if it is missing."""
    await _tell(call, await call.app.service.sessions.ensure(call.who, call.session_id))


async def extend(call: Request) -> None:
    """Let a session be idle for longer, or shorter."""
    body = await call.document(ExtendBody)
    await _tell(call, await call.app.service.sessions.extend(call.who, call.session_id, body.ttl_seconds))


async def delete(call: Request) -> None:
    """Remove a session."""
    await call.app.service.sessions.delete(call.who, call.session_id)
    await call.empty()


async def reset(call: Request) -> None:
    """Remove all files of a session."""
    await call.app.service.sessions.reset(call.who, call.session_id)
    await call.empty()


async def _tell(call: Request, info: SessionInfo) -> None:
    await call.json(200, render(info))
