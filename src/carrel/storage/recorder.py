"""`Recorder`: write the changes and refusals of a workspace to its journal."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from carrel.audit.event import UNDONE, Event
from carrel.audit.journal import FileJournal, Journal
from carrel.audit.logger import SandboxLogger
from carrel.errors import ClosedError, UnavailableError
from carrel.fs.host.durability import Durability, unwritten
from carrel.storage.repeats import Repeats
from carrel.values import Clock


class Recorder:
    """Makes events of one session and one actor, and keeps them in a journal."""

    def __init__(
        self,
        journal: Journal,
        *,
        logger: SandboxLogger,
        session_id: str | None = None,
        actor: str = "host",
        clock: Clock = time.time_ns,
        durability: Durability = Durability.PROCESS,
    ) -> None:
        """Record into *journal*; where changes must be durable, one that cannot be recorded is refused."""
        self.session_id = session_id
        self.logger = logger
        self._journal = journal
        self._actor = actor
        self._clock = clock
        self._durability = durability
        self._repeats = Repeats()

    def now(self) -> int:
        """The time, in nanoseconds since the epoch."""
        return self._clock()

    @contextmanager
    def watching(self) -> Iterator[list[Event]]:
        """Collect what is recorded meanwhile by this thread or task, and by all that run in its context.

        Those are the threads of a pipeline, of an awaited call and of `asyncio.to_thread`; any other joins by
        `contextvars.copy_context().run`. Whoever watches already goes on.
        """
        events: list[Event] = []
        before = _WATCHES.get()
        _WATCHES.set((*before, (self, events)))
        try:
            yield events
        finally:
            _WATCHES.set(before)

    @property
    def is_watched(self) -> bool:
        """Whether what is recorded in this context is collected."""
        return any(recorder is self for recorder, _ in _WATCHES.get())

    def relay(self, events: Iterable[Event]) -> None:
        """Give what another process recorded in this session to those who watch in this context."""
        told = tuple(events)
        for recorder, seen in _WATCHES.get():
            if recorder is self:
                seen.extend(told)

    def record(
        self,
        operation: str,
        path: str,
        *,
        other: str | None = None,
        before_bytes: int | None = None,
        after_bytes: int | None = None,
        error: str | None = None,
    ) -> Event:
        """Make one event and add it to the journal; see `write`."""
        event = self.event(
            operation, path, other=other, before_bytes=before_bytes, after_bytes=after_bytes, error=error
        )
        self.write(event)
        return event

    def event(
        self,
        operation: str,
        path: str,
        *,
        other: str | None = None,
        before_bytes: int | None = None,
        after_bytes: int | None = None,
        error: str | None = None,
    ) -> Event:
        """Make one event that is not written yet."""
        return Event(
            time_ns=self._clock(),
            session_id=self.session_id,
            actor=self._actor,
            operation=operation,
            path=path,
            other_path=other,
            before_bytes=before_bytes,
            after_bytes=after_bytes,
            error=error,
        )

    def write(self, *events: Event) -> None:
        """Add events to the journal; where that fails, the operation stands and the log says so.

        Raises:
            DiskError: It failed, one of them is a change, and changes must be durable.
        """
        self._durability.require_waiting()
        self.relay(events)
        self._add(*events)

    def _add(self, *events: Event) -> None:
        try:
            if isinstance(self._journal, FileJournal):
                self._journal.record(*events)
            else:
                for event in events:
                    self._journal.record(event)
        except (OSError, ClosedError) as error:
            for event in events:
                self.logger.log_security_event(
                    "journal_lost", session_id=self.session_id, operation=event.operation, path=event.path
                )
            if self._durability is Durability.PROCESS or all(event.is_refusal for event in events):
                return
            if isinstance(error, ClosedError):
                raise
            problem = unwritten("the journal of the session", error)
        else:
            return
        raise problem

    def refuse(self, operation: str, path: str, code: str) -> None:
        """Record and log a refusal: at once, or by their number where the same is refused again and again."""
        self._durability.require_waiting()
        event = self.event(operation, path, error=code)
        self.relay((event,))
        self._write_refusals(self._repeats.add(event))

    def record_repeats(self) -> None:
        """Record how often the same was refused since that was last recorded."""
        self._write_refusals(self._repeats.counts())

    def _write_refusals(self, events: Iterable[Event]) -> None:
        for event in events:
            self._add(event)
            self.logger.log_security_event(
                (event.error or "").replace(".", "_"),
                session_id=self.session_id,
                operation=event.operation,
                path=event.path,
                repeats=event.repeats or None,
            )

    def take_back(self, event: Event) -> None:
        """Say that *event* did not come true."""
        self.record(
            event.operation,
            event.path,
            other=event.other_path,
            before_bytes=event.before_bytes,
            after_bytes=event.after_bytes,
            error=UNDONE,
        )

    def position(self) -> int:
        """How far the journal has come."""
        return self._journal.position()

    def events(self, since: int, *, refusals: bool = True) -> Iterator[Event]:
        """The events after *since*; changes alone if so asked.

        What was counted by then is recorded first.

        Raises:
            RotatedError: Some of them are no longer kept.
            UnavailableError: The journal cannot be read.
        """
        if refusals and self._repeats.has_counts:
            self._durability.require_waiting()
            self.record_repeats()
        try:
            return _read(self._journal.events(since, refusals=refusals))
        except OSError as error:
            problem = error
        raise _unreadable(problem)

    def close(self) -> None:
        """Record what was counted, and close the journal."""
        self.record_repeats()
        self._journal.close()


_WATCHES: ContextVar[tuple[tuple[Recorder, list[Event]], ...]] = ContextVar("carrel_watches", default=())
"""Who collects the records of which recorder, the outermost first."""


def effective_changes(events: Iterable[Event]) -> list[Event]:
    """Those of *events* that tell of a change and were not taken back by a later one."""
    kept: list[Event] = []
    for event in events:
        if event.error is None:
            kept.append(event)
        elif event.error == UNDONE:
            same = [place for place, one in enumerate(kept) if _change(one) == _change(event)]
            if same:
                del kept[same[-1]]
    return kept


def _change(event: Event) -> tuple[object, ...]:
    return event.operation, event.path, event.other_path, event.before_bytes, event.after_bytes


def _read(events: Iterator[Event]) -> Iterator[Event]:
    try:
        yield from events
        return
    except OSError as error:
        problem = error
    raise _unreadable(problem)


def _unreadable(error: OSError) -> UnavailableError:
    return UnavailableError(f"the journal cannot be read: {os.strerror(error.errno or errno.EIO)}")
