"""`Recorder`: write the changes and refusals of a workspace to its journal."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Unpack

from carrel.audit.event import UNDONE, Event
from carrel.audit.journal import Journal
from carrel.audit.logger import SandboxLogger
from carrel.errors import ClosedError, UnavailableError
from carrel.fs.api import ChangeDetails
from carrel.fs.host.durability import Durability, unwritten
from carrel.storage.repeats import Repeats
from carrel.values import Clock


class Recorder:
    """Creates the events of one session and one actor, and writes them to a journal."""

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
        """Record to *journal*; with `Durability.DISK`, a change that cannot be recorded is refused."""
        self.session_id = session_id
        self.logger = logger
        self._journal = journal
        self._actor = actor
        self._clock = clock
        self._durability = durability
        self._repeats = Repeats()
        self._mistakes = Repeats()

    def now(self) -> int:
        """Return the time in nanoseconds since the epoch."""
        return self._clock()

    @contextmanager
    def watching(self) -> Iterator[list[Event]]:
        """Collect the events recorded in the current context: this thread or task, and those that inherit it.

        The context is inherited by the threads of a pipeline, of an awaited call and of `asyncio.to_thread`.
        Other threads join with `contextvars.copy_context().run`. Nested watchers each get all events.
        """
        events: list[Event] = []
        outer = _WATCHERS.get()
        _WATCHERS.set((*outer, (self, events)))
        try:
            yield events
        finally:
            _WATCHERS.set(outer)

    @property
    def is_watched(self) -> bool:
        """Whether events recorded in the current context are collected."""
        return any(recorder is self for recorder, _ in _WATCHERS.get())

    def relay(self, events: Iterable[Event]) -> None:
        """Pass events that another process recorded in this session to the current watchers."""
        watchers = _WATCHERS.get()
        if not watchers:
            return
        relayed = tuple(events)
        for recorder, collected in watchers:
            if recorder is self:
                collected.extend(relayed)

    def event(
        self, operation: str, path: str, *, error: str | None = None, **details: Unpack[ChangeDetails]
    ) -> Event:
        """Create an event without writing it."""
        return Event(
            time_ns=self._clock(),
            session_id=self.session_id,
            actor=self._actor,
            operation=operation,
            path=path,
            other_path=details.get("other"),
            before_bytes=details.get("before_bytes"),
            after_bytes=details.get("after_bytes"),
            error=error,
        )

    def write(self, *events: Event) -> None:
        """Append events to the journal. If that fails, the operation stands and the failure is logged.

        Raises:
            DiskError: It failed, one of the events is a change, and changes must be durable.
        """
        self._durability.require_waiting()
        self.relay(events)
        self._append(*events)

    def _append(self, *events: Event) -> None:
        try:
            self._journal.record(*events)
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

    def refuse(self, operation: str, path: str, code: str, *, is_mistake: bool = False) -> None:
        """Record and log a refusal: the first at once, its repeats as a count.

        A mistake in a command line is recorded in the same way, but is not logged as a security event.
        """
        self._durability.require_waiting()
        self.logger.counts.add(code, is_mistake=is_mistake)
        event = self.event(operation, path, error=code)
        self.relay((event,))
        if is_mistake:
            self._write_mistakes(self._mistakes.add(event))
        else:
            self._write_refusals(self._repeats.add(event))

    def log_mistake(self, path: str, code: str) -> None:
        """Log and count a mistake in a command line that is an ordinary result, so it is not recorded."""
        self.logger.counts.add(code, is_mistake=True)
        self._log_mistake(path, code)

    def record_repeats(self) -> None:
        """Record the repeats of refusals and mistakes that have been counted since the last time."""
        self._write_refusals(self._repeats.take_counts())
        self._write_mistakes(self._mistakes.take_counts())

    def _write_refusals(self, events: Iterable[Event]) -> None:
        for event in events:
            self._append(event)
            self.logger.log_security_event(
                (event.error or "").replace(".", "_"),
                session_id=self.session_id,
                operation=event.operation,
                path=event.path,
                repeats=event.repeats or None,
            )

    def _write_mistakes(self, events: Iterable[Event]) -> None:
        for event in events:
            self._append(event)
            self._log_mistake(event.path, event.error or "", event.repeats or None)

    def _log_mistake(self, path: str, code: str, repeats: int | None = None) -> None:
        self.logger.log_event(
            "shell.rejected", session_id=self.session_id, code=code, path=path, repeats=repeats
        )

    def record_undone(self, event: Event) -> None:
        """Record that the change of *event* was not made."""
        self.write(
            self.event(
                event.operation,
                event.path,
                other=event.other_path,
                before_bytes=event.before_bytes,
                after_bytes=event.after_bytes,
                error=UNDONE,
            )
        )

    def position(self) -> int:
        """Return the sequence number of the latest event in the journal."""
        return self._journal.position()

    def events(self, since: int, *, refusals: bool = True) -> Iterator[Event]:
        """Return the events after *since*, without refusals if *refusals* is off.

        Repeats that have been counted so far are recorded first.

        Raises:
            RotatedError: Some of the events are no longer kept.
            UnavailableError: The journal cannot be read.
        """
        if refusals and (self._repeats.has_counts or self._mistakes.has_counts):
            self._durability.require_waiting()
            self.record_repeats()
        try:
            return _read(self._journal.events(since, refusals=refusals))
        except OSError as error:
            problem = error
        raise _unreadable(problem)

    def close(self) -> None:
        """Record counted repeats and close the journal."""
        self.record_repeats()
        self._journal.close()


_WATCHERS: ContextVar[tuple[tuple[Recorder, list[Event]], ...]] = ContextVar("carrel_watchers", default=())
"""The watchers of the current context with their recorders, outermost first.

Not an attribute of `Recorder`: a context keeps its variables alive, so a variable per recorder would leak.
"""


def effective_changes(events: Iterable[Event]) -> list[Event]:
    """Return the changes among *events* that no later event marks as undone."""
    effective: list[Event] = []
    for event in events:
        if event.error is None:
            effective.append(event)
        elif event.error == UNDONE:
            same = [index for index, each in enumerate(effective) if _change(each) == _change(event)]
            if same:
                del effective[same[-1]]
    return effective


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
