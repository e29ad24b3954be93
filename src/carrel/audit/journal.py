"""The append-only journal of one workspace, stored outside it.

A journal on disk is two rows of files, one of changes and one of refusals, so that no number of refusals
takes the place of a change. A file that has reached its size is never written again: whoever comes next
begins another, and only the newest few are kept. All records of a journal are numbered in one sequence; each
carries its number, and the number and the digest of the one before it in its row. The latest of each row is
stored in the file `head`, which is written right after the records of one change.

Who is given a way to flush has each record on the disk before `record` returns: first the names of the files,
then the record, then the head, which therefore never tells of a record that a power loss took.
"""

from __future__ import annotations

import errno
import fcntl
import heapq
import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from threading import RLock
from typing import BinaryIO, Protocol

from carrel.audit.chain import TOGETHER, BrokenError, Chain, Head, JournalCheck
from carrel.audit.event import Event, JournalLine, digest_of
from carrel.errors import ClosedError, RotatedError
from carrel.values import MIB

FILE_BYTES = 4 * MIB
"""A file of changes that has reached this size is full."""
REFUSAL_FILE_BYTES = 1 * MIB
"""A file of refusals that has reached this size is full."""
KEPT_FILES = 3
"""Of each row."""

_HEADS = "head"
"""The file of the latest records."""
_HEAD = re.compile(rb"([0-9]{20}) ([A-Za-z0-9_=-]{0,32}) *\n")
_HEAD_BYTES = 54
_UNTIL = 2
"""The line of the file of heads that tells how far records are being written together."""
_OFFSET_BITS = 32
"""Of the numbers of older records: the number of their file, and the offset of their end in it."""
_TAIL_BYTES = 16 * 1024
"""More than the longest record has."""
_WAIT_SECONDS = 5.0
"""How long to wait for others who write; one record takes microseconds."""
_PAUSE_SECONDS = 0.000_05


Flush = Callable[[int], None]
"""Flushes an open file or directory."""


def _leave(fd: int) -> None:
    """Leave it to the host when it writes that to the disk."""


class Journal(Protocol):
    """Where events go."""

    def record(self, event: Event) -> None:
        """Add one event."""
        ...

    def events(self, since: int = 0, *, refusals: bool = True) -> Iterator[Event]:
        """The events after the one with the sequence number *since*, in order; changes alone if so asked.

        Raises:
            RotatedError: Some of them are no longer kept; those from 0 on are what there is.
        """
        ...

    def position(self) -> int:
        """The sequence number of the latest event, or 0."""
        ...

    def close(self) -> None:
        """Release what is held open."""
        ...


class MemoryJournal:
    """The latest events, for a workspace that keeps none on disk."""

    def __init__(self, keep: int = 10_000) -> None:
        """Keep so many changes, and so many refusals."""
        self._changes: deque[tuple[int, Event]] = deque(maxlen=keep)
        self._refusals: deque[tuple[int, Event]] = deque(maxlen=keep)
        self._dropped = {False: 0, True: 0}
        self._sequence = 0

    def record(self, event: Event) -> None:
        self._sequence += 1
        row = self._refusals if event.is_refusal else self._changes
        if len(row) == row.maxlen:
            self._dropped[event.is_refusal] = row[0][0]
        row.append((self._sequence, event))

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
    """Files of lines; a record is written by one `write`, while all other writers wait.

    A record begins with its line end, so one that was torn by a crash or a full disk spoils no other.
    """

    def __init__(
        self,
        directory: int,
        *,
        file_bytes: int = FILE_BYTES,
        refusal_file_bytes: int = REFUSAL_FILE_BYTES,
        flush: Flush = _leave,
        flush_data: Flush = _leave,
        before_reading: Callable[[], None] | None = None,
    ) -> None:
        """Keep the journal in the open directory *directory*, whose descriptor this takes over.

        Records are flushed by *flush*, and the file of the heads, which keeps its size, by *flush_data*.
        *before_reading* is called before events are read, so that counted repeats are recorded.
        """
        self._before_reading = before_reading
        self._flush = flush
        self._flush_data = flush_data
        self._directory = directory
        self._changes = _Row("journal", file_bytes, flush)
        self._refusals = _Row("refusals", refusal_file_bytes, flush)
        self._heads = _Heads()
        self._process = os.getpid()
        # One that its own thread may take again, as a signal handler does that looks at the journal.
        self._lock = RLock()
        self._is_recording = False
        self._late: deque[Event] = deque()
        """What a signal handler recorded in the middle of another record."""

    def record(self, *events: Event) -> None:
        with self._lock:
            self._late.extend(events)
            if self._is_recording:
                return
            self._is_recording = True
            try:
                while self._late:
                    with self._alone():
                        self._append_late()
            finally:
                self._is_recording = False
                self._late.clear()

    def _append_late(self) -> None:
        rows = (self._changes, self._refusals)
        for row in rows:
            # Both are opened by the first record, so that no later one looks for the files of the other.
            row.prepare(self._directory, create=True)
        # Before the record, so that where there is no room for the head there is none without it.
        is_new = self._heads.prepare(self._directory)
        if is_new or any(row.is_new for row in rows):
            self._flush(self._directory)
            for row in rows:
                row.is_new = False
        events = [self._late.popleft() for _ in range(min(len(self._late), TOGETHER))]
        sequence = max(row.last.sequence for row in rows)
        if len(events) > 1:
            self._heads.write(_UNTIL, Head(sequence=sequence + len(events)))
            self._flush_data(self._heads.fd)
        for event in events:
            sequence += 1
            row = self._refusals if event.is_refusal else self._changes
            row.append(self._directory, event, sequence)
        used = [row for row in rows if row.last.sequence > sequence - len(events)]
        for row in used:
            self._flush(row.fd)
        for row in used:
            self._heads.write(rows.index(row), row.last)
        self._flush_data(self._heads.fd)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Let no other process write."""
        self._require_open()
        deadline = 0.0
        while True:
            try:
                fcntl.flock(self._directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                now = time.monotonic()
                deadline = deadline or now + _WAIT_SECONDS
                if now >= deadline:
                    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY)) from None
                time.sleep(_PAUSE_SECONDS)
        try:
            yield
        finally:
            fcntl.flock(self._directory, fcntl.LOCK_UN)

    def _require_open(self) -> None:
        if self._directory < 0:
            raise ClosedError("the journal is closed")
        if self._process != os.getpid():
            # A lock on what a forked child shares with its parent keeps neither out.
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._directory)
            os.close(self._directory)
            self._directory, self._process = fd, os.getpid()

    def position(self) -> int:
        with self._lock:
            self._require_open()
            rows = (self._changes, self._refusals)
            for row in rows:
                row.prepare(self._directory)
            return max(row.last.sequence for row in rows)

    def events(self, since: int = 0, *, refusals: bool = True) -> Iterator[Event]:
        if self._before_reading is not None:
            self._before_reading()
        # What is recorded from now on is for the next reader: the rows are not read at the same moment.
        with self._lock:
            self._require_open()
            until = max(row.newest(self._directory).sequence for row in (self._changes, self._refusals))
            rows = (self._changes, self._refusals) if refusals else (self._changes,)
            numbers = [row.numbers(self._directory) for row in rows]
            for row, kept in zip(rows, numbers, strict=True):
                if kept and 0 < since < row.dropped(self._directory, kept[0]):
                    raise _rotated(since)
        found = [self._read(row, kept, since, until) for row, kept in zip(rows, numbers, strict=True)]
        return heapq.merge(*found, key=lambda event: event.sequence)

    def _read(self, row: _Row, numbers: list[int], since: int, until: int) -> Iterator[Event]:
        """The events in these files; one that is gone is told, unless nothing was read or known before it."""
        for number, following in zip(numbers, [*numbers[1:], None], strict=False):
            try:
                with self._lock:
                    self._require_open()
                    if following is not None and 0 < row.first(self._directory, following) <= since:
                        continue
                    file = os.fdopen(row.open(self._directory, number, os.O_RDONLY), "rb")
            except FileNotFoundError:
                if since > 0:
                    raise _rotated(since) from None
                continue
            with file:
                for line in _lines(file, number, since):
                    if line.event.sequence > until:
                        return
                    if line.event.sequence > since:
                        since = line.event.sequence
                        yield line.event

    def verify(self) -> JournalCheck:
        """Check that all records that are kept are as they were written, and none is missing.

        Raises:
            OSError: The journal cannot be read, or others kept writing for too long.
        """
        with ExitStack() as opened:
            with self._lock, self._alone():
                # Read afterwards: those who write do not wait, and a file that goes meanwhile stays open.
                *heads, until = _Heads.read(self._directory)
                rows = [
                    (row.chain(self._directory), row.snapshot(self._directory, opened))
                    for row in (self._changes, self._refusals)
                ]
            broken: list[BrokenError] = []
            for (chain, files), head in zip(rows, heads, strict=True):
                try:
                    for number, file, size in files:
                        chain.follow(_texts(file, number, size))
                    chain.require_end(head, until.sequence)
                except BrokenError as error:
                    broken.append(error)
        first = min(broken, key=lambda error: error.sequence, default=None)
        (changes, _), (refusals, _) = rows
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
            for row in (self._changes, self._refusals):
                row.close()
            self._heads.close()
            if self._directory >= 0:
                os.close(self._directory)
            self._directory = -1


class _Heads:
    """The file that tells the latest record of each row, one line for each.

    Before several records are written together, a third line tells the number of the last of them.
    """

    def __init__(self) -> None:
        self.fd = -1

    def prepare(self, directory: int) -> bool:
        """Have the file, with room for both lines; whether it is new."""
        if self.fd >= 0:
            return False
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(_HEADS, flags, 0o600, dir_fd=directory)
        try:
            is_new = os.lseek(fd, 0, os.SEEK_END) < 2 * _HEAD_BYTES
            if is_new:
                os.pwrite(fd, 2 * _head_line(Head()), 0)
        except BaseException:
            os.close(fd)
            raise
        self.fd = fd
        return is_new

    def write(self, row: int, head: Head) -> None:
        """Tell the latest record of the row of that number."""
        os.pwrite(self.fd, _head_line(head), row * _HEAD_BYTES)

    @staticmethod
    def read(directory: int) -> list[Head]:
        """The latest record of each row, as the file tells; number -1 where it does not."""
        text = b""
        with suppress(FileNotFoundError):
            fd = os.open(_HEADS, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
            try:
                text = os.pread(fd, 3 * _HEAD_BYTES, 0)
            finally:
                os.close(fd)
        found = [_HEAD.fullmatch(text, row * _HEAD_BYTES, (row + 1) * _HEAD_BYTES) for row in range(3)]
        return [
            Head(sequence=-1)
            if match is None
            else Head(sequence=int(match[1]), digest=match[2].decode("ascii"))
            for match in found
        ]

    def close(self) -> None:
        """Release the file."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1


def _head_line(head: Head) -> bytes:
    return b"%020d %-32s\n" % (head.sequence, head.digest.encode("ascii"))


class _Row:
    """Files of one kind of records, one after the other."""

    def __init__(self, name: str, file_bytes: int, flush: Flush) -> None:
        self._name = name
        self._pattern = re.compile(rf"{name}\.([0-9]{{1,9}})")
        self._file_bytes = file_bytes
        self._flush = flush
        self.fd = -1
        self._number = 0
        self._end = -1
        """How long the file was when `last` was its latest record."""
        self.last = Head()
        self.is_new = False
        """Whether the name of the file is perhaps not flushed."""

    def prepare(self, directory: int, *, create: bool = False) -> None:
        """Know the latest record, whoever wrote it; make the first file if so asked."""
        if self.fd < 0:
            numbers = self.numbers(directory)
            if not numbers and not create:
                return
            self._begin(directory, numbers[-1] if numbers else 0)
        size = self._size()
        if size >= self._file_bytes:
            newest = max(self.numbers(directory), default=self._number)
            if newest > self._number:
                self._begin(directory, newest)
                size = self._size()
        if size != self._end:
            self.last, self._end = self.newest(directory), size
            # A writer flushes the name of the file before its first record.
            self.is_new = size == 0

    def append(self, directory: int, event: Event, sequence: int) -> None:
        """Write one record after the latest one; the row was prepared."""
        if self._size() >= self._file_bytes:
            self._flush(self.fd)
            self._begin(directory, self._number + 1)
            self._flush(directory)
            self.is_new = False
            for number in self.numbers(directory)[:-KEPT_FILES]:
                with suppress(FileNotFoundError):
                    os.unlink(f"{self._name}.{number}", dir_fd=directory)
        line = event.render(sequence, self.last.sequence, self.last.digest)
        self._end = -1
        _write(self.fd, b"\n" + line)
        self.last, self._end = Head(sequence=sequence, digest=digest_of(line)), self._size()

    def chain(self, directory: int) -> Chain:
        """The chain of the row, before its first record that is kept."""
        numbers = self.numbers(directory)
        # Files are dropped only where there are so many.
        return Chain(is_from_start=len(numbers) < KEPT_FILES or numbers[0] == 0)

    def snapshot(self, directory: int, opened: ExitStack) -> list[tuple[int, BinaryIO, int]]:
        """The files as they are now, kept open by *opened*: their numbers, and how long each is."""
        files: list[tuple[int, BinaryIO, int]] = []
        for number in self.numbers(directory):
            file = opened.enter_context(os.fdopen(self.open(directory, number, os.O_RDONLY), "rb"))
            files.append((number, file, os.fstat(file.fileno()).st_size))
        return files

    def newest(self, directory: int) -> Head:
        """The latest record that is whole, found in the files."""
        for number in reversed(self.numbers(directory)):
            with (
                suppress(FileNotFoundError),
                os.fdopen(self.open(directory, number, os.O_RDONLY), "rb") as file,
            ):
                if (found := _newest(file, number)) is not None:
                    return found
        return Head()

    def first(self, directory: int, number: int) -> int:
        """The sequence number of the first record of a file, or 0."""
        with suppress(FileNotFoundError), os.fdopen(self.open(directory, number, os.O_RDONLY), "rb") as file:
            for line in _lines(file, number, 0):
                return line.event.sequence
        return 0

    def dropped(self, directory: int, number: int) -> int:
        """The sequence number of the record before those in the oldest file, *number*; 0 if there is none."""
        if number == 0:
            return 0
        with suppress(FileNotFoundError), os.fdopen(self.open(directory, number, os.O_RDONLY), "rb") as file:
            for line in _lines(file, number, 0):
                return number << _OFFSET_BITS if line.previous is None else line.previous
        return 0

    def numbers(self, directory: int) -> list[int]:
        """The numbers of the files that there are, in order."""
        if directory < 0:
            raise ClosedError("the journal is closed")
        # A descriptor of its own: one that a forked child shares would give each of the two a part.
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
        try:
            found = [self._pattern.fullmatch(name) for name in os.listdir(fd)]
        finally:
            os.close(fd)
        return sorted(int(match[1]) for match in found if match)

    def open(self, directory: int, number: int, flags: int) -> int:
        """A descriptor of one file."""
        if directory < 0:
            raise ClosedError("the journal is closed")
        name = f"{self._name}.{number}"
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory)

    def _begin(self, directory: int, number: int) -> None:
        """Go on in the file *number*, making it if it is missing."""
        fd = self.open(directory, number, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.close()
        self.fd, self._number = fd, number

    def _size(self) -> int:
        return os.lseek(self.fd, 0, os.SEEK_END)

    def close(self) -> None:
        """Release the file that is written."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = self._end = -1


def _lines(file: BinaryIO, number: int, since: int) -> Iterator[JournalLine]:
    """The records of a file, from the one after *since* on or some before it."""
    start = file.seek(_place(file, number, since) if since > 0 else 0)
    for _, line in _texts(file, number, None, start):
        yield line


def _texts(
    file: BinaryIO, number: int, end: int | None, start: int = 0
) -> Iterator[tuple[bytes, JournalLine]]:
    """The records of a file from where it is, up to *end*, each as it is written and as it is read."""
    for text in file:
        record = text.rstrip(b"\n")
        stop = start + len(record)
        if end is not None and stop > end:
            return
        line = JournalLine.parse(record, number << _OFFSET_BITS | stop) if record else None
        start += len(text)
        if line is not None:
            yield record, line


def _place(file: BinaryIO, number: int, since: int) -> int:
    """Where a line begins that is not far before the first one after *since*."""
    low, high = 0, file.seek(0, os.SEEK_END)
    while high - low > _TAIL_BYTES:
        middle = (low + high) // 2
        file.seek(middle)
        start = middle + len(file.readline())
        record = file.readline()
        line = JournalLine.parse(
            record.rstrip(b"\n"), number << _OFFSET_BITS | start + len(record.rstrip(b"\n"))
        )
        if line is None or line.event.sequence > since:
            # What is torn is taken for later: then more is read than need be, and nothing is left out.
            high = middle
        else:
            low = start
    return low


def _newest(file: BinaryIO, number: int) -> Head | None:
    """The last record of a file that is whole."""
    end = file.seek(0, os.SEEK_END)
    for length in (_TAIL_BYTES, end):
        start = max(0, end - length)
        file.seek(start)
        offset = end
        for text in reversed(file.read(end - start).split(b"\n")):
            line = JournalLine.parse(text, number << _OFFSET_BITS | offset) if text else None
            if line is not None:
                return Head(sequence=line.event.sequence, digest=digest_of(text))
            offset -= len(text) + 1
    return None


def _write(fd: int, line: bytes) -> None:
    """Write all of *line*.

    Raises:
        OSError: Only a part could be written, as on a disk that fills up; nobody reads that part as a record.
    """
    written = os.write(fd, line)
    while written < len(line):
        written += os.write(fd, line[written:])


def _rotated(since: int) -> RotatedError:
    return RotatedError(f"the journal no longer holds what came right after {since}; begin again from 0")
