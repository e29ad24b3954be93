"""`Gate`: parse and permit before an operation acts, then record what it did or why it was refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypedDict, TypeVar

from carrel.audit.event import Event
from carrel.audit.journal import Journal, MemoryJournal
from carrel.audit.logger import SandboxLogger
from carrel.errors import (
    AccessError,
    CarrelError,
    ClosedError,
    IntoItselfError,
    LimitError,
    MissingError,
    PathError,
    QuotaError,
)
from carrel.fs.api import Account, Files
from carrel.fs.cancellable import Check
from carrel.fs.local.draft import Draft
from carrel.paths.parsed_path import PATH_BYTES, ParsedPath, StrPath, parse, parse_any
from carrel.policy.rules import Access, AccessMode, Decision, SandboxPolicy
from carrel.storage.recorder import Recorder
from carrel.values import Clock, Limits, Usage
from carrel.workspace.chunks import require_size
from carrel.workspace.views import NameParts, RuleRoots, View

SMALL_ENTRIES = 500
"""So many are listed in a few milliseconds."""

Params = ParamSpec("Params")
Result = TypeVar("Result")


class Ledger(Account, Protocol):
    """The account of a whole workspace."""

    def usage(self) -> Usage:
        """What the workspace holds."""
        ...

    def known_entries(self) -> int | None:
        """How many entries there are, if that can be told without waiting for anybody."""
        ...

    def recount(self) -> Usage:
        """Count again what there is, whoever made it."""
        ...

    def begin_direct(self) -> None:
        """Say that programs change the files by themselves from now on.

        If the caller is killed, the next one counts.

        Raises:
            QuotaError: There is too much already.
        """
        ...

    def end_direct(self) -> Usage:
        """Say that they do no longer, and count what there is."""
        ...

    def flush_files(self) -> None:
        """Flush all that programs changed by themselves, where that is due.

        Raises:
            DiskError: That failed.
        """
        ...

    def spool(self) -> Draft | None:
        """A file for an archive that is not judged yet, on the disk of the sessions; `None` for any place."""
        ...

    def require_spool(self, size_bytes: int, *, coming_bytes: int = 0, replacing: bool) -> None:
        """Refuse to take in an archive of *size_bytes* that cannot fit, beside what others take in.

        Of these, *coming_bytes* are known not to be on the disk yet. Where it is *replacing* files, those
        that are there may make room for it.

        Raises:
            QuotaError: It has too many bytes.
            DiskLowError: The host's disk has too little free space.
        """
        ...

    def close(self) -> None:
        """Let go of what is held open."""
        ...


class Gated(Protocol):
    """Something whose operations go through a gate."""

    gate: Gate


Owner = TypeVar("Owner", bound=Gated)


def gated(
    operation: str,
) -> Callable[[Callable[Concatenate[Owner, Params], Result]], Callable[Concatenate[Owner, Params], Result]]:
    """Record every refusal of the operation before the caller sees it."""

    def decorate(
        method: Callable[Concatenate[Owner, Params], Result],
    ) -> Callable[Concatenate[Owner, Params], Result]:
        @wraps(method)
        def call(self: Owner, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
            try:
                return method(self, *args, **kwargs)
            except (PathError, AccessError, QuotaError) as error:
                self.gate.refused(operation, error)
                raise

        return call

    return decorate


class GateOptions(TypedDict, total=False):
    """How a gate may be set up; what is left out has a default."""

    limits: Limits | None
    """Ceilings; those of `Limits()` by default, but none for the whole of a directory that is no session."""
    logger: SandboxLogger | None
    """Where events go; the stdlib logger `carrel` by default."""
    journal: Journal | None
    """Where changes and refusals are recorded; in memory by default."""
    session_id: str | None
    """Named in every event."""
    actor: str
    """Named in every record as the one who requested; `host` by default."""
    absolute_paths: bool
    """Whether absolute paths are looked up in the rules, or refused as such; the first by default."""
    clock: Clock


def recorder_of(options: GateOptions) -> Recorder:
    """What writes down the changes and refusals of a gate with these *options*."""
    return Recorder(
        options.get("journal") or MemoryJournal(),
        logger=SandboxLogger.of(options.get("logger")),
        session_id=options.get("session_id"),
        actor=options.get("actor", "host"),
        clock=options.get("clock", time.time_ns),
    )


class Gate:
    """What every operation on a workspace passes through."""

    def __init__(
        self,
        areas: RuleRoots | View,
        policy: SandboxPolicy,
        *,
        limits: Limits,
        recorder: Recorder,
        ledger: Ledger,
        absolute_paths: bool = True,
        base: Gate | None = None,
    ) -> None:
        """Guard *areas* by *policy*; what a view works with belongs to the gate that is its *base*."""
        self.policy = policy
        self.limits = limits
        self.session_id = recorder.session_id
        self.ledger = ledger
        self._allowed = [policy.allowed(index) for index in range(len(policy.allowed_paths))]
        self._areas = areas
        self._recorder = recorder
        self._logger = recorder.logger
        self._parse = parse_any if absolute_paths else parse
        self._base = base
        self._closed = False

    def narrowed(self, mode: AccessMode, within: tuple[NameParts, ...], check: Check | None) -> Gate:
        """A gate to the same files that lets no more through.

        Raises:
            UnavailableError: The files have no directories that could be opened on their own.
            ClosedError: The gate was closed.
        """
        self.require_open()
        view = self._areas if isinstance(self._areas, View) else View(self._areas)
        view = view.narrowed(within, check)
        policy = self.policy.read_only() if mode is AccessMode.READ_ONLY else self.policy
        if view.within is not None:
            # Switched off, the rules would open the rest of the workspace by its path on the host.
            policy = policy.switched_on()
        return Gate(
            view,
            policy,
            limits=_shallower(self.limits, self.within, view.within),
            recorder=self._recorder,
            ledger=self.ledger,
            absolute_paths=self._parse is parse_any,
            base=self,
        )

    @property
    def within(self) -> tuple[NameParts, ...] | None:
        """The directories of the workspace that alone can be used; `None` for all of it."""
        return self._areas.within if isinstance(self._areas, View) else None

    @property
    def is_closed(self) -> bool:
        """Whether this gate was closed, or the one that it is a view of."""
        return self._closed or (self._base is not None and self._base.is_closed)

    def require_open(self) -> None:
        """Do nothing unless the gate was closed.

        Raises:
            ClosedError: It was.
        """
        if self.is_closed:
            raise ClosedError("workspace is closed")

    @property
    def guards_little(self) -> bool:
        """Whether it is known that looking through everything behind it takes no time to speak of."""
        return self.guards_at_most(SMALL_ENTRIES)

    def guards_at_most(self, count: int) -> bool:
        """Whether it is known that there are no more than *count* entries behind it."""
        entries = self.ledger.known_entries()
        return entries is not None and entries <= count and len(self.policy.allowed_paths) == 1

    def close(self) -> None:
        """Close every directory and the journal; a view closes itself alone."""
        self._closed = True
        if self._base is not None:
            return
        self._areas.close()
        self.ledger.close()
        self._recorder.close()

    # Before

    def permit(self, access: Access, path: StrPath) -> tuple[Files, ParsedPath]:
        """The files and the way in them that the first matching rule opens for this access.

        Raises:
            ClosedError: The gate was closed.
            PathError: The text is not a path we accept.
            OutsideError: No rule has the path.
            AccessError: Its rule does not allow this access.
        """
        requested = self._asked(path)
        place = self._areas.locate(requested)
        if place.rule is None or access not in self._allowed[place.rule]:
            self.policy.decide(requested.requested, access, place.rule).require()
        return self._areas.files(place), place.where

    def explain(self, access: Access, path: StrPath) -> tuple[Decision, Files | None, ParsedPath]:
        """What `permit` would say, without recording it; no files if it says no or there are none yet."""
        requested = self._asked(path)
        place = self._areas.locate(requested)
        decision = self.policy.decide(requested.requested, access, place.rule)
        if not decision.allowed:
            return decision, None, place.where
        try:
            return decision, self._areas.files(place), place.where
        except MissingError:
            return decision, None, place.where

    def _asked(self, path: StrPath) -> ParsedPath:
        if self._closed or (self._base is not None and self._base.is_closed):
            raise ClosedError(f"workspace is closed: {str(path)[:PATH_BYTES]!r}", path=str(path))
        return self._parse(path)

    def require_size(self, size: int, where: ParsedPath) -> None:
        """Refuse to make a file of *size* bytes, or one so deep.

        Raises:
            LimitError: A ceiling would be passed.
        """
        require_size(size, self.limits.file_bytes, where)
        self.require_depth(where)

    def require_room(self, *, more_bytes: int, more_entries: int) -> None:
        """Refuse what cannot fit into the quota now.

        Raises:
            QuotaError: There would be too many bytes or entries.
            DiskLowError: The host's disk has too little free space.
        """
        self.ledger.require_room(more_bytes, more_entries)

    def require_depth(self, where: ParsedPath) -> None:
        """Refuse to make something so deep.

        Raises:
            LimitError: The path has more levels than the limit.
        """
        limit = self.limits.depth
        depth = len(where.parts)
        if limit is not None and depth > limit:
            raise LimitError(
                "depth",
                limit=limit,
                asked=depth,
                message=f"path {where.requested[:80]!r} is too deep: {depth} levels, the limit is {limit}",
                path=where.requested,
            )

    # After

    def refused(self, operation: str, error: CarrelError) -> None:
        """Remember an attempt that was refused, unless it was merely clumsy."""
        if isinstance(error, IntoItselfError):
            return
        path = (error.path or "")[:PATH_BYTES]
        # Without the turn of the session: a refusal must not wait, on an event loop or in a signal handler.
        self._recorder.refuse(operation, path, error.code)

    def log(self, operation: str, where: ParsedPath, **fields: object) -> None:
        """Log `session.file.<operation>` about the path as it was requested for."""
        logger = self._logger
        if logger.wants_events():
            logger.log_event(
                f"session.file.{operation}", session_id=self.session_id, path=where.requested, **fields
            )

    def log_listing(self, pattern: str, count: int) -> None:
        """Log `session.file.list` about a pattern."""
        self._logger.log_event(
            "session.file.list", session_id=self.session_id, pattern=pattern, file_count=count
        )

    def log_failure(self, tool: str, error: Exception) -> None:
        """Log that a tool failed by a mistake of ours."""
        self._logger.log_failure("tool.failed", error, session_id=self.session_id, tool=tool)

    def now(self) -> int:
        """The time, in nanoseconds since the epoch."""
        return self._recorder.now()

    def watching(self) -> AbstractContextManager[list[Event]]:
        """Collect what is recorded meanwhile by this thread and those it starts; see `Recorder.watching`."""
        return self._recorder.watching()

    @property
    def is_watched(self) -> bool:
        """Whether somebody collects what is recorded in this context."""
        return self._recorder.is_watched

    def relay(self, events: Iterable[Event]) -> None:
        """Give what another process recorded to those who watch; see `Recorder.relay`."""
        self._recorder.relay(events)

    def position(self) -> int:
        """How far the journal has come."""
        return self._recorder.position()

    def events(self, since: int, *, refusals: bool = True) -> Iterator[Event]:
        """The records after *since*; those of changes alone if so requested.

        A view of some directories gives only those whose paths it shows.
        """
        self.require_open()
        found = self._recorder.events(since, refusals=refusals)
        shown = self._areas.shown if isinstance(self._areas, View) else None
        return found if shown is None else filter(shown.has, found)


def _shallower(
    limits: Limits, before: tuple[NameParts, ...] | None, within: tuple[NameParts, ...] | None
) -> Limits:
    """The limits of a view whose paths are counted from the directories that it shows."""
    more = _depth(within) - _depth(before)
    if limits.depth is None or more <= 0:
        return limits
    return replace(limits, depth=max(0, limits.depth - more))


def _depth(within: tuple[NameParts, ...] | None) -> int:
    return max(map(len, within or ()), default=0)
