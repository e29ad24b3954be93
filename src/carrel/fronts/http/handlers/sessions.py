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
    """The properties of a session to create; omitted ones are as configured."""

    session_id: str | None = None
    ttl_seconds: float | UnsetType | None = NOT_SENT
    """Idle lifetime; `null`, which only the operator may set, for a session that never expires."""
    limits: Limits | None = None
    role: str | None = None
    labels: dict[str, str] = {}


class ExtendBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The new idle lifetime of a session."""

    ttl_seconds: float | None


class PageQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which sessions to list."""

    after: str | None = None
    """List the sessions after this id."""
    count: int = 100


async def create(request: Request) -> None:
    """Create a session."""
    body = await request.document(NewSessionBody)
    new = NewSession(
        session_id=body.session_id,
        ttl_seconds=UNSET if isinstance(body.ttl_seconds, UnsetType) else body.ttl_seconds,
        limits=body.limits,
        role=body.role,
        labels=body.labels,
    )
    info = await request.app.service.sessions.create(request.acting, new)
    location = f"/api/v1/sessions/{quote(info.session_id, safe='')}".encode("ascii")
    await request.send_json(201, render(info), [(b"location", location)])


async def list_page(request: Request) -> None:
    """List a page of the caller's sessions."""
    query = request.query(PageQuery)
    page = await request.app.service.sessions.list(request.acting, after=query.after, count=query.count)
    await request.send_json(200, render(page))


async def show(request: Request) -> None:
    """Return the properties and usage of a session."""
    await _send_info(request, await request.app.service.sessions.status(request.acting, request.session_id))


async def ensure(request: Request) -> None:
    """Return a session, created if it is missing."""
    await _send_info(request, await request.app.service.sessions.ensure(request.acting, request.session_id))


async def extend(request: Request) -> None:
    """Set the idle lifetime of a session."""
    body = await request.document(ExtendBody)
    info = await request.app.service.sessions.extend(request.acting, request.session_id, body.ttl_seconds)
    await _send_info(request, info)


async def delete(request: Request) -> None:
    """Delete a session."""
    await request.app.service.sessions.delete(request.acting, request.session_id)
    await request.send_no_content()


async def reset(request: Request) -> None:
    """Delete all files of a session."""
    await request.app.service.sessions.reset(request.acting, request.session_id)
    await request.send_no_content()


async def _send_info(request: Request, info: SessionInfo) -> None:
    await request.send_json(200, render(info))
