"""The gate itself: parse and permit before an operation acts, record what it did or why it was refused."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypedDict, TypeVar, Unpack

from carrel.audit.event import Event
from carrel.audit.journal import Journal, MemoryJournal
from carrel.audit.logger import SandboxLogger
from carrel.errors import AccessError, ClosedError, IntoItselfError, LimitError, MissingError, PathError
from carrel.fs.api import Files
from carrel.paths.rel import PATH_BYTES, StrPath, Where, parse, parse_any
from carrel.policy.rules import Access, Decision, SandboxPolicy
from carrel.values import Change, Clock, Limits
from carrel.workspace.areas import Areas
from carrel.workspace.chunks import require_size

Params = ParamSpec("Params")
Result = TypeVar("Result")


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
            except (PathError, AccessError) as error:
                self.gate.refused(operation, error)
                raise

        return call

    return decorate


class GateOptions(TypedDict, total=False):
    """How a gate may be set up; what is left out has a default."""

    limits: Limits | None
    """Ceilings; those of `Limits()` by default."""
    logger: SandboxLogger | None
    """Where events go; the stdlib logger `carrel` by default."""
    journal: Journal | None
    """Where changes and refusals are recorded; in memory by default."""
    session_id: str | None
    """Named in every event."""
    actor: str
    """Named in every record as the one who asked; `host` by default."""
    absolute_paths: bool
    """Whether absolute paths are looked up in the rules, or refused as such; the first by default."""
    clock: Clock


class Gate:
    """What every operation on a workspace passes through."""

    def __init__(self, areas: Areas, policy: SandboxPolicy, **options: Unpack[GateOptions]) -> None:
        """Guard *areas* by *policy*."""
        self.policy = policy
        self.limits = options.get("limits") or Limits()
        self.session_id = options.get("session_id")
        self._allowed = [policy.allowed(index) for index in range(len(policy.allowed_paths))]
        self._areas = areas
        self._logger = SandboxLogger.of(options.get("logger"))
        self._journal: Journal = options.get("journal") or MemoryJournal()
        self._actor = options.get("actor", "host")
        self._parse = parse_any if options.get("absolute_paths", True) else parse
        self._clock = options.get("clock", time.time_ns)
        self._closed = False

    def close(self) -> None:
        """Close every directory and the journal."""
        self._closed = True
        self._areas.close()
        self._journal.close()

    # Before

    def permit(self, access: Access, path: StrPath) -> tuple[Files, Where]:
        """The files and the way in them that the first matching rule opens for this access.

        Raises:
            ClosedError: The gate was closed.
            PathError: The text is not a path we accept.
            OutsideError: No rule has the path.
            AccessError: Its rule does not allow this access.
        """
        asked = self._asked(path)
        place = self._areas.locate(asked)
        if place.rule is None or access not in self._allowed[place.rule]:
            self.policy.decide(asked.asked, access, place.rule).require()
        return self._areas.files(place), place.where

    def explain(self, access: Access, path: StrPath) -> tuple[Decision, Files | None, Where]:
        """What `permit` would say, without recording it; no files if it says no or there are none yet."""
        asked = self._asked(path)
        place = self._areas.locate(asked)
        decision = self.policy.decide(asked.asked, access, place.rule)
        if not decision.allowed:
            return decision, None, place.where
        try:
            return decision, self._areas.files(place), place.where
        except MissingError:
            return decision, None, place.where

    def _asked(self, path: StrPath) -> Where:
        if self._closed:
            raise ClosedError(f"workspace is closed: {str(path)[:PATH_BYTES]!r}", path=str(path))
        return self._parse(path)

    def require_size(self, size: int, where: Where) -> None:
        """Refuse to make a file of *size* bytes, or one so deep.

        Raises:
            LimitError: A ceiling would be passed.
        """
        require_size(size, self.limits.file_bytes, where)
        self.require_depth(where)

    def require_depth(self, where: Where) -> None:
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
                message=f"path {where.asked[:80]!r} is too deep: {depth} levels, the limit is {limit}",
                path=where.asked,
            )

    # After

    def changed(self, operation: str, where: Where, change: Change) -> None:
        """Remember what was written."""
        self.made(change.made)
        size = change.info.size_bytes
        self.record(operation, where.asked, before_bytes=change.before_bytes, after_bytes=size)
        self.log(operation, where, size_bytes=size)

    def made(self, directories: Iterable[str]) -> None:
        """Remember directories that were made."""
        for directory in directories:
            self.record("mkdir", directory)

    def refused(self, operation: str, error: PathError | AccessError) -> None:
        """Remember an attempt that was refused, unless it was merely clumsy."""
        if isinstance(error, IntoItselfError):
            return
        path = (error.path or "")[:PATH_BYTES]
        self.record(operation, path, error=error.code)
        self._logger.log_security_event(
            error.code.replace(".", "_"), session_id=self.session_id, operation=operation, path=path
        )

    def record(
        self,
        operation: str,
        path: str,
        *,
        other: str | None = None,
        before_bytes: int | None = None,
        after_bytes: int | None = None,
        error: str | None = None,
    ) -> None:
        """Add one event to the journal; where that fails, the operation stands and the log says so."""
        event = Event(
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
        try:
            self._journal.record(event)
        except (OSError, ClosedError):
            self._logger.log_security_event(
                "journal_lost", session_id=self.session_id, operation=operation, path=path
            )

    def log(self, operation: str, where: Where, **fields: object) -> None:
        """Log `session.file.<operation>` about the path as it was asked for."""
        logger = self._logger
        if logger.wants_events():
            logger.log_event(
                f"session.file.{operation}", session_id=self.session_id, path=where.asked, **fields
            )

    def log_listing(self, pattern: str, count: int) -> None:
        """Log `session.file.list` about a pattern."""
        self._logger.log_event(
            "session.file.list", session_id=self.session_id, pattern=pattern, file_count=count
        )

    def events(self, since: int) -> Iterator[Event]:
        """The records after *since*."""
        if self._closed:
            raise ClosedError("workspace is closed")
        return self._journal.events(since)
