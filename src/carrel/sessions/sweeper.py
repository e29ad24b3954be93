"""`Sweeper`: remove expired sessions, and what killed processes left behind.

Each session is claimed on its own, and only while it is moved out of the way, so other callers do not wait.
A sweeper that is killed at any point leaves nothing that a later one does not finish: a session is deleted
once its workspace is in the trash, and its record and state are removed with it or by the next full sweep.

Expired sessions are found by an index, and the trash holds only what is being removed, so a sweep without
work costs the same however many sessions there are. Everything else takes a full sweep, which looks at all
sessions: uses in the future, corrupt records, directories without a record, and records, states and drafts
that killed processes left. The first sweep of a process is full, the next one when `FULL_SWEEP_SECONDS` have
passed or the clock was set back, and every dry run and every sweep with an idle time.
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
from carrel.storage.local.ledger_page import read_page
from carrel.storage.local.store import Claim, Store
from carrel.storage.session_record import SessionRecord
from carrel.values import Clock

FULL_SWEEP_SECONDS = 3_600
"""Seconds between two full sweeps of a directory."""

_PAGE = 100
"""Number of records that are read at once."""
_HOUR_NS = 3_600 * 10**9


@dataclass(slots=True, kw_only=True)
class SweepResult:
    """Result of a sweep; of a dry run, what it would do."""

    dry_run: bool = False
    deleted: list[str] = field(default_factory=list)
    """Ids of the sessions that were removed."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Ids of the sessions that were skipped, each with the reason."""
    errors: dict[str, str] = field(default_factory=dict)
    """Ids of the sessions that could not be removed, each with the problem."""
    reclaimed_bytes: int = 0
    """Sum of the sizes of the removed files."""
    containers: int = 0
    """Number of removed containers, of these sessions and of killed processes."""

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
        text = f"{verb} {sessions}{note}, reclaimed {_render_size(self.reclaimed_bytes)}"
        if self.containers:
            text += f", removed {self.containers} container{'' if self.containers == 1 else 's'}"
        return text


class Sweeper:
    """Sweeps the sessions of one directory."""

    def __init__(
        self,
        store: Store,
        registry: Registry,
        containers: SessionContainers,
        *,
        logger: SandboxLogger,
        clock: Clock = time.time_ns,
        full_sweeps: dict[Path, int],
    ) -> None:
        """Sweep *store*; *full_sweeps* holds the time of the last full sweep of each sessions directory."""
        self._full_sweeps = full_sweeps
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
        is_full = dry_run or idle_seconds is not None or self._is_full_sweep_due(now)
        if is_full and not dry_run:
            self._registry.rewind(now)
        for record in self._candidates(now, idle_seconds):
            self._sweep_session(record, now, idle_seconds, result)
        if is_full:
            for session_id, reason in self._unknown():
                self._skip(result, session_id, reason)
        if not dry_run:
            # All at once, so that an engine that does not answer is waited for only once.
            result.containers = self._containers.sweep()
            if is_full:
                self._clear_leftovers(now)
                self._full_sweeps[self._store.root] = now
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
        """Remove expired sessions and nothing else; return whether there were any."""
        result = SweepResult()
        for record in self._candidates(now, None):
            self._sweep_session(record, now, None, result)
        if result.deleted:
            self._containers.sweep()
        return bool(result.deleted)

    def _is_full_sweep_due(self, now: int) -> bool:
        last = self._full_sweeps.get(self._store.root)
        return last is None or not last <= now < last + FULL_SWEEP_SECONDS * 10**9

    def _candidates(self, now: int, idle_seconds: float | None) -> Iterator[SessionRecord]:
        """Yield every session that may be expired, once."""
        if idle_seconds is not None:
            after = None
            while page := self._registry.list(after, _PAGE):
                yield from page
                after = page[-1].session_id
            return
        seen: set[str] = set()
        last = None
        while page := self._registry.expired(now, _PAGE, last):
            # A session that was used in the meantime and has expired again comes a second time.
            yield from (record for record in page if record.session_id not in seen)
            seen.update(record.session_id for record in page)
            last = page[-1]

    def _sweep_session(
        self, record: SessionRecord, now: int, idle_seconds: float | None, result: SweepResult
    ) -> None:
        """Remove one session if it has expired and is not in use."""
        session_id = record.session_id
        try:
            with self._store.claim(session_id, wait_seconds=0) as claim:
                latest = self._latest(claim, record, now)
                if latest is None or not _has_expired(latest, now, idle_seconds):
                    return
                self._log("candidate", session_id=session_id, age_hours=(now - latest.used_ns) / _HOUR_NS)
                if claim.is_in_use():
                    self._skip(result, session_id, "in_use")
                    return
                size = self._size(claim)
                if not result.dry_run:
                    claim.trash_workspace()
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
        """Return the current record with the last use that the state shows; `None` if the record is gone."""
        current = self._registry.get(record.session_id)
        if current is None:
            return None
        latest = with_last_use(current, claim.last_use_ns(now), now)
        if latest.used_ns > current.used_ns:
            self._registry.touch(record.session_id, latest.used_ns)
        return latest

    def _size(self, claim: Claim) -> int:
        """Return the bytes that the ledger of the session shows."""
        page = read_page(claim.ledger_fd)
        return 0 if page is None else page.disk_bytes

    def _unknown(self) -> Iterator[tuple[str, str]]:
        """Yield the sessions whose record is corrupt or missing, with the problem."""
        corrupt = dict(self._registry.corrupt())
        yield from corrupt.items()
        unknown = set(self._store.workspaces()) - self._registry.ids() - corrupt.keys()
        for name in sorted(unknown):
            with suppress(ValueError):
                yield require_session_id(name), "no_metadata"

    def _clear_leftovers(self, now: int) -> None:
        """Remove the states, drafts and records that killed processes left."""
        for session_id in self._store.leftover_states():
            with suppress(CarrelError), self._store.claim(session_id, wait_seconds=0) as claim:
                claim.scratch.sweep_drafts(now / 1e9)
        for session_id in self._registry.ids().difference(self._store.workspaces()):
            with suppress(CarrelError):
                self._remove_record(require_session_id(session_id))

    def _remove_record(self, session_id: str) -> None:
        """Remove the record of a session if its workspace is gone."""
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
    """Return the record with the later of two uses; one in the future counts as now."""
    return replace(record, used_ns=min(max(record.used_ns, found_ns), now_ns))


def _has_expired(record: SessionRecord, now: int, idle_seconds: float | None) -> bool:
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
