"""The append-only record of one workspace, kept outside it.

An event's sequence number is the offset of its end in the file: it grows with every record, needs no lock
between processes, and reading on from one is a seek.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import replace
from threading import Lock
from typing import Protocol

from carrel.audit.event import Event
from carrel.errors import ClosedError


class Journal(Protocol):
    """Where events go."""

    def record(self, event: Event) -> None:
        """Add one event."""
        ...

    def events(self, since: int = 0) -> Iterator[Event]:
        """The events after the one with the sequence number *since*, in order."""
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
        for sequence, event in tuple(self._events):
            if sequence > since:
                yield replace(event, sequence=sequence)

    def close(self) -> None:
        self._events.clear()


class FileJournal:
    """A file of lines; each record is one `write` with `O_APPEND`, so processes do not mix theirs.

    A record begins with its line end, so one that was torn by a crash or a full disk spoils no other.
    """

    def __init__(self, directory: int, name: str) -> None:
        """Keep the journal *name* in the open directory *directory*, whose descriptor this takes over."""
        self._directory = directory
        self._name = name
        self._fd = -1
        self._lock = Lock()

    def record(self, event: Event) -> None:
        with self._lock:
            if self._fd < 0:
                self._fd = self._open(os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            os.write(self._fd, b"\n" + event.render())

    def events(self, since: int = 0) -> Iterator[Event]:
        with self._lock:
            try:
                file = os.fdopen(self._open(os.O_RDONLY), "rb")
            except FileNotFoundError:
                return
        with file:
            start = file.seek(max(0, since))
            for line in file:
                record = line.rstrip(b"\n")
                event = Event.parse(record, start + len(record)) if record else None
                start += len(line)
                if event is not None:
                    yield event

    def _open(self, flags: int) -> int:
        if self._directory < 0:
            raise ClosedError("the journal is closed")
        return os.open(self._name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=self._directory)

    def close(self) -> None:
        with self._lock:
            for fd in (self._fd, self._directory):
                if fd >= 0:
                    os.close(fd)
            self._fd = self._directory = -1
