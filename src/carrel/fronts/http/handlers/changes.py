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

KNOWN_SECONDS = 5
"""So often is looked whether a caller who listens still has a key that is in force."""


class ChangesQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """From where on."""

    since: int = 0
    """The number of the last record that is known already."""


class Changes(Struct, frozen=True, kw_only=True):
    """Some records of the journal."""

    events: list[Event]
    next: int
    """Give this as `since` for those that follow."""


async def changes(call: Request) -> None:
    """The records after one: those that there are, or also those that come."""
    since = call.query(ChangesQuery).since
    service = call.app.service
    if not wants_events(call):
        found = await service.changes(call.who, call.session_id, since)
        await call.json(200, {"events": render(found.events), "next": found.next}, [VARY])
        return
    since = last_event_id(call) or since
    pages = service.follow(call.who, call.session_id, since)
    # Records that are gone, or a session that is, are told before the stream begins.
    first = await anext(pages, ChangesPage([], since))
    await send_events(call, _events(call, first, pages), have_end=False)


async def _events(
    call: Request, first: ChangesPage, pages: AsyncIterator[ChangesPage]
) -> AsyncIterator[bytes]:
    if first.events:
        yield _page(first)
    known = time.monotonic()
    try:
        async for page in pages:
            if time.monotonic() - known >= KNOWN_SECONDS:
                await call.app.authenticate(call)
                known = time.monotonic()
            if page.events:
                yield _page(page)
    except CarrelError as error:
        yield render_event("error", render_error(error, retry=error_status(error.code).retry))


def _page(page: ChangesPage) -> bytes:
    return b"".join(render_event("change", render(each), each.sequence) for each in page.events)
