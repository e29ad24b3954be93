"""One record of what happened in a workspace."""

from __future__ import annotations

import json
from dataclasses import dataclass
from json.encoder import encode_basestring_ascii

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """A change that was made, or one that was refused."""

    time_ns: int
    """Nanoseconds since the epoch."""
    session_id: str | None
    actor: str
    """Who asked: `host`, `shell`, `guest`, or the name of a caller."""
    operation: str
    path: str
    """As it was asked for."""
    other_path: str | None = None
    """The target of a move or a copy."""
    before_bytes: int | None = None
    after_bytes: int | None = None
    error: str | None = None
    """The code of the error, if it was refused."""
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
