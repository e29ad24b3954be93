"""The files of a journal on disk: the numbered files of each series of records, and the head file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import BinaryIO

from carrel.audit.chain import Chain, Head
from carrel.audit.event import Event, JournalLine, digest_of
from carrel.errors import ClosedError

KEPT_FILES = 3
"""Number of files that are kept of each series."""

_HEADS = "head"
"""Name of the head file."""
_HEAD = re.compile(rb"([0-9]{20}) ([A-Za-z0-9_=-]{0,32}) *\n")
_HEAD_BYTES = 54
"""Size in bytes of a line of the head file."""
_OFFSET_BITS = 32
"""Records of older versions carry no number. Theirs is the number of the file, shifted by this many bits,
and the offset at which the record ends."""
_TAIL_BYTES = 16 * 1024
"""Size in bytes of the tail that is read first; longer than any record."""

Flush = Callable[[int], None]
"""Flushes an open file or directory to the disk."""


def no_flush(fd: int) -> None:
    """Leave it to the host when to write to the disk."""


class HeadFile:
    """The file that holds the latest record of each series, one line per series.

    Before several records are written together, a third line is set to the number of the last of them.
    """

    def __init__(self) -> None:
        self.fd = -1

    def prepare(self, directory: int) -> bool:
        """Open the file and reserve room for both lines; return whether it is new."""
        if self.fd >= 0:
            return False
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(_HEADS, flags, 0o600, dir_fd=directory)
        try:
            is_new = os.lseek(fd, 0, os.SEEK_END) < 2 * _HEAD_BYTES
            if is_new:
                os.pwrite(fd, 2 * _render_head(Head()), 0)
        except BaseException:
            os.close(fd)
            raise
        self.fd = fd
        return is_new

    def write(self, line: int, head: Head) -> None:
        """Set the line number *line* to *head*."""
        os.pwrite(self.fd, _render_head(head), line * _HEAD_BYTES)

    @staticmethod
    def read(directory: int) -> list[Head]:
        """Return the heads of all three lines; one that is missing has the sequence number -1."""
        text = b""
        with suppress(FileNotFoundError):
            fd = os.open(_HEADS, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
            try:
                text = os.pread(fd, 3 * _HEAD_BYTES, 0)
            finally:
                os.close(fd)
        found = [_HEAD.fullmatch(text, line * _HEAD_BYTES, (line + 1) * _HEAD_BYTES) for line in range(3)]
        return [
            Head(sequence=-1)
            if match is None
            else Head(sequence=int(match[1]), digest=match[2].decode("ascii"))
            for match in found
        ]

    def close(self) -> None:
        """Close the file."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1


def _render_head(head: Head) -> bytes:
    return b"%020d %-32s\n" % (head.sequence, head.digest.encode("ascii"))


class RecordFiles:
    """One series of records, in numbered files of which only the newest is written."""

    def __init__(self, name: str, file_bytes: int, flush: Flush) -> None:
        self._name = name
        self._pattern = re.compile(rf"{name}\.([0-9]{{1,9}})")
        self._file_bytes = file_bytes
        self._flush = flush
        self.fd = -1
        self._number = 0
        self._end = -1
        """Size of the file for which `last` is the latest record; -1 if unknown."""
        self.last = Head()
        self.is_new = False
        """Whether the name of the file may not be flushed yet."""

    def prepare(self, directory: int, *, create: bool = False) -> None:
        """Find the latest record of any writer; with *create*, create the first file."""
        if self.fd < 0:
            numbers = self.numbers(directory)
            if not numbers and not create:
                return
            self._switch_to(directory, numbers[-1] if numbers else 0)
        size = os.lseek(self.fd, 0, os.SEEK_END)
        if size >= self._file_bytes:
            newest = max(self.numbers(directory), default=self._number)
            if newest > self._number:
                self._switch_to(directory, newest)
                size = os.lseek(self.fd, 0, os.SEEK_END)
        if size != self._end:
            self.last, self._end = self.newest(directory), size
            # A writer flushes the name of the file before its first record.
            self.is_new = size == 0

    def append(self, directory: int, event: Event, sequence: int) -> None:
        """Write one record after the latest one; `prepare` must have been called under the same lock."""
        if self._end >= self._file_bytes:
            self._flush(self.fd)
            self._switch_to(directory, self._number + 1)
            self._flush(directory)
            self.is_new = False
            for number in self.numbers(directory)[:-KEPT_FILES]:
                with suppress(FileNotFoundError):
                    os.unlink(f"{self._name}.{number}", dir_fd=directory)
        line = event.render(sequence, self.last.sequence, self.last.digest)
        self._end = -1
        _write(self.fd, b"\n" + line)
        self.last = Head(sequence=sequence, digest=digest_of(line))
        self._end = os.lseek(self.fd, 0, os.SEEK_END)

    def chain(self, directory: int) -> Chain:
        """Return the chain of the series, positioned before its first record that is kept."""
        numbers = self.numbers(directory)
        # Files are dropped only once there are that many.
        return Chain(is_from_start=len(numbers) < KEPT_FILES or numbers[0] == 0)

    def snapshot(self, directory: int, opened: ExitStack) -> list[tuple[int, BinaryIO, int]]:
        """Open all files on *opened*; return the number, the file and the current size of each."""
        files: list[tuple[int, BinaryIO, int]] = []
        for number in self.numbers(directory):
            file = opened.enter_context(os.fdopen(self.open(directory, number, os.O_RDONLY), "rb"))
            files.append((number, file, os.fstat(file.fileno()).st_size))
        return files

    def newest(self, directory: int) -> Head:
        """Find the latest complete record in the files."""
        for number in reversed(self.numbers(directory)):
            with (
                suppress(FileNotFoundError),
                os.fdopen(self.open(directory, number, os.O_RDONLY), "rb") as file,
            ):
                if (found := _last_record(file, number)) is not None:
                    return found
        return Head()

    def first(self, directory: int, number: int) -> int:
        """Return the sequence number of the first record of the file *number*, or 0."""
        with suppress(FileNotFoundError), os.fdopen(self.open(directory, number, os.O_RDONLY), "rb") as file:
            for line in read_lines(file, number, 0):
                return line.event.sequence
        return 0

    def last_dropped(self, directory: int, number: int) -> int:
        """Return the sequence number of the record before the oldest file, *number*; 0 if it is the first."""
        if number == 0:
            return 0
        with suppress(FileNotFoundError), os.fdopen(self.open(directory, number, os.O_RDONLY), "rb") as file:
            for line in read_lines(file, number, 0):
                return number << _OFFSET_BITS if line.previous is None else line.previous
        return 0

    def numbers(self, directory: int) -> list[int]:
        """Return the numbers of the existing files, in order."""
        if directory < 0:
            raise ClosedError("the journal is closed")
        # A new descriptor: a forked child shares the position in the directory of an inherited one.
        fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
        try:
            found = [self._pattern.fullmatch(name) for name in os.listdir(fd)]
        finally:
            os.close(fd)
        return sorted(int(match[1]) for match in found if match)

    def open(self, directory: int, number: int, flags: int) -> int:
        """Open the file *number*; return its descriptor."""
        if directory < 0:
            raise ClosedError("the journal is closed")
        name = f"{self._name}.{number}"
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory)

    def _switch_to(self, directory: int, number: int) -> None:
        """Continue in the file *number*, which is created if it is missing."""
        fd = self.open(directory, number, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.close()
        self.fd, self._number = fd, number

    def close(self) -> None:
        """Close the file that is written."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = self._end = -1


def read_lines(file: BinaryIO, number: int, since: int) -> Iterator[JournalLine]:
    """Read the records of a file from the one after *since*, or from some records before it."""
    start = file.seek(_find(file, number, since) if since > 0 else 0)
    for _, line in read_records(file, number, None, start):
        yield line


def read_records(
    file: BinaryIO, number: int, end: int | None, start: int = 0
) -> Iterator[tuple[bytes, JournalLine]]:
    """Read the records of a file from its current position up to *end*, each as bytes and parsed."""
    for text in file:
        record = text.rstrip(b"\n")
        stop = start + len(record)
        if end is not None and stop > end:
            return
        line = JournalLine.parse(record, number << _OFFSET_BITS | stop) if record else None
        start += len(text)
        if line is not None:
            yield record, line


def _find(file: BinaryIO, number: int, since: int) -> int:
    """Return the offset of a line shortly before the first record after *since*, by binary search."""
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
            # A torn record counts as later: then more is read than necessary, and nothing is left out.
            high = middle
        else:
            low = start
    return low


def _last_record(file: BinaryIO, number: int) -> Head | None:
    """Return the last complete record of a file."""
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
        OSError: Only a part could be written, as on a full disk; readers do not take that part for a record.
    """
    written = os.write(fd, line)
    while written < len(line):
        written += os.write(fd, line[written:])
