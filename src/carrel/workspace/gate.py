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
"""Number of entries that are listed within a few milliseconds."""

Params = ParamSpec("Params")
Result = TypeVar("Result")


class Ledger(Account, Protocol):
    """The account of a whole workspace."""

    def usage(self) -> Usage:
        """Return the usage of the workspace."""
        ...

    def known_entries(self) -> int | None:
        """Return the number of entries, or `None` if it cannot be known without waiting."""
        ...

    def recount(self) -> Usage:
        """Count all files, including changes that did not come through the gate."""
        ...

    def begin_unmediated(self) -> None:
        """Mark that programs change files without the gate; if this process is killed, the next one counts.

        Raises:
            QuotaError: The quota is exceeded already.
        """
        ...

    def end_unmediated(self) -> Usage:
        """Remove the mark of `begin_unmediated` and count the files."""
        ...

    def flush_unmediated(self) -> None:
        """Flush what programs changed without the gate, if the durability level requires it.

        Raises:
            DiskError: That failed.
        """
        ...

    def spool(self) -> Draft | None:
        """Create a file for an incoming archive on the disk of the sessions; `None` for a temporary file."""
        ...

    def require_spool(self, size_bytes: int, *, coming_bytes: int = 0, replacing: bool) -> None:
        """Refuse to spool an archive of *size_bytes* that cannot fit beside those of other callers.

        Of these, *coming_bytes* are known not to be on the disk yet. If it is *replacing* files, the current
        usage is not counted against it.

        Raises:
            QuotaError: It has too many bytes.
            DiskLowError: The host's disk has too little free space.
        """
        ...

    def close(self) -> None:
        """Release the resources of the ledger."""
        ...


class Gated(Protocol):
    """An object whose operations go through a gate."""

    gate: Gate


Owner = TypeVar("Owner", bound=Gated)


def gated(
    operation: str,
) -> Callable[[Callable[Concatenate[Owner, Params], Result]], Callable[Concatenate[Owner, Params], Result]]:
    """Record every refusal of *operation* before the caller sees it."""

    def decorate(
        method: Callable[Concatenate[Owner, Params], Result],
    ) -> Callable[Concatenate[Owner, Params], Result]:
        @wraps(method)
        def call(self: Owner, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
            try:
                return method(self, *args, **kwargs)
            except (PathError, AccessError, QuotaError) as error:
                self.gate.record_refusal(operation, error)
                raise

        return call

    return decorate


class GateOptions(TypedDict, total=False):
    """Options of a gate, all with defaults."""

    limits: Limits | None
    """Limits; `Limits()` by default, without a quota for a directory that is not a session."""
    logger: SandboxLogger | None
    """Receives log events; the stdlib logger `carrel` by default."""
    journal: Journal | None
    """Records changes and refusals; in memory by default."""
    session_id: str | None
    """Session id in every event."""
    actor: str
    """Recorded as the one who requested each operation; `host` by default."""
    absolute_paths: bool
    """Whether absolute paths are looked up in the rules (the default); if not, they are refused."""
    clock: Clock


def create_recorder(options: GateOptions) -> Recorder:
    """Create the recorder of a gate with these *options*."""
    return Recorder(
        options.get("journal") or MemoryJournal(),
        logger=SandboxLogger.of(options.get("logger")),
        session_id=options.get("session_id"),
        actor=options.get("actor", "host"),
        clock=options.get("clock", time.time_ns),
    )


class Gate:
    """Checks and records every operation on a workspace."""

    def __init__(
        self,
        roots: RuleRoots | View,
        policy: SandboxPolicy,
        *,
        limits: Limits,
        recorder: Recorder,
        ledger: Ledger,
        absolute_paths: bool = True,
        base: Gate | None = None,
    ) -> None:
        """Guard *roots* by *policy*. The resources of a view belong to the gate *base*."""
        self.policy = policy
        self.limits = limits
        self.session_id = recorder.session_id
        self.ledger = ledger
        self._allowed = [policy.allowed(index) for index in range(len(policy.allowed_paths))]
        self._roots = roots
        self._recorder = recorder
        self._logger = recorder.logger
        self._parse = parse_any if absolute_paths else parse
        self._base = base
        self._closed = False

    def narrowed(self, mode: AccessMode, within: tuple[NameParts, ...], check: Check | None) -> Gate:
        """Return a gate to the same files that permits no more than this one.

        Raises:
            UnavailableError: *within* is given, and the files are not on the host's disk.
            ClosedError: The gate was closed.
        """
        self.require_open()
        view = self._roots if isinstance(self._roots, View) else View(self._roots)
        view = view.narrowed(within, check)
        policy = self.policy.read_only() if mode is AccessMode.READ_ONLY else self.policy
        if view.within is not None:
            # Switched off, the rules would permit the rest of the workspace by its path on the host.
            policy = policy.switched_on()
        return Gate(
            view,
            policy,
            limits=_reduce_depth(self.limits, self.within, view.within),
            recorder=self._recorder,
            ledger=self.ledger,
            absolute_paths=self._parse is parse_any,
            base=self,
        )

    @property
    def within(self) -> tuple[NameParts, ...] | None:
        """The directories of the workspace that the gate is restricted to; `None` for all of it."""
        return self._roots.within if isinstance(self._roots, View) else None

    @property
    def is_closed(self) -> bool:
        """Whether this gate or its base was closed."""
        return self._closed or (self._base is not None and self._base.is_closed)

    def require_open(self) -> None:
        """Require that the gate is open.

        Raises:
            ClosedError: It was closed.
        """
        if self.is_closed:
            raise ClosedError("workspace is closed")

    @property
    def is_small(self) -> bool:
        """Whether the workspace is known to be small enough to be walked within a few milliseconds."""
        return self.has_at_most(SMALL_ENTRIES)

    def has_at_most(self, count: int) -> bool:
        """Whether the workspace is known to have no more than *count* entries."""
        entries = self.ledger.known_entries()
        return entries is not None and entries <= count and len(self.policy.allowed_paths) == 1

    def close(self) -> None:
        """Close every directory and the journal; of a view, only the view."""
        self._closed = True
        if self._base is not None:
            return
        self._roots.close()
        self.ledger.close()
        self._recorder.close()

    # Before an operation

    def permit(self, access: Access, path: StrPath) -> tuple[Files, ParsedPath]:
        """Return the files of the first matching rule, and the path in them, if the rule allows *access*.

        Raises:
            ClosedError: The gate was closed.
            PathError: The path is invalid.
            OutsideError: No rule covers the path.
            AccessError: Its rule does not allow this access.
        """
        requested = self._parse_open(path)
        location = self._roots.locate(requested)
        if location.rule is None or access not in self._allowed[location.rule]:
            self.policy.decide(requested.requested, access, location.rule).require()
        return self._roots.files(location), location.path

    def explain(self, access: Access, path: StrPath) -> tuple[Decision, Files | None, ParsedPath]:
        """Return the decision of `permit`, and the files if it allows access and they exist."""
        requested = self._parse_open(path)
        location = self._roots.locate(requested)
        decision = self.policy.decide(requested.requested, access, location.rule)
        if not decision.allowed:
            return decision, None, location.path
        try:
            return decision, self._roots.files(location), location.path
        except MissingError:
            return decision, None, location.path

    def _parse_open(self, path: StrPath) -> ParsedPath:
        """Parse *path*, if the gate is open."""
        if self._closed or (self._base is not None and self._base.is_closed):
            raise ClosedError(f"workspace is closed: {str(path)[:PATH_BYTES]!r}", path=str(path))
        return self._parse(path)

    def require_size(self, size: int, path: ParsedPath) -> None:
        """Refuse a file of more than the maximum size, or a path of more than the maximum depth.

        Raises:
            LimitError: A limit would be exceeded.
        """
        require_size(size, self.limits.file_bytes, path)
        self.require_depth(path)

    def require_room(self, *, more_bytes: int, more_entries: int) -> None:
        """Refuse growth that does not fit in the quota now.

        Raises:
            QuotaError: There would be too many bytes or entries.
            DiskLowError: The host's disk has too little free space.
        """
        self.ledger.require_room(more_bytes, more_entries)

    def require_depth(self, path: ParsedPath) -> None:
        """Refuse a path of more than the maximum depth.

        Raises:
            LimitError: It has more levels than the limit.
        """
        limit = self.limits.depth
        depth = len(path.parts)
        if limit is not None and depth > limit:
            raise LimitError(
                "depth",
                limit=limit,
                asked=depth,
                message=f"path {path.requested[:80]!r} is too deep: {depth} levels, the limit is {limit}",
                path=path.requested,
            )

    # After an operation

    def record_refusal(self, operation: str, error: CarrelError) -> None:
        """Record a refused operation, unless the error is a mere mistake."""
        if isinstance(error, IntoItselfError):
            return
        # Without the session lock: a refusal must not wait, on an event loop or in a signal handler.
        self._recorder.refuse(operation, _cut(error), error.code)

    def record_mistake(self, operation: str, error: CarrelError) -> None:
        """Record a command line that is merely wrong, such as one with a syntax error."""
        self._recorder.refuse(operation, _cut(error), error.code, is_mistake=True)

    def log_mistake(self, path: str, code: str) -> None:
        """Log and count an invalid use of the command *path*."""
        self._recorder.log_mistake(path[:PATH_BYTES], code)

    def log(self, operation: str, path: ParsedPath, **fields: object) -> None:
        """Log `session.file.<operation>` with the path as requested."""
        logger = self._logger
        if logger.wants_events():
            logger.log_event(
                f"session.file.{operation}", session_id=self.session_id, path=path.requested, **fields
            )

    def log_listing(self, pattern: str, count: int) -> None:
        """Log `session.file.list` with a pattern."""
        self._logger.log_event(
            "session.file.list", session_id=self.session_id, pattern=pattern, file_count=count
        )

    def log_failure(self, tool: str, error: Exception) -> None:
        """Log an internal error of a tool."""
        self._logger.log_failure("tool.failed", error, session_id=self.session_id, tool=tool)

    def now(self) -> int:
        """Return the time in nanoseconds since the epoch."""
        return self._recorder.now()

    def watching(self) -> AbstractContextManager[list[Event]]:
        """Collect the events recorded in the current context; see `Recorder.watching`."""
        return self._recorder.watching()

    @property
    def is_watched(self) -> bool:
        """Whether events recorded in the current context are collected."""
        return self._recorder.is_watched

    def relay(self, events: Iterable[Event]) -> None:
        """Pass events that another process recorded to the watchers; see `Recorder.relay`."""
        self._recorder.relay(events)

    def position(self) -> int:
        """Return the sequence number of the latest event in the journal."""
        return self._recorder.position()

    def events(self, since: int, *, refusals: bool = True) -> Iterator[Event]:
        """Return the events after *since*, without refusals if *refusals* is off.

        A view of some directories returns only events whose paths it shows.
        """
        self.require_open()
        found = self._recorder.events(since, refusals=refusals)
        shown = self._roots.filter if isinstance(self._roots, View) else None
        return found if shown is None else filter(shown.includes, found)


def _cut(error: CarrelError) -> str:
    """Return the path of a refusal as it is recorded."""
    return (error.path or "")[:PATH_BYTES]


def _reduce_depth(
    limits: Limits, before: tuple[NameParts, ...] | None, within: tuple[NameParts, ...] | None
) -> Limits:
    """Reduce the depth limit of a view, whose paths are counted from the directories that it shows."""
    more = _depth(within) - _depth(before)
    if limits.depth is None or more <= 0:
        return limits
    return replace(limits, depth=max(0, limits.depth - more))


def _depth(within: tuple[NameParts, ...] | None) -> int:
    return max(map(len, within or ()), default=0)
