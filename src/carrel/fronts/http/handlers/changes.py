"""Read or follow the journal of a session."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

from msgspec import Struct

from carrel.audit.event import Event
from carrel.errors import CarrelError
from carrel.fronts.http.handlers.server_sent_events import (
    last_event_id,
    render_event,
    send_events,
    wants_events,
)
from carrel.fronts.http.request import VARY, Request
from carrel.remote.json_codec import render, render_error
from carrel.service.error_status import error_status
from carrel.service.journal_stream import ChangesPage

REVALIDATE_SECONDS = 5
"""Interval at which the credentials of a caller that follows the journal are checked again."""


class ChangesQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where to begin."""

    since: int = 0
    """Sequence number of the last record that is known already."""


class Changes(Struct, frozen=True, kw_only=True):
    """A page of journal records."""

    events: list[Event]
    next: int
    """Pass this as `since` to get the next page."""


async def changes(request: Request) -> None:
    """Return a page of journal records, or stream them as they come."""
    since = request.query(ChangesQuery).since
    service = request.app.service
    if not wants_events(request):
        found = await service.changes(request.acting, request.session_id, since)
        await request.send_json(200, {"events": render(found.events), "next": found.next}, [VARY])
        return
    since = last_event_id(request) or since
    pages = service.follow(request.acting, request.session_id, since)
    # A missing session or missing records become an error response, as the stream has not begun.
    first = await anext(pages, ChangesPage([], since))
    await send_events(request, _events(request, first, pages), is_finite=False)


async def _events(
    request: Request, first: ChangesPage, pages: AsyncIterator[ChangesPage]
) -> AsyncIterator[bytes]:
    if first.events:
        yield _page(first)
    validated = time.monotonic()
    try:
        async for page in pages:
            if time.monotonic() - validated >= REVALIDATE_SECONDS:
                await request.app.authenticate(request)
                validated = time.monotonic()
            if page.events:
                yield _page(page)
    except CarrelError as error:
        yield render_event("error", render_error(error, retry=error_status(error.code).retry))


def _page(page: ChangesPage) -> bytes:
    return b"".join(render_event("change", render(each), each.sequence) for each in page.events)
