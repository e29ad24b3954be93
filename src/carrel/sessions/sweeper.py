"""`Sweeper`: remove expired sessions, and what killed processes left behind.

Each session is claimed for itself and only for the moment in which it is taken out of the way, so nobody else
waits. A sweeper that is killed at any point leaves nothing that a later one does not finish: a session is
gone when its workspace is in the trash, and its record and state go with it or at the next full look.

Expired sessions are found by an index, and the trash holds only what is being removed, so a sweep with
nothing to do costs the same however many sessions there are. What no index can find takes a full look at all
of them: uses in the future, records that cannot be read, directories without a record, and records, states
and drafts that killed processes left. That is done by the first sweep of a process, by the next one when
`LOOK_SECONDS` have passed or the clock was set back, and by every one that is a dry run or is given an idle
time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from carrel.audit.logger import SandboxLogger
from carrel.errors import BusyError, CarrelError
from carrel.paths.session_id import require_session_id
from carrel.sessions.containers import SessionContainers
from carrel.storage.api import Registry
from carrel.storage.local.ledger import read_page
from carrel.storage.local.store import Claim, Store
from carrel.storage.session_record import SessionRecord
from carrel.values import Clock

LOOK_SECONDS = 3_600
"""Time between two full looks at all sessions of a directory."""

_PAGE = 100
_HOUR_NS = 3_600 * 10**9


@dataclass(slots=True, kw_only=True)
class SweepResult:
    """What a sweep did, or would do."""

    dry_run: bool = False
    deleted: list[str] = field(default_factory=list)
    """The ids of the sessions that were removed."""
    skipped: dict[str, str] = field(default_factory=dict)
    """The ids of those that were left, each with the reason."""
    errors: dict[str, str] = field(default_factory=dict)
    """The ids of those that could not be removed, each with the problem."""
    reclaimed_bytes: int = 0
    """Sum of the sizes of the files that were removed, or would be."""
    containers: int = 0
    """How many containers were removed, of these sessions and of processes that were killed."""

    def __str__(self) -> str:
        verb = "Would prune" if self.dry_run else "Pruned"
        notes = []
        if self.skipped:
            notes.append(f"{len(self.skipped)} skipped")
        if self.errors:
            notes.append(f"{len(self.errors)} error{'' if len(self.errors) == 1 else 's'}")
        note = f" ({', '.join(notes)})" if notes else ""
        count = len(self.deleted)
        sessions = f"{count} session{'' if count == 1 else 's'}"
        told = f"{verb} {sessions}{note}, reclaimed {_render_size(self.reclaimed_bytes)}"
        if self.containers:
            told += f", removed {self.containers} container{'' if self.containers == 1 else 's'}"
        return told


class Sweeper:
    """One sweep after the other."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        containers: SessionContainers,
        *,
        logger: SandboxLogger,
        clock: Clock = time.time_ns,
        looks: dict[Path, int],
    ) -> None:
        """Sweep *store*; *looks* holds the time of the last full look at each sessions directory."""
        self._looks = looks
        self._store = store
        self._containers = containers
        self._registry = registry
        self._logger = logger
        self._clock = clock

    def run(self, *, dry_run: bool = False, idle_seconds: float | None = None) -> SweepResult:
        """Sweep once."""
        result = SweepResult(dry_run=dry_run)
        now = self._clock()
        threshold_hours = None if idle_seconds is None else idle_seconds / 3600
        self._log("started", dry_run=dry_run, threshold_hours=threshold_hours)
        is_full = dry_run or idle_seconds is not None or self._is_look_due(now)
        if is_full and not dry_run:
            self._registry.rewind(now)
        for record in self._candidates(now, idle_seconds):
            self._judge(record, now, idle_seconds, result)
        if is_full:
            for session_id, reason in self._strange():
                self._skip(result, session_id, reason)
        if not dry_run:
            # All at once: an engine that does not answer is waited for once.
            result.containers = self._containers.sweep()
            if is_full:
                self._clear_leftovers(now)
                self._looks[self._store.root] = now
            self._store.empty_trash()
        self._log(
            "completed",
            dry_run=dry_run,
            deleted_count=len(result.deleted),
            skipped_count=len(result.skipped),
            error_count=len(result.errors),
            reclaimed_bytes=result.reclaimed_bytes,
            container_count=result.containers,
        )
        return result

    def remove_expired(self, now: int) -> bool:
        """Remove the sessions that have expired, and nothing else; whether there were any."""
        result = SweepResult()
        for record in self._candidates(now, None):
            self._judge(record, now, None, result)
        if result.deleted:
            self._containers.sweep()
        return bool(result.deleted)

    def _is_look_due(self, now: int) -> bool:
        last = self._looks.get(self._store.root)
        return last is None or not last <= now < last + LOOK_SECONDS * 10**9

    def _candidates(self, now: int, idle_seconds: float | None) -> Iterator[SessionRecord]:
        """Every session that may be over, once."""
        if idle_seconds is not None:
            after = None
            while page := self._registry.list(after, _PAGE):
                yield from page
                after = page[-1].session_id
            return
        seen: set[str] = set()
        last = None
        while page := self._registry.expired(now, _PAGE, last):
            # One that was used meanwhile, and is over all the same, comes again later.
            yield from (record for record in page if record.session_id not in seen)
            seen.update(record.session_id for record in page)
            last = page[-1]

    def _judge(
        self, record: SessionRecord, now: int, idle_seconds: float | None, result: SweepResult
    ) -> None:
        """Remove one session, if it is over and nobody uses it."""
        session_id = record.session_id
        try:
            with self._store.claim(session_id, wait_seconds=0) as claim:
                used = self._latest(claim, record, now)
                if used is None or not _is_over(used, now, idle_seconds):
                    return
                self._log("candidate", session_id=session_id, age_hours=(now - used.used_ns) / _HOUR_NS)
                if claim.is_in_use():
                    self._skip(result, session_id, "in_use")
                    return
                size = self._size(claim)
                if not result.dry_run:
                    claim.throw_away()
                    self._registry.remove(session_id)
            size = size if result.dry_run else claim.freed_bytes
        except BusyError:
            self._skip(result, session_id, "in_use")
        except CarrelError as error:
            self._fail(result, session_id, str(error))
        else:
            result.deleted.append(session_id)
            result.reclaimed_bytes += size
            if not result.dry_run:
                self._log("deleted", session_id=session_id, reclaimed_bytes=size)

    def _latest(self, claim: Claim, record: SessionRecord, now: int) -> SessionRecord | None:
        """The record as it is now, with the last use that the state tells of; `None` if it is gone."""
        current = self._registry.get(record.session_id)
        if current is None:
            return None
        latest = with_last_use(current, claim.last_use_ns(now), now)
        if latest.used_ns > current.used_ns:
            self._registry.touch(record.session_id, latest.used_ns)
        return latest

    def _size(self, claim: Claim) -> int:
        """What the session holds, as its ledger has it."""
        page = read_page(claim.ledger_fd)
        return 0 if page is None else page.disk_bytes

    def _strange(self) -> Iterator[tuple[str, str]]:
        """What has a name among the sessions but cannot be judged."""
        corrupt = dict(self._registry.corrupt())
        yield from corrupt.items()
        unknown = set(self._store.workspaces()) - self._registry.ids() - corrupt.keys()
        for name in sorted(unknown):
            with suppress(ValueError):
                yield require_session_id(name), "no_metadata"

    def _clear_leftovers(self, now: int) -> None:
        """Finish what killed processes began, but for the trash."""
        for session_id in self._store.leftover_states():
            with suppress(CarrelError), self._store.claim(session_id, wait_seconds=0) as claim:
                claim.scratch.sweep_drafts(now / 1e9)
        self._forget_missing()

    def _forget_missing(self) -> None:
        """Remove the records of sessions whose workspace is gone."""
        for session_id in self._registry.ids().difference(self._store.workspaces()):
            self._forget(session_id)

    def _forget(self, session_id: str) -> None:
        with suppress(CarrelError):
            require_session_id(session_id)
            self._forget_claimed(session_id)

    def _forget_claimed(self, session_id: str) -> None:
        with self._store.claim(session_id, wait_seconds=0) as claim:
            if claim.workspace() is None:
                self._registry.remove(session_id)

    def _skip(self, result: SweepResult, session_id: str, reason: str) -> None:
        result.skipped[session_id] = reason
        self._log("skipped", logging.WARNING, session_id=session_id, reason=reason)

    def _fail(self, result: SweepResult, session_id: str, problem: str) -> None:
        result.errors[session_id] = problem
        self._log("error", logging.ERROR, session_id=session_id, error=problem)

    def _log(self, event: str, level: int = logging.INFO, /, **fields: object) -> None:
        self._logger.log_event(f"session.prune.{event}", level, **fields)


def with_last_use(record: SessionRecord, found_ns: int, now_ns: int) -> SessionRecord:
    """The record with the later of two uses; one in the future counts as now."""
    return replace(record, used_ns=min(max(record.used_ns, found_ns), now_ns))


def _is_over(record: SessionRecord, now: int, idle_seconds: float | None) -> bool:
    if idle_seconds is None:
        return record.is_expired(now)
    return now - record.used_ns >= idle_seconds * 1e9


def _render_size(count: int) -> str:
    size = float(count)
    for unit in ("B", "KB", "MB"):
        if size < 1024:
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"
