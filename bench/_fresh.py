"""What the first commands on a fresh machine take, step by step; `fresh.json` is filled in by hand."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench._markdown import table

ABOUT = """
The duration of the first commands on a machine with only Python, make and a package index, and the steps
that take most of it. Installed and compiled files are reused the next time. To start from scratch on a
machine that has them:

    XDG_CACHE_HOME=$(mktemp -d) make VENV=$(mktemp -d) demo
"""


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a command."""

    name: str
    seconds: float | None
    """`None` if it was not measured."""


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
    """The first commands that a user runs."""

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


def render(fresh: Fresh) -> Iterator[str]:
    """It all in seconds, in shares of each command, and in times of the first one."""
    yield ABOUT
    if fresh.machine:
        yield f"On {fresh.date}: {fresh.machine}"
    for goal in fresh.goals:
        yield f"`{goal.command}`: {_whole(goal, fresh.goals[0])}"
        yield table(("step", "duration", "share"), [*_steps(goal)])


def _whole(goal: Goal, first: Goal) -> str:
    if goal.seconds is None:
        return "not measured."
    longest = max(goal.steps, key=lambda step: step.seconds or 0)
    text = f"{_seconds(goal.seconds)} in all, {_share(longest, goal)} of it: {longest.name}"
    if goal is first or not first.seconds:
        return f"{text}."
    return f"{text}. That is {goal.seconds / first.seconds:.1f} times `{first.command}`."


def _steps(goal: Goal) -> Iterator[tuple[str, str, str]]:
    for step in goal.steps:
        yield (
            step.name,
            "not measured" if step.seconds is None else _seconds(step.seconds),
            _share(step, goal),
        )


def _share(step: Step, goal: Goal) -> str:
    return "" if not goal.seconds or step.seconds is None else f"{step.seconds / goal.seconds:.0%}"


def _seconds(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s"
