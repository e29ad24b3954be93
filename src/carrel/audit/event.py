"""One record of what happened in a workspace."""

from __future__ import annotations

import json
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii

_VERSION = 1
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
    sequence: int = 0
    """Its place in the journal it was read from; later ones are greater."""

    def render(self) -> bytes:
        """One line for a journal, whatever the path holds: a JSON array in ASCII."""
        numbers = f"{_VERSION},{self.time_ns}"
        names = f"{_quote(self.session_id)},{_quote(self.actor)},{_quote(self.operation)}"
        paths = f"{_quote(self.path)},{_quote(self.other_path)}"
        sizes = f"{_number(self.before_bytes)},{_number(self.after_bytes)}"
        return f"[{numbers},{names},{paths},{sizes},{_quote(self.error)}]".encode("ascii")

    @classmethod
    def parse(cls, line: bytes, sequence: int) -> Event | None:
        """The event in a line of a journal, or `None` if the line is torn or not ours."""
        try:
            fields = json.loads(line)
        except ValueError:
            return None
        if not isinstance(fields, list) or len(fields) != 10 or fields[0] != _VERSION:
            return None
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
            sequence=sequence,
        )


def _quote(text: str | None) -> str:
    return "null" if text is None else encode_basestring_ascii(text)


def _number(value: int | None) -> str:
    return "null" if value is None else str(value)
