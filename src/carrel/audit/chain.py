"""Verify that the records of a journal are as written: none edited, removed or moved.

Every record carries the number and the digest of the one before it in its series. The heads of both series
are stored beside them, so that records missing at the end are noticed too.

Not covered: anyone who can write all files of a journal can also write another chain. Only a head that was
saved elsewhere reveals that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from carrel.audit.event import JournalLine, digest_of

MAX_BATCH_RECORDS = 64
"""Maximum number of records that are written together, before the head."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The latest record of one series."""

    sequence: int = 0
    """Sequence number; 0 if there is no record, -1 if that is unknown."""
    digest: str = ""
    """Digest of the record as it is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalCheck:
    """Result of a check of a journal."""

    records: int
    """Number of records in the chain."""
    unchained: int
    """Number of records written by versions without a chain; they cannot be verified."""
    changes: Head
    """The latest record of a change."""
    refusals: Head
    """The latest record of a refusal."""
    broken: int | None = None
    """Sequence number of the first record that is not as it was written; `None` if all are."""
    problem: str | None = None
    """What is wrong with that record."""

    @property
    def is_whole(self) -> bool:
        """Whether all records are as they were written."""
        return self.problem is None


class BrokenError(Exception):
    """A record is not as it was written."""

    def __init__(self, sequence: int, problem: str) -> None:
        super().__init__(problem)
        self.sequence = sequence
        self.problem = problem


@dataclass(slots=True)
class Chain:
    """The records of one series, from the oldest that is kept."""

    is_from_start: bool
    """Whether no earlier record was dropped."""
    last: Head = field(default_factory=Head)
    latest: deque[Head] = field(default_factory=lambda: deque(maxlen=MAX_BATCH_RECORDS))
    """The records before `last` that the stored head may still name."""
    records: int = 0
    unchained: int = 0

    def follow(self, lines: Iterable[tuple[bytes, JournalLine]]) -> None:
        """Verify the next records.

        Raises:
            BrokenError: One does not follow the one before it.
        """
        for text, line in lines:
            self._require_next(line)
            self.latest.append(self.last)
            self.last = Head(sequence=line.event.sequence, digest=digest_of(text))
            if line.previous is None:
                self.unchained += 1
            else:
                self.records += 1

    def _require_next(self, line: JournalLine) -> None:
        own, last = line.event.sequence, self.last
        if line.previous is None:
            if self.records:
                raise BrokenError(own, "it has no chain, and those before it have")
            return
        if not self.is_from_start and not self.records and not self.unchained:
            # The record before it was dropped.
            self.last = Head(sequence=line.previous, digest=line.digest)
            return
        if line.previous > last.sequence:
            raise BrokenError(line.previous, "it was removed, or is not in its place")
        if line.previous < last.sequence or own <= line.previous:
            raise BrokenError(own, "it is not in its place")
        if line.digest != last.digest:
            raise BrokenError(last.sequence, "it was edited")

    def require_end(self, head: Head, until: int) -> None:
        """Require that the last record is the one that *head* names, or was written right after it.

        A process that is killed between the two leaves the head behind: by one record, or by a batch whose
        last record has the number *until*.

        Raises:
            BrokenError: The last record is another one.
        """
        if not self.records and head.sequence <= 0:
            return
        if head == self.last or head in list(self.latest)[-1:]:
            return
        if head in self.latest and self.last.sequence <= until:
            return
        if head.sequence > self.last.sequence:
            raise BrokenError(head.sequence, "it was removed from the end")
        if head.sequence == self.last.sequence:
            raise BrokenError(head.sequence, "it was edited")
        raise BrokenError(self.last.sequence, "it was not written with the head that is kept")
