"""Verify that the records of a journal are as written: none edited, removed or moved.

Every record carries the number and the digest of the one before it in its row, and the heads of both rows are
kept beside them, so that what is missing at the end is noticed too.

Not covered: whoever can write all files of a journal can also write another chain. Only a head that was kept
elsewhere tells then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from carrel.audit.event import JournalLine, digest_of

TOGETHER = 64
"""Most records that are written before the head is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The latest record of one kind."""

    sequence: int = 0
    """Its number; 0 if there is none, -1 if that is unknown."""
    digest: str = ""
    """That of the record as it is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalCheck:
    """What a check of a journal found."""

    records: int
    """How many records are in the chain."""
    unchained: int
    """How many older records were written before there was a chain; nothing vouches for them."""
    changes: Head
    """The latest record of a change."""
    refusals: Head
    """The latest record of a refusal."""
    broken: int | None = None
    """The number of the first record that is not as it was written; `None` if all are."""
    problem: str | None = None
    """What is wrong with it."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return self.problem is None


class BrokenError(Exception):
    """A record is not as it was written."""

    def __init__(self, sequence: int, problem: str) -> None:
        super().__init__(problem)
        self.sequence = sequence
        self.problem = problem


@dataclass(slots=True)
class Chain:
    """The records of one row, from the oldest that is kept."""

    is_from_start: bool
    """Whether no record was dropped before them."""
    last: Head = field(default_factory=Head)
    latest: deque[Head] = field(default_factory=lambda: deque(maxlen=TOGETHER))
    """The ones before the last that the head may still tell of."""
    records: int = 0
    unchained: int = 0

    def follow(self, lines: Iterable[tuple[bytes, JournalLine]]) -> None:
        """Go on with these records.

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
            # What it follows was dropped.
            self.last = Head(sequence=line.previous, digest=line.digest)
            return
        if line.previous > last.sequence:
            raise BrokenError(line.previous, "it was removed, or is not in its place")
        if line.previous < last.sequence or own <= line.previous:
            raise BrokenError(own, "it is not in its place")
        if line.digest != last.digest:
            raise BrokenError(last.sequence, "it was edited")

    def require_end(self, head: Head, until: int) -> None:
        """Do nothing if the last record is the one that *head* tells of, or was written right after it.

        A process that is killed in between leaves the head behind: by one record, or by several that were to
        be written together, the last of them with the number *until*.

        Raises:
            BrokenError: It is another one.
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
