"""What a door is: a way to make the calls of the suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tests.conformance.answer import Answer
from tests.conformance.place import Places
from tests.conformance.row import Row


class Door(Protocol):
    """One way to make calls; what it does not offer it answers with nothing."""

    @property
    def name(self) -> str: ...

    def operation(self, session: str, row: Row, arguments: Mapping[str, Any]) -> Answer | None:
        """Call a method of the workspace."""
        ...

    def tool(self, session: str, row: Row, arguments: Mapping[str, Any]) -> Answer | None:
        """Call a tool."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What a call answered, and what the session held afterwards."""

    answer: Answer | None
    left: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """The library, and every other way to do the same."""

    places: Places
    library: Door
    others: Sequence[Door]

    def operation(self, door: Door, row: Row) -> Made:
        """Make the call in a session that *door* has for itself."""
        session = self.places.session(door.name, row)
        answer = door.operation(session, row, self.places.arguments(session, row))
        return Made(answer=answer, left=self.places.contents(session))

    def tool(self, door: Door, row: Row) -> Made:
        """The same for a tool."""
        session = self.places.session(door.name, row)
        answer = door.tool(session, row, self.places.arguments(session, row))
        return Made(answer=answer, left=self.places.contents(session))
