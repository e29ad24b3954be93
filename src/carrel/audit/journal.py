"""The append-only journal of one workspace, stored outside it.

A journal on disk is two series of files, one of changes and one of refusals, so that no number of refusals
displaces a change. A file that has reached its size is never written again: the next writer starts another,
and only the newest few are kept. All records of a journal are numbered in one sequence; each carries its
number, and the number and the digest of the record before it in its series. The latest record of each series
is stored in the file `head`, which is written right after the records of one change.

A journal that is given a flush function has each record on the disk before `record` returns: first the names
of the files, then the record, then the head. So the head never names a record that a power loss took.
"""

from __future__ import annotations

import errno
import fcntl
import heapq
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from threading import RLock
from typing import Protocol

from carrel.audit.chain import MAX_BATCH_RECORDS, BrokenError, Head, JournalCheck
from carrel.audit.event import Event
from carrel.audit.journal_files import Flush, HeadFile, RecordFiles, no_flush, read_lines, read_records
from carrel.errors import ClosedError, RotatedError
from carrel.values import MIB

FILE_BYTES = 4 * MIB
"""Size in bytes at which a file of changes is full."""
REFUSAL_FILE_BYTES = 1 * MIB
"""Size in bytes at which a file of refusals is full."""

_BATCH_LINE = 2
"""Line of the head file that holds the number of the last record of a batch."""
_WAIT_SECONDS = 5.0
"""Seconds to wait for other writers; one record takes microseconds."""
_PAUSE_SECONDS = 0.000_05


class Journal(Protocol):
    """Stores the events of a workspace."""

    def record(self, *events: Event) -> None:
        """Append *events* in this order."""
        ...

    def events(self, since: int = 0, *, refusals: bool = True) -> Iterator[Event]:
        """Return the events after the sequence number *since*, in order; without *refusals*, only changes.

        Raises:
            RotatedError: Some of them are no longer kept. `since=0` returns all that are.
        """
        ...

    def position(self) -> int:
        """Return the sequence number of the latest event, or 0."""
        ...

    def close(self) -> None:
        """Release the resources of the journal."""
        ...


class MemoryJournal:
    """The latest events, for a workspace that keeps none on disk."""

    def __init__(self, keep: int = 10_000) -> None:
        """Keep up to *keep* changes, and as many refusals."""
        self._changes: deque[tuple[int, Event]] = deque(maxlen=keep)
        self._refusals: deque[tuple[int, Event]] = deque(maxlen=keep)
        self._dropped = {False: 0, True: 0}
        self._sequence = 0

    def record(self, *events: Event) -> None:
        for event in events:
            self._sequence += 1
            series = self._refusals if event.is_refusal else self._changes
            if len(series) == series.maxlen:
                self._dropped[event.is_refusal] = series[0][0]
            series.append((self._sequence, event))

    def events(self, since: int = 0, *, refusals: bool = True) -> Iterator[Event]:
        dropped = max(self._dropped.values()) if refusals else self._dropped[False]
        if 0 < since < dropped:
            raise _rotated(since)
        kept = sorted((*self._changes, *(self._refusals if refusals else ())), key=lambda one: one[0])
        return (replace(event, sequence=sequence) for sequence, event in kept if sequence > since)

    def position(self) -> int:
        return self._sequence

    def close(self) -> None:
        self._changes.clear()
        self._refusals.clear()


class FileJournal:
    """A journal in files of lines. Each record is one `write`, under a lock that excludes other writers.

    A record begins with its line break, so a record that was torn by a crash or a full disk damages no other.
    """

    def __init__(
        self,
        directory: int,
        *,
        file_bytes: int = FILE_BYTES,
        refusal_file_bytes: int = REFUSAL_FILE_BYTES,
        flush: Flush = no_flush,
        flush_data: Flush = no_flush,
        before_reading: Callable[[], None] | None = None,
    ) -> None:
        """Keep the journal in the open directory *directory* and take ownership of its descriptor.

        Records are flushed with *flush*, and the head file, whose size is constant, with *flush_data*.
        *before_reading* is called before events are read, so that counted repeats are recorded.
        """
        self._before_reading = before_reading
        self._flush = flush
        self._flush_data = flush_data
        self._directory = directory
        self._changes = RecordFiles("journal", file_bytes, flush)
        self._refusals = RecordFiles("refusals", refusal_file_bytes, flush)
        self._series = (self._changes, self._refusals)
        self._heads = HeadFile()
        self._process = os.getpid()
        # Reentrant, because a signal handler of the same thread may read or record.
        self._lock = RLock()
        self._is_recording = False
        self._queue: deque[Event] = deque()
        """Events to write, including those of a signal handler that interrupted another record."""

    def record(self, *events: Event) -> None:
        with self._lock:
            self._queue.extend(events)
            if self._is_recording:
                return
            self._is_recording = True
            try:
                while self._queue:
                    self._lock_directory()
                    try:
                        self._append_batch()
                    finally:
                        fcntl.flock(self._directory, fcntl.LOCK_UN)
            finally:
                self._is_recording = False
                self._queue.clear()

    def _append_batch(self) -> None:
        changes, refusals = self._changes, self._refusals
        # The first record opens both series, so that no later one searches for the files of the other.
        changes.prepare(self._directory, create=True)
        refusals.prepare(self._directory, create=True)
        # Before the record, so that where there is no room for the head there is no record without one.
        is_new = self._heads.prepare(self._directory)
        if is_new or changes.is_new or refusals.is_new:
            self._flush(self._directory)
            changes.is_new = refusals.is_new = False
        events = [self._queue.popleft() for _ in range(min(len(self._queue), MAX_BATCH_RECORDS))]
        start = sequence = max(changes.last.sequence, refusals.last.sequence)
        if len(events) > 1:
            self._heads.write(_BATCH_LINE, Head(sequence=sequence + len(events)))
            self._flush_data(self._heads.fd)
        for event in events:
            sequence += 1
            series = refusals if event.is_refusal else changes
            series.append(self._directory, event, sequence)
        for series in self._series:
            if series.last.sequence > start:
                self._flush(series.fd)
        for line, series in enumerate(self._series):
            if series.last.sequence > start:
                self._heads.write(line, series.last)
        self._flush_data(self._heads.fd)

    def _lock_directory(self) -> None:
        """Wait for the lock that excludes other processes that write."""
        self._require_open()
        deadline = 0.0
        while True:
            try:
                fcntl.flock(self._directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                now = time.monotonic()
                deadline = deadline or now + _WAIT_SECONDS
                if now >= deadline:
                    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY)) from None
                time.sleep(_PAUSE_SECONDS)
            else:
                return

    def _require_open(self) -> None:
        if self._directory < 0:
            raise ClosedError("the journal is closed")
        if self._process != os.getpid():
            # A forked child and its parent would share the lock on a shared descriptor.
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._directory)
            os.close(self._directory)
            self._directory, self._process = fd, os.getpid()

    def position(self) -> int:
        with self._lock:
            self._require_open()
            self._changes.prepare(self._directory)
            self._refusals.prepare(self._directory)
            return max(self._changes.last.sequence, self._refusals.last.sequence)

    def events(self, since: int = 0, *, refusals: bool = True) -> Iterator[Event]:
        if self._before_reading is not None:
            self._before_reading()
        # Later records are left to the next reader: the two series are not read at the same moment.
        with self._lock:
            self._require_open()
            until = max(series.newest(self._directory).sequence for series in self._series)
            wanted = self._series if refusals else (self._changes,)
            numbers = [series.numbers(self._directory) for series in wanted]
            for series, kept in zip(wanted, numbers, strict=True):
                if kept and 0 < since < series.last_dropped(self._directory, kept[0]):
                    raise _rotated(since)
        found = [self._read(series, kept, since, until) for series, kept in zip(wanted, numbers, strict=True)]
        return heapq.merge(*found, key=lambda event: event.sequence)

    def _read(self, series: RecordFiles, numbers: list[int], since: int, until: int) -> Iterator[Event]:
        """Read the events of these files. A missing file is an error unless nothing before it was known."""
        for number, following in zip(numbers, [*numbers[1:], None], strict=False):
            try:
                with self._lock:
                    self._require_open()
                    if following is not None and 0 < series.first(self._directory, following) <= since:
                        continue
                    file = os.fdopen(series.open(self._directory, number, os.O_RDONLY), "rb")
            except FileNotFoundError:
                if since > 0:
                    raise _rotated(since) from None
                continue
            with file:
                for line in read_lines(file, number, since):
                    if line.event.sequence > until:
                        return
                    if line.event.sequence > since:
                        since = line.event.sequence
                        yield line.event

    def verify(self) -> JournalCheck:
        """Check that all records that are kept are as they were written, and none is missing.

        Raises:
            OSError: The journal cannot be read, or other writers held the lock for too long.
        """
        with ExitStack() as opened:
            with self._lock:
                self._lock_directory()
                try:
                    # Records are read without the lock: writers do not wait, and dropped files stay open.
                    *heads, until = HeadFile.read(self._directory)
                    found = [
                        (series.chain(self._directory), series.snapshot(self._directory, opened))
                        for series in self._series
                    ]
                finally:
                    fcntl.flock(self._directory, fcntl.LOCK_UN)
            broken: list[BrokenError] = []
            for (chain, files), head in zip(found, heads, strict=True):
                try:
                    for number, file, size in files:
                        chain.follow(read_records(file, number, size))
                    chain.require_end(head, until.sequence)
                except BrokenError as error:
                    broken.append(error)
        first = min(broken, key=lambda error: error.sequence, default=None)
        (changes, _), (refusals, _) = found
        return JournalCheck(
            records=changes.records + refusals.records,
            unchained=changes.unchained + refusals.unchained,
            changes=changes.last,
            refusals=refusals.last,
            broken=None if first is None else first.sequence,
            problem=None if first is None else first.problem,
        )

    def close(self) -> None:
        with self._lock:
            for series in self._series:
                series.close()
            self._heads.close()
            if self._directory >= 0:
                os.close(self._directory)
            self._directory = -1


def _rotated(since: int) -> RotatedError:
    return RotatedError(f"the journal no longer holds what came right after {since}; begin again from 0")
