"""`carrel session show --journal`: print and follow the journal of a session."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from contextlib import closing
from dataclasses import asdict
from typing import Any

from carrel.audit.event import UNDONE, Event
from carrel.audit.logger import printable
from carrel.errors import BusyError, SessionMissingError
from carrel.fronts.cli.context import CliContext
from carrel.fronts.cli.output import display, render_time
from carrel.sessions.manager import WorkspaceManager

POLL_SECONDS = 0.25
"""Interval at which `--follow` polls for new records."""


def events(context: CliContext, session_id: str, *, since: int, follow: bool) -> Generator[Event]:
    """The records after *since*; with *follow*, also new ones until the session is deleted.

    Raises:
        SessionMissingError: There is no such session.
        RotatedError: Some of the records were rotated away.
    """
    with context.manager_of(session_id) as manager:
        created_ns = manager.status(session_id).record.created_ns
        with closing(manager.journal(session_id)) as journal:
            while True:
                for event in journal.events(since):
                    since = event.sequence
                    yield event
                if not follow:
                    return
                sys.stdout.flush()
                time.sleep(POLL_SECONDS)
                if _is_gone(manager, session_id, created_ns):
                    return


def _is_gone(manager: WorkspaceManager, session_id: str, created_ns: int) -> bool:
    """Whether the session was deleted; another one may have its id now."""
    try:
        return manager.status(session_id).record.created_ns != created_ns
    except SessionMissingError:
        return True
    except BusyError:
        return False


def line(event: Event, arrow: str = "->") -> str:
    """Render a record as one line, with paths made printable."""
    path = display(event.path)
    if event.other_path is not None:
        path += f" {arrow} {display(event.other_path)}"
    return (
        f"{event.sequence:>6}  {render_time(event.time_ns)}  {printable(event.actor):<8} {event.operation:<7}"
        f" {path}{''.join(f'  {text}' for text in (_change(event, arrow), _outcome(event)) if text)}"
    )


def _change(event: Event, arrow: str) -> str:
    """Say what became of the file, with its size; nothing if the record is a refusal."""
    before, after = event.before_bytes, event.after_bytes
    if event.is_refusal:
        return ""
    if event.operation == "move":
        return _with_size("moved", after)
    if event.operation == "remove":
        # The record of a directory has 0 bytes.
        return _with_size("removed", before or None)
    if event.operation in ("mkdir", "link") or (before is None and after is not None):
        return _with_size("created", after)
    return "" if before is None or after is None else f"{before:,} {arrow} {_bytes(after)}"


def _with_size(what: str, size: int | None) -> str:
    return what if size is None else f"{what} {_bytes(size)}"


def _bytes(size: int) -> str:
    return f"{size:,} byte{'' if size == 1 else 's'}"


def _outcome(event: Event) -> str:
    if event.error is None:
        return ""
    if event.error == UNDONE:
        return "undone"
    repeats = f", {event.repeats} more" if event.repeats else ""
    return f"refused: {printable(event.error)}{repeats}"


def as_json(event: Event) -> dict[str, Any]:
    """The record as a JSON document."""
    return asdict(event)
