"""`MemoryLedger`: the account of a workspace that belongs to one process."""

from __future__ import annotations

from threading import RLock
from typing import Unpack
from weakref import ref

from carrel.audit.event import Event
from carrel.errors import ClosedError
from carrel.fs.api import ChangeDetails, Files
from carrel.fs.handle import Handle
from carrel.fs.local.draft import Draft
from carrel.fs.nonblocking import may_block, require_may_block
from carrel.storage.quota import Quota
from carrel.storage.recorder import Recorder
from carrel.storage.reentry import ReentryGuard
from carrel.values import Limits, Usage


class MemoryLedger:
    """Keeps the usage in memory; the files are counted once, at the first charge.

    Not covered: changes by other processes are not counted; sessions have a `FileLedger` for that.
    """

    def __init__(self, recorder: Recorder, quota: Quota, files: Files, limits: Limits) -> None:
        """Enforce *quota* on *files*; without a quota, a count stops at the walk limit of *limits*."""
        self._recorder = recorder
        self._quota = quota
        self._files = ref(files)
        self._max_entries = limits.walk_entries
        self._lock = RLock()
        self._reentry = ReentryGuard()
        self._used: Usage | None = None
        self._next: Usage | None = None
        self._recorded: list[Event] = []

    def __enter__(self) -> MemoryLedger:
        self._reentry.require_none()
        if not self._lock.acquire(blocking=may_block()):
            require_may_block()
        self._reentry.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if kind is None:
                self._used = self._next or self._used
            else:
                for event in self._recorded:
                    self._recorder.record_undone(event)
                if not issubclass(kind, Exception):
                    self._used = None
        finally:
            self._reentry.end()
            self._next = None
            self._recorded.clear()
            self._lock.release()

    def charge(self, more_bytes: int, more_entries: int, *, inode: int = 0) -> None:
        if not self._quota.counts:
            self._quota.require(0, 0, more_bytes, more_entries)
            return
        used = self.usage()
        self._quota.require(used.disk_bytes, used.entries, more_bytes, more_entries)
        # Never less than 0, even if files were removed on the host.
        self._next = Usage(
            disk_bytes=max(0, used.disk_bytes + more_bytes), entries=max(0, used.entries + more_entries)
        )

    def record(self, operation: str, path: str, **details: Unpack[ChangeDetails]) -> None:
        event = self._recorder.event(operation, path, **details)
        self._recorder.write(event)
        self._recorded.append(event)

    def prepare(self) -> None:
        """Do nothing: events are written at once."""

    def flush_on_exit(self, *handles: Handle) -> None:
        """Do nothing: changes need not survive a power loss."""

    def flush(self, fd: int) -> None:
        """Do nothing: changes need not survive a power loss."""

    def mark_dirty(self) -> None:
        self._used = self._next = None

    def begin_unmediated(self) -> None:
        """Mark that programs change files without the gate."""
        with self as ledger:
            ledger.charge(0, 0)
            ledger.mark_dirty()

    def end_unmediated(self) -> Usage:
        """Count the files."""
        return self.recount()

    def flush_unmediated(self) -> None:
        """Do nothing: changes need not survive a power loss."""

    def defer_release(self) -> int:
        self.mark_dirty()
        return 0

    def release(self, mark: int, freed: Usage) -> None:
        """Do nothing: `defer_release` leaves it to the next count."""

    def require_room(self, more_bytes: int, more_entries: int = 0, *, drafted_bytes: int = 0) -> None:
        with self._lock:
            used = self.usage() if self._quota.counts else Usage(disk_bytes=0, entries=0)
            self._quota.require(used.disk_bytes, used.entries, more_bytes, more_entries)

    def spool(self) -> Draft | None:
        """Return `None`: an archive is spooled in a temporary file."""
        return None

    def require_spool(self, size_bytes: int, *, coming_bytes: int = 0, replacing: bool) -> None:
        """Refuse an archive that cannot fit."""
        counts = self._quota.counts and not replacing
        self._quota.require_spool(self.usage().disk_bytes if counts else 0, size_bytes, coming_bytes)

    def usage(self) -> Usage:
        """Return the usage; without a quota, the files are counted now."""
        with self._lock:
            if not self._quota.counts:
                return self._measure(self._max_entries)
            if self._used is None:
                self._used = self._measure(None)
            return self._used

    def _measure(self, limit: int | None) -> Usage:
        """Count the files. They refer to this as their account, so the reference back is weak."""
        require_may_block()
        files = self._files()
        if files is None:
            raise ClosedError("workspace is closed")
        return files.measure(limit)

    def known_entries(self) -> int | None:
        """Return the number of entries, or `None` if they were not counted; other processes may add more."""
        return None if self._used is None else self._used.entries

    def recount(self) -> Usage:
        """Count the files."""
        with self._lock:
            self._used = None
            return self.usage()

    def close(self) -> None:
        """Do nothing: no resources are held."""
