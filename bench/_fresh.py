"""What the first commands on a fresh machine take, step by step; filled in by hand in `fresh.json`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a command."""

    name: str
    seconds: float | None
    """`None` if nobody has measured it."""


@dataclass(frozen=True, slots=True)
class Goal:
    """A command, from nothing to its end."""

    command: str
    steps: Sequence[Step]

    @property
    def seconds(self) -> float | None:
        """The whole of it, if every step was measured."""
        known = [step.seconds for step in self.steps if step.seconds is not None]
        return sum(known) if known and len(known) == len(self.steps) else None


@dataclass(frozen=True, slots=True)
class Fresh:
    """The commands that somebody runs first."""

    date: str = ""
    machine: str = ""
    """Cores, memory, what was there already, and what else it did."""
    goals: Sequence[Goal] = ()


def load(file: Path) -> Fresh:
    """What *file* says; nothing if there is no such file."""
    if not file.exists():
        return Fresh()
    plain = json.loads(file.read_text("utf-8"))
    goals = [
        Goal(goal["command"], [Step(step["step"], step["seconds"]) for step in goal["steps"]])
        for goal in plain["goals"]
    ]
    return Fresh(plain["date"], plain["machine"], goals)
