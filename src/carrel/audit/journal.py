"""The append-only record of one workspace, kept outside it.

A journal on disk is a row of files. One that has reached its size is never written again: whoever comes next
begins another, and only the newest few are kept. An event's sequence number tells its file and the offset
of its end there: it grows with every record, and reading on from one is a seek.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from threading import RLock
from typing import Protocol

from carrel.audit.event import Event
from carrel.errors import ClosedError, RotatedError
from carrel.values import MIB

FILE_BYTES = 4 * MIB
"""A file of a journal that has reached this size is full."""
KEPT_FILES = 2

_NAME = re.compile(r"journal\.([0-9]{1,9})")
_OFFSET_BITS = 32


class Journal(Protocol):
    """Where events go."""

    def record(self, event: Event) -> None:
        """Add one event."""
        ...

    def events(self, since: int = 0) -> Iterator[Event]:
        """The events after the one with the sequence number *since*, in order.

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
        self._events: deque[tuple[int, Event]] = deque(maxlen=keep)
        self._sequence = 0

    def record(self, event: Event) -> None:
        self._sequence += 1
        self._events.append((self._sequence, event))

    def events(self, since: int = 0) -> Iterator[Event]:
        kept = tuple(self._events)
        if since > 0 and kept and since < kept[0][0] - 1:
            raise _rotated(since)
        return (replace(event, sequence=sequence) for sequence, event in kept if sequence > since)

    def position(self) -> int:
        return self._sequence

    def close(self) -> None:
        self._events.clear()


class FileJournal:
    """Files of lines; each record is one `write` with `O_APPEND`, so processes do not mix theirs.

    A record begins with its line end, so one that was torn by a crash or a full disk spoils no other.

    Not covered: writers that share no lock may record into a file that another of them has just found full;
    a reader that was past it does not see that record.
    """

    def __init__(self, directory: int, *, file_bytes: int = FILE_BYTES) -> None:
        """Keep the journal in the open directory *directory*, whose descriptor this takes over."""
        self._directory = directory
        self._file_bytes = file_bytes
        self._fd = -1
        self._number = 0
        # One that its own thread may take again, as a signal handler does that looks at the journal.
        self._lock = RLock()

    def record(self, event: Event) -> None:
        line = b"\n" + event.render()
        with self._lock:
            self._require_open()
            self._leave_full_file()
            _write(self._fd, line)

    def position(self) -> int:
        with self._lock:
            self._require_open()
            self._leave_full_file()
            return self._number << _OFFSET_BITS | self._size()

    def events(self, since: int = 0) -> Iterator[Event]:
        first, _ = _file_and_offset(since)
        with self._lock:
            numbers = self._numbers()
        if since > 0 and numbers and first < numbers[0]:
            raise _rotated(since)
        return self._read([number for number in numbers if number >= first], since)

    def _read(self, numbers: list[int], since: int) -> Iterator[Event]:
        """The events in these files; one that is gone is told, unless nothing was read or known before it."""
        first, offset = _file_and_offset(since)
        for number in numbers:
            try:
                with self._lock:
                    file = os.fdopen(self._open(number, os.O_RDONLY), "rb")
            except FileNotFoundError:
                if since > 0:
                    raise _rotated(since) from None
                continue
            with file:
                start = file.seek(offset if number == first else 0)
                for line in file:
                    record = line.rstrip(b"\n")
                    sequence = number << _OFFSET_BITS | start + len(record)
                    event = Event.parse(record, sequence) if record else None
                    start += len(line)
                    if event is not None:
                        since = sequence
                        yield event
                    if not line.endswith(b"\n"):
                        # The end for now; if this record was still being written, it is for the next reader.
                        break

    def _require_open(self) -> None:
        """Open the newest file, making the first one."""
        if self._fd < 0:
            self._number = max(self._numbers(), default=0)
            self._fd = self._open(self._number, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def _size(self) -> int:
        return os.lseek(self._fd, 0, os.SEEK_END)

    def _leave_full_file(self) -> None:
        """Go on in the newest file, or in a new one if that is full, and let go of the oldest."""
        if self._size() < self._file_bytes:
            return
        while self._size() >= self._file_bytes:
            newest = max(self._numbers(), default=self._number)
            self._number = max(newest, self._number + 1)
            fd = self._open(self._number, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.close(self._fd)
            self._fd = fd
        for number in self._numbers()[:-KEPT_FILES]:
            with suppress(FileNotFoundError):
                os.unlink(_name(number), dir_fd=self._directory)

    def _numbers(self) -> list[int]:
        """The numbers of the files that there are, in order."""
        if self._directory < 0:
            raise ClosedError("the journal is closed")
        # A descriptor of its own: one that a forked child shares would give each of the two a part.
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._directory)
        try:
            found = [_NAME.fullmatch(name) for name in os.listdir(fd)]
        finally:
            os.close(fd)
        return sorted(int(match[1]) for match in found if match)

    def _open(self, number: int, flags: int) -> int:
        if self._directory < 0:
            raise ClosedError("the journal is closed")
        return os.open(_name(number), flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self._directory)

    def close(self) -> None:
        with self._lock:
            for fd in (self._fd, self._directory):
                if fd >= 0:
                    os.close(fd)
            self._fd = self._directory = -1


def _name(number: int) -> str:
    return f"journal.{number}"


def _write(fd: int, line: bytes) -> None:
    """Write all of *line*.

    Raises:
        OSError: Only a part could be written, as on a disk that fills up; nobody reads that part as a record.
    """
    written = os.write(fd, line)
    while written < len(line):
        written += os.write(fd, line[written:])


def _file_and_offset(sequence: int) -> tuple[int, int]:
    return divmod(max(0, sequence), 1 << _OFFSET_BITS)


def _rotated(since: int) -> RotatedError:
    return RotatedError(f"the journal no longer holds what came right after {since}; begin again from 0")
