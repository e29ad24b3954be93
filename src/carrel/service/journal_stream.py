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

POLL_SECONDS = 0.2
"""Interval at which a followed journal is polled: any process may write to it."""
PAGE = 1000

T = TypeVar("T")


class ChangesPage(NamedTuple):
    """A page of journal records."""

    events: list[Event]
    next: int
    """The sequence number to continue after; counts records that are filtered out too."""


async def changes(
    manager: WorkspaceManager, session_id: str, since: int, *, within: Sequence[str] = (), count: int = PAGE
) -> ChangesPage:
    """Return up to *count* records after the sequence number *since*.

    With *within*, only those that a view of these directories shows.

    Raises:
        SessionMissingError: The session does not exist.
        RotatedError: Some of these records are no longer kept.
    """
    return await asyncio.to_thread(_changes, manager, session_id, since, within, count)


def _changes(
    manager: WorkspaceManager, session_id: str, since: int, within: Sequence[str], count: int
) -> ChangesPage:
    with closing(manager.journal(session_id)) as journal:
        return _read_page(journal, since, count, manager.shown(session_id, within))


def _open_journal(manager: WorkspaceManager, session_id: str, since: int) -> FileJournal:
    """Open the journal of a session that contains the position *since*.

    Raises:
        RotatedError: The position is beyond the end: it belongs to an earlier session with the same id.
    """
    journal = manager.journal(session_id)
    try:
        if since > journal.position():
            raise RotatedError(f"the journal ends before {since}; begin again from 0")
    except BaseException:
        journal.close()
        raise
    return journal


async def follow(
    manager: WorkspaceManager, session_id: str, since: int, *, within: Sequence[str] = ()
) -> AsyncGenerator[ChangesPage]:
    """Yield the records after *since* and then new ones; without new ones, an empty page now and then.

    With *within*, only those that a view of these directories shows.

    The stream ends when the session is deleted, even if a new one takes its id at once. Following does not
    refresh the session's last use: it may expire in the meantime.

    Raises:
        SessionMissingError: The session does not exist.
        RotatedError: Some of these records are no longer kept.
    """
    path = manager.root / require_session_id(session_id)
    view = await asyncio.to_thread(manager.shown, session_id, within)
    with _held_open(path) as identity:
        opening = asyncio.to_thread(_open_journal, manager, session_id, since)
        journal = await _run_to_end(opening, FileJournal.close)
        try:
            while True:
                page = await _run_to_end(asyncio.to_thread(_read_page, journal, since, PAGE, view))
                since = page.next
                yield page
                if len(page.events) < PAGE:
                    if not _is_at(path, identity):
                        return
                    await asyncio.sleep(POLL_SECONDS)
        finally:
            journal.close()


@contextmanager
def _held_open(path: Path) -> Iterator[os.stat_result | None]:
    """Hold a directory open, so that its inode number cannot be reused even if it is deleted."""
    try:
        fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield os.fstat(fd)
    finally:
        os.close(fd)


def _is_at(path: Path, identity: os.stat_result | None) -> bool:
    try:
        return identity is not None and os.path.samestat(os.lstat(path), identity)
    except OSError:
        return False


def _read_page(journal: FileJournal, since: int, count: int, view: ViewFilter | None) -> ChangesPage:
    events: list[Event] = []
    for event in journal.events(since):
        since = event.sequence
        if view is None or view.includes(event):
            events.append(event)
            if len(events) == count:
                break
    return ChangesPage(events, since)


async def _run_to_end(work: Coroutine[Any, Any, T], undo: Callable[[T], None] | None = None) -> T:
    """Return the result of *work*; on cancellation, wait for its end first, then pass its result to *undo*.

    The work uses a journal that is closed next.
    """
    running = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        if not running.cancelled() and running.exception() is None and undo is not None:
            undo(running.result())
        raise
