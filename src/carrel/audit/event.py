"""`Event`, one record of a change or a refusal, and its form as a line of the journal."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import blake2b
from json.encoder import encode_basestring_ascii
from typing import Any, NamedTuple

UNDONE = "change.undone"
"""The error of a record that takes back the one before with the same operation and path."""
CHANGE_PATH_CHARACTERS = 1024
"""Longest path in the record of a change, as it is written."""
REFUSAL_PATH_CHARACTERS = 256
"""Longest path in the record of a refusal, as it is written."""

_VERSION = 1
_CHAINED = 2
_CUT = re.compile(r"\.\.\.\[[0-9]+ characters, [0-9a-f]{32}\]$")
_TEXT = (str, type(None))
_SIZE = (int, type(None))
_KINDS: tuple[type | tuple[type, ...], ...] = (int, _TEXT, str, str, str, _TEXT, _SIZE, _SIZE, _TEXT)
"""Of the fields of a record, after the version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A change that was made, or one that was refused."""

    time_ns: int
    """Nanoseconds since the epoch."""
    session_id: str | None
    """Whose files they are; none if the workspace is no session."""
    actor: str
    """Who asked: `host`, `guest`, `operator`, `agent`, or the name of a caller of a service."""
    operation: str
    """What was done or refused."""
    path: str
    """Relative to the workspace, or absolute beneath an allowed path; if it was refused, as it was asked."""
    other_path: str | None = None
    """The target of a move or a copy, or the text of a link."""
    before_bytes: int | None = None
    """The size of the file that was there, where there was one."""
    after_bytes: int | None = None
    """The size of the file that is there now, where there is one."""
    error: str | None = None
    """The code of the error if it was refused, or `change.undone` if the record before did not come true."""
    repeats: int = 0
    """How often the same was refused again since it was last recorded; 0 for what is recorded by itself."""
    sequence: int = 0
    """Its place in the journal it was read from; later ones are greater."""

    @property
    def is_refusal(self) -> bool:
        """Whether it tells of something that was refused, not of a change."""
        return self.error is not None and self.error != UNDONE

    def render(self, sequence: int = 0, previous: int = 0, digest: str = "") -> bytes:
        """One line for a journal, whatever the path holds: a JSON array in ASCII.

        It carries its own *sequence*, and that and the *digest* of the record before it of its kind.
        """
        most = REFUSAL_PATH_CHARACTERS if self.is_refusal else CHANGE_PATH_CHARACTERS
        place = f'{_CHAINED},{sequence},{previous},"{digest}",{self.time_ns}'
        names = f"{_quote(self.session_id)},{_quote(self.actor)},{_quote(self.operation)}"
        paths = f"{_path(self.path, most)},{_path(self.other_path, most)}"
        sizes = f"{_number(self.before_bytes)},{_number(self.after_bytes)}"
        repeats = f",{self.repeats}" if self.repeats else ""
        return f"[{place},{names},{paths},{sizes},{_quote(self.error)}{repeats}]".encode("ascii")

    @classmethod
    def parse(cls, line: bytes, sequence: int) -> Event | None:
        """The event in a line of a journal, or `None` if the line is torn or not ours.

        *sequence* is that of an event which does not carry its own, as those of older versions.
        """
        parsed = JournalLine.parse(line, sequence)
        return None if parsed is None else parsed.event

    @classmethod
    def _of(cls, fields: list[Any], sequence: int, repeats: int = 0) -> Event | None:
        if not all(isinstance(value, kinds) for value, kinds in zip(fields[1:], _KINDS, strict=True)):
            return None
        return cls(
            time_ns=fields[1],
            session_id=fields[2],
            actor=fields[3],
            operation=fields[4],
            path=fields[5],
            other_path=fields[6],
            before_bytes=fields[7],
            after_bytes=fields[8],
            error=fields[9],
            repeats=repeats,
            sequence=sequence,
        )


class JournalLine(NamedTuple):
    """One line of a journal."""

    event: Event
    previous: int | None
    """The sequence number of the record before it of its kind; `None` in older versions."""
    digest: str
    """That of the record before it."""

    @classmethod
    def parse(cls, line: bytes, sequence: int) -> JournalLine | None:
        """What a line holds, or `None` if it is torn or not ours; see `Event.parse`."""
        try:
            fields = json.loads(line)
        except ValueError:
            return None
        if not isinstance(fields, list) or not fields:
            return None
        if fields[0] == _VERSION and len(fields) == 10:
            event = Event._of(fields, sequence)
            return None if event is None else cls(event, None, "")
        if fields[0] != _CHAINED or len(fields) not in (13, 14):
            return None
        _, own, previous, digest, *rest = fields
        repeats = rest.pop() if len(fields) == 14 else 0
        numbers = (own, previous, repeats)
        if not all(isinstance(value, int) for value in numbers) or not isinstance(digest, str):
            return None
        event = Event._of([_VERSION, *rest], own, repeats)
        return None if event is None else cls(event, previous, digest)


def digest_of(line: bytes) -> str:
    """What the next record says of the record in *line*."""
    return urlsafe_b64encode(blake2b(line, digest_size=24).digest()).decode()


def is_cut(path: str | None) -> bool:
    """Whether *path*, as a record has it, is only the beginning of a longer one."""
    return path is not None and _CUT.search(path) is not None


def _path(text: str | None, most: int) -> str:
    """A path in quotes; of one that is longer than *most* the beginning, its length and a digest."""
    quoted = _quote(text)
    if text is None or len(quoted) <= most + 2:
        return quoted
    mark = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    end = f"...[{len(text)} characters, {mark}]"
    # A character takes at most twelve in the record.
    kept = text[: max(most - len(end), 0)]
    while len(shown := _quote(kept + end)) > most + 2:
        kept = kept[: -max(1, (len(shown) - most) // 12)]
    return shown


def _quote(text: str | None) -> str:
    return "null" if text is None else encode_basestring_ascii(text)


def _number(value: int | None) -> str:
    return "null" if value is None else str(value)
