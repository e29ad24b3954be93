"""`Event`, the record of a change or a refusal, and its form as a line of a journal."""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from hashlib import blake2b
from json.encoder import encode_basestring_ascii as _quote
from typing import Any, NamedTuple

UNDONE = "change.undone"
"""Error code of a record that revokes an earlier one with the same operation and paths."""
CHANGE_PATH_CHARACTERS = 1024
"""Maximum length of a path in the record of a change, in characters of the record."""
REFUSAL_PATH_CHARACTERS = 256
"""Maximum length of a path in the record of a refusal, in characters of the record."""

_VERSION = 1
_CHAINED = 2
_CUT = re.compile(r"\.\.\.\[[0-9]+ characters, [0-9a-f]{32}\]$")
_TEXT = (str, type(None))
_SIZE = (int, type(None))
_KINDS: tuple[type | tuple[type, ...], ...] = (int, _TEXT, str, str, str, _TEXT, _SIZE, _SIZE, _TEXT)
"""Types of the fields of a record, after the version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A change, or an operation that was refused."""

    time_ns: int
    """Nanoseconds since the epoch."""
    session_id: str | None
    """Session whose files they are; `None` if the workspace is not a session."""
    actor: str
    """Who requested it: `host`, `guest`, `operator`, `agent`, or the name of a caller of a service."""
    operation: str
    """What was done or refused."""
    path: str
    """Relative to the workspace, or absolute beneath an allowed path; of a refusal, as requested."""
    other_path: str | None = None
    """The target of a move or a copy, or the text of a link."""
    before_bytes: int | None = None
    """Size of the file before the change, if there was one."""
    after_bytes: int | None = None
    """Size of the file after the change, if there is one."""
    error: str | None = None
    """Error code of a refusal, or `change.undone` if the change of an earlier record was not made."""
    repeats: int = 0
    """Number of repeats of a refusal since it was last recorded; 0 for a record of a single refusal."""
    sequence: int = 0
    """Sequence number in the journal that it was read from; later events have greater ones."""

    @property
    def is_refusal(self) -> bool:
        """Whether this is a refusal, not a change."""
        return self.error is not None and self.error != UNDONE

    def render(self, sequence: int = 0, previous: int = 0, digest: str = "") -> bytes:
        """Render one line of a journal, whatever the path contains: a JSON array in ASCII.

        It holds its own *sequence*, and the number *previous* and the *digest* of the record before it in its
        series.
        """
        limit = REFUSAL_PATH_CHARACTERS if self.is_refusal else CHANGE_PATH_CHARACTERS
        session_id = "null" if self.session_id is None else _quote(self.session_id)
        before = "null" if self.before_bytes is None else self.before_bytes
        after = "null" if self.after_bytes is None else self.after_bytes
        error = "null" if self.error is None else _quote(self.error)
        repeats = f",{self.repeats}" if self.repeats else ""
        return (
            f'[{_CHAINED},{sequence},{previous},"{digest}",{self.time_ns}'
            f",{session_id},{_quote(self.actor)},{_quote(self.operation)}"
            f",{_render_path(self.path, limit)},{_render_path(self.other_path, limit)}"
            f",{before},{after},{error}{repeats}]"
        ).encode("ascii")

    @classmethod
    def parse(cls, line: bytes, sequence: int) -> Event | None:
        """Parse a line of a journal; return `None` if it is torn or has another format.

        *sequence* is given to an event of an older version, which carries none.
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
    """Sequence number of the record before it in its series; `None` in older versions."""
    digest: str
    """Digest of the record before it in its series."""

    @classmethod
    def parse(cls, line: bytes, sequence: int) -> JournalLine | None:
        """Parse a line; return `None` if it is torn or has another format. See `Event.parse`."""
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
    """Return the digest of the record in *line*, which the next record of its series holds."""
    return urlsafe_b64encode(blake2b(line, digest_size=24).digest()).decode()


def is_cut(path: str | None) -> bool:
    """Whether *path*, as a record has it, is the beginning of a longer path."""
    return path is not None and _CUT.search(path) is not None


def _render_path(path: str | None, limit: int) -> str:
    """Quote a path; one longer than *limit* is cut, with its length and a digest."""
    if path is None:
        return "null"
    quoted = _quote(path)
    if len(quoted) <= limit + 2:
        return quoted
    digest = blake2b(path.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    suffix = f"...[{len(path)} characters, {digest}]"
    # A character takes at most twelve in the record.
    kept = path[: max(limit - len(suffix), 0)]
    while len(quoted := _quote(kept + suffix)) > limit + 2:
        kept = kept[: -max(1, (len(quoted) - limit) // 12)]
    return quoted
