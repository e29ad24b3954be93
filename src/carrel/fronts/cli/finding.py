"""One thing that `carrel doctor` looked at."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class State(StrEnum):
    """Whether it is fine."""

    OK = "ok"
    OFF = "off"
    """It is not there or not switched on, and nobody needs it unless they want to."""
    NOTE = "note"
    """It works, but not as well as it could, or not as somebody may expect."""
    PROBLEM = "problem"
    """Something that is needed does not work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was looked at, whether it is fine and, if not, what to do."""

    area: str
    subject: str
    state: State
    found: str
    remedy: str | None = None
    """What to type or to set."""

    def __post_init__(self) -> None:
        if self.state in (State.NOTE, State.PROBLEM) and not self.remedy:
            raise ValueError(f"{self.subject} is not fine, and nothing says what to do")

    def as_json(self) -> dict[str, Any]:
        """One document."""
        return asdict(self)
