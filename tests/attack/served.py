"""A world whose workspace is a session of a real service, for attacks through its doors.

Starting a service takes too long for each attack, so one world and one service have them all: between two of
them the workspace is emptied and laid out anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from carrel.errors import CarrelError, RequestError
from tests.attack.guards import forget_frames
from tests.attack.operations import prepare
from tests.attack.special import SPECIAL
from tests.attack.world import HOST_TEXTS, MARKER, Outcome, World, names_of, split
from tests.conformance.server import Server


@dataclass(slots=True)
class Served:
    """The world, and the service that has its workspace as the session `ROOT`."""

    world: World
    server: Server

    def lay_out(self, layout: str, *, prepared: bool = False) -> None:
        """Make the workspace look like *layout*; and put there what operations with two ends need."""
        self.world.layout = layout
        self.world.start_over()
        if prepared:
            prepare(self.world.workspace)
        self.world.settle()

    def attempt(self, call: Callable[[], object], *asked: str) -> Outcome:
        """Make the *call* through a door, and check all that must always hold."""
        try:
            value = call()
        except (CarrelError, TypeError) as error:
            forget_frames(error)
            # What Python would not take is refused by the service in the same way.
            more = {"TypeError", "ValueError"} if isinstance(error, RequestError) else set()
            outcome = Outcome(names_of(error) | more, error=error)
        else:
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            names = {"ok", f"ok:{text}"} if isinstance(text, str) else {"ok"}
            outcome = Outcome(frozenset(names), value)
        self.world.require_calm(outcome, asked)
        return outcome

    def require_silence(self, said: bytes | str, *asked: str) -> None:
        """Fail if *said*, all that came back, tells anything of the host but for what was asked."""
        text = said.decode("utf-8", "replace") if isinstance(said, bytes) else said
        for words in self._known(asked):
            text = text.replace(words, "")
        hidden = (str(self.world.base), "/proc/self", MARKER, *(told.decode() for told in HOST_TEXTS))
        assert not any(secret in text for secret in hidden), f"tells too much: {text[:500]}"
        assert "Traceback" not in text

    def _known(self, asked: Iterable[str]) -> list[str]:
        """What may be repeated: what was asked, in every spelling, and what the links of the layout say."""
        links = [self.world.fill(line.partition(" => ")[2]) for line in split(self.world.layout)]
        if self.world.layout in SPECIAL:
            links.append(str(self.world.out))
        words = [*asked, *(each[:40] for each in asked), *(each[:80] for each in asked), *links]
        spelled = [
            spelling for each in words for spelling in (each, repr(each)[1:-1], json.dumps(each)[1:-1])
        ]
        return sorted({each for each in spelled if len(each) > 3}, key=len, reverse=True)
