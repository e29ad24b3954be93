"""The table of `carrel session list`: one row per session."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from carrel.errors import BusyError, CarrelError, SessionMissingError
from carrel.fronts.cli.output import Colours, Tone, render_time
from carrel.sessions.manager import WorkspaceManager
from carrel.storage.quota import render_bytes
from carrel.storage.session_record import SessionRecord

NO_RECORD = "no_metadata"
"""The problem of a directory that was never opened as a session."""

_PAGE = 100
"""Number of records read at a time."""
_UNKNOWN = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow:
    """One session; unknown values are `None`."""

    session_id: str
    created_ns: int | None = None
    used_ns: int | None = None
    expires_ns: int | None = None
    """Also `None` if the session never expires."""
    size_bytes: int | None = None
    in_use: bool | None = None
    problem: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The row as a JSON document."""
        return asdict(self)

    def tone(self, now_ns: int) -> Tone | None:
        """The colour of the row: an error for a problem, dim if the session has expired."""
        if self.problem is not None:
            return Tone.ERROR
        is_expired = self.expires_ns is not None and self.expires_ns <= now_ns and not self.in_use
        return Tone.DIM if is_expired else None

    def cells(self) -> tuple[str, ...]:
        """The texts of the table columns."""
        never = _UNKNOWN if self.created_ns is None else "never"
        return (
            self.session_id,
            _UNKNOWN if self.created_ns is None else render_time(self.created_ns),
            _UNKNOWN if self.used_ns is None else render_time(self.used_ns),
            never if self.expires_ns is None else render_time(self.expires_ns),
            _UNKNOWN if self.size_bytes is None else render_bytes(self.size_bytes),
            {None: _UNKNOWN, True: "yes", False: "no"}[self.in_use],
            *(() if self.problem is None else (self.problem,)),
        )


class SessionPage:
    """A page of sessions."""

    def __init__(self, manager: WorkspaceManager, *, after: str | None, limit: int | None) -> None:
        self._manager = manager
        self._after = after
        names = [name for name in manager.list_workspaces() if after is None or name > after]
        self._names = names[:limit]
        self.next_after = None if len(names) == len(self._names) else self._names[-1]
        """The id after which the next page begins; `None` at the end."""

    @property
    def is_empty(self) -> bool:
        """Whether the page holds no session."""
        return not self._names

    def lines(self, colours: Colours) -> Iterator[str]:
        """The sessions as a table; no lines if the page is empty."""
        if self.is_empty:
            return
        widths = (max(map(len, self._names)), 20, 20, 20, 8, 6)
        head = _table_line(("ID", "CREATED", "LAST USED", "EXPIRES", "SIZE", "IN USE"), widths)
        yield colours.paint(head, Tone.HEADING)
        for row in self.rows():
            yield colours.paint(_table_line(row.cells(), widths), row.tone(time.time_ns()))

    def rows(self) -> Iterator[SessionRow]:
        """The current state of each session; sessions deleted in the meantime are left out."""
        records = self._records()
        for name in self._names:
            record = records.get(name)
            try:
                yield SessionRow(session_id=name, problem=NO_RECORD) if record is None else self._row(record)
            except SessionMissingError:
                continue

    def _records(self) -> dict[str, SessionRecord]:
        """The records of the page by id; reading them one by one would create missing records."""
        found: dict[str, SessionRecord] = {}
        after = self._after
        while self._names and (page := self._manager.list_records(after, _PAGE)):
            found.update((record.session_id, record) for record in page)
            after = page[-1].session_id
            if after >= self._names[-1]:
                break
        return found

    def _row(self, record: SessionRecord) -> SessionRow:
        size_bytes, in_use, problem = None, None, None
        try:
            status = self._manager.status(record.session_id)
        except SessionMissingError:
            raise
        except BusyError:
            in_use = True
        except CarrelError as error:
            problem = error.message
        else:
            record, in_use = status.record, status.in_use
            size_bytes = None if status.usage is None else status.usage.disk_bytes
        return SessionRow(
            session_id=record.session_id,
            created_ns=record.created_ns,
            used_ns=record.used_ns,
            expires_ns=record.expires_ns,
            size_bytes=size_bytes,
            in_use=in_use,
            problem=problem,
        )


def _table_line(cells: tuple[str, ...], widths: tuple[int, ...]) -> str:
    padded = [f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=False)]
    return "  ".join([*padded, *cells[len(widths) :]]).rstrip()
