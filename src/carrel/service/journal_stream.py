"""Read a session's journal page by page, and follow it as it grows."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from carrel.audit.event import Event
from carrel.audit.journal import FileJournal
from carrel.errors import RotatedError
from carrel.paths.session_id import require_session_id
from carrel.sessions.manager import WorkspaceManager
from carrel.workspace.views import ViewFilter

LOOK_SECONDS = 0.2
"""So often the journal is looked at; any process may have written to it."""
PAGE = 1000

T = TypeVar("T")


class ChangesPage(NamedTuple):
    """Some records of a journal."""

    events: list[Event]
    next: int
    """The sequence number to go on after; records that the reader is not shown count as well."""


async def changes(
    manager: WorkspaceManager, session_id: str, since: int, *, within: Sequence[str] = (), most: int = PAGE
) -> ChangesPage:
    """Up to *most* records after the one with the sequence number *since*.

    With *within*, only those that a view of these directories shows.

    Raises:
        SessionMissingError: There is no such session.
        RotatedError: Some of that is no longer kept.
    """
    return await asyncio.to_thread(_changes, manager, session_id, since, within, most)


def _changes(
    manager: WorkspaceManager, session_id: str, since: int, within: Sequence[str], most: int
) -> ChangesPage:
    with closing(manager.journal(session_id)) as journal:
        return _page(journal, since, most, manager.shown(session_id, within))


def _opened(manager: WorkspaceManager, session_id: str, since: int) -> FileJournal:
    """The journal of a session, in which there is a place *since*.

    Raises:
        RotatedError: That is a place of another journal, of a session that had the same name before.
    """
    journal = manager.journal(session_id)
    try:
        if since > journal.position():
            raise RotatedError(f"the journal has not come to {since} yet; begin again from 0")
    except BaseException:
        journal.close()
        raise
    return journal


async def follow(
    manager: WorkspaceManager, session_id: str, since: int, *, within: Sequence[str] = ()
) -> AsyncGenerator[ChangesPage]:
    """The records after *since*, and those that come; an empty page now and then, while there are none.

    With *within*, only those that a view of these directories shows.

    It ends when the session is deleted, also if another one gets its name at once. Following is no use of a
    session: it may expire meanwhile.

    Raises:
        SessionMissingError: There is no such session.
        RotatedError: Some of that is no longer kept.
    """
    place = manager.root / require_session_id(session_id)
    shown = await asyncio.to_thread(manager.shown, session_id, within)
    with _held(place) as held:
        journal = await _finished(asyncio.to_thread(_opened, manager, session_id, since), FileJournal.close)
        try:
            while True:
                page = await _finished(asyncio.to_thread(_page, journal, since, PAGE, shown))
                since = page.next
                yield page
                if len(page.events) < PAGE:
                    if not _is_at(place, held):
                        return
                    await asyncio.sleep(LOOK_SECONDS)
        finally:
            journal.close()


@contextmanager
def _held(place: Path) -> Iterator[os.stat_result | None]:
    """What is at *place*; while it is held, nothing else can be taken for it, even if it is deleted."""
    try:
        fd = os.open(place, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield os.fstat(fd)
    finally:
        os.close(fd)


def _is_at(place: Path, held: os.stat_result | None) -> bool:
    try:
        return held is not None and os.path.samestat(os.lstat(place), held)
    except OSError:
        return False


def _page(journal: FileJournal, since: int, most: int, shown: ViewFilter | None) -> ChangesPage:
    events: list[Event] = []
    for event in journal.events(since):
        since = event.sequence
        if shown is None or shown.has(event):
            events.append(event)
            if len(events) == most:
                break
    return ChangesPage(events, since)


async def _finished(work: Coroutine[Any, Any, T], undo: Callable[[T], None] | None = None) -> T:
    """What *work* gives; whoever is cancelled meanwhile waits for it, since it uses what is closed next.

    What it gives to nobody is handed to *undo*.
    """
    running = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if not running.cancelled() and running.exception() is None and undo is not None:
            undo(running.result())
        raise
