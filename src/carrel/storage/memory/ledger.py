"""`MemoryLedger`: the account of a workspace that belongs to one process."""

from __future__ import annotations

from threading import RLock
from weakref import ref

from carrel.audit.event import Event
from carrel.errors import ClosedError
from carrel.fs.api import Files
from carrel.fs.handle import Handle
from carrel.fs.local.draft import Draft
from carrel.fs.nonblocking import may_block, require_may_block
from carrel.storage.quota import Quota
from carrel.storage.recorder import Recorder
from carrel.storage.reentry import ReentryGuard
from carrel.values import Limits, Usage


class MemoryLedger:
    """Counts in memory, from one look at what is there when something is first charged.

    Not covered: what other processes do to the same files is not counted; sessions have a `Ledger` for that.
    """

    def __init__(self, recorder: Recorder, quota: Quota, files: Files, limits: Limits) -> None:
        """Hold *quota*, beginning with what *files* hold; within *limits*, where nothing is held."""
        self._recorder = recorder
        self._quota = quota
        self._files = ref(files)
        self._most = limits.walk_entries
        self._turn = RLock()
        self._reentry = ReentryGuard()
        self._used: Usage | None = None
        self._next: Usage | None = None
        self._recorded: list[Event] = []

    def __enter__(self) -> MemoryLedger:
        self._reentry.require_none()
        if not self._turn.acquire(blocking=may_block()):
            require_may_block()
        self._reentry.begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        try:
            if kind is None:
                self._used = self._next or self._used
            else:
                for event in self._recorded:
                    self._recorder.take_back(event)
                if not issubclass(kind, Exception):
                    self._used = None
        finally:
            self._reentry.end()
            self._next = None
            self._recorded.clear()
            self._turn.release()

    def charge(self, more_bytes: int, more_entries: int, *, inode: int = 0) -> None:
        if not self._quota.counts:
            self._quota.require(0, 0, more_bytes, more_entries)
            return
        used = self.usage()
        self._quota.require(used.disk_bytes, used.entries, more_bytes, more_entries)
        # Never less than nothing, whatever the host removed.
        self._next = Usage(
            disk_bytes=max(0, used.disk_bytes + more_bytes), entries=max(0, used.entries + more_entries)
        )

    def record(
        self,
        operation: str,
        path: str,
        *,
        other: str | None = None,
        before_bytes: int | None = None,
        after_bytes: int | None = None,
    ) -> None:
        event = self._recorder.record(
            operation, path, other=other, before_bytes=before_bytes, after_bytes=after_bytes
        )
        self._recorded.append(event)

    def prepare(self) -> None:
        """It is written down already."""

    def flush_on_exit(self, *handles: Handle) -> None:
        """Nothing is flushed."""

    def flush(self, fd: int) -> None:
        """Nothing is flushed."""

    def mark_dirty(self) -> None:
        self._used = self._next = None

    def begin_direct(self) -> None:
        """Programs change the files by themselves from now on."""
        with self as ledger:
            ledger.charge(0, 0)
            ledger.mark_dirty()

    def end_direct(self) -> Usage:
        """They do no longer; count what there is."""
        return self.recount()

    def flush_files(self) -> None:
        """Nothing is flushed."""

    def defer_release(self) -> int:
        self.mark_dirty()
        return 0

    def release(self, mark: int, freed: Usage) -> None:
        """What was removed is not counted when the count begins anew."""

    def require_room(self, more_bytes: int, more_entries: int = 0, *, drafted_bytes: int = 0) -> None:
        with self._turn:
            used = self.usage() if self._quota.counts else Usage(disk_bytes=0, entries=0)
            self._quota.require(used.disk_bytes, used.entries, more_bytes, more_entries)

    def spool(self) -> Draft | None:
        """No place of its own."""
        return None

    def require_spool(self, size_bytes: int, *, coming_bytes: int = 0, replacing: bool) -> None:
        """Refuse an archive that cannot fit."""
        counts = self._quota.counts and not replacing
        self._quota.require_spool(self.usage().disk_bytes if counts else 0, size_bytes, coming_bytes)

    def usage(self) -> Usage:
        """What there is: as it is counted, or counted now where nothing is limited."""
        with self._turn:
            if not self._quota.counts:
                return self._measure(self._most)
            if self._used is None:
                self._used = self._measure(None)
            return self._used

    def _measure(self, limit: int | None) -> Usage:
        """Count; the files have this as their account, so they are not held, and both go together."""
        require_may_block()
        files = self._files()
        if files is None:
            raise ClosedError("workspace is closed")
        return files.measure(limit)

    def known_entries(self) -> int | None:
        """How many entries there are, if that was counted; others may have made more."""
        return None if self._used is None else self._used.entries

    def recount(self) -> Usage:
        """Count again what there is, whoever made it."""
        with self._turn:
            self._used = None
            return self.usage()

    def close(self) -> None:
        """There is nothing to let go of."""
