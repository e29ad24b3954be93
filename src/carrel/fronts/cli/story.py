"""The story that `carrel demo` tells: the life of a session in commands, and what each has to answer."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TABLE = "rain.csv"
PLOT = "rain.png"
RAIN = "month,north,south\n" + "".join(f"{n},{60 + 9 * n % 31},{40 + 7 * n % 23}\n" for n in range(1, 13))
"""What is in the table."""
PYTHON = """carrel run demo -c 'import pandas as pd
rain = pd.read_csv("rain.csv", index_col="month")
print(rain.agg(["mean"]).round(1))
rain.plot().figure.savefig("rain.png")'"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command line, run as it stands, and the answer without which the story is not true."""

    line: str
    status: int = 0
    tells: tuple[str, ...] = ()
    """Each of these is somewhere in what it prints."""
    silent: bool = False
    """It prints nothing at all."""

    def problem(self, text: str, status: int) -> str | None:
        """What is wrong with an answer, if anything is."""
        if status != self.status:
            return f"ended with status {status} instead of {self.status}"
        for each in self.tells:
            if each not in text:
                return f"did not say {each!r}"
        return "was not silent" if self.silent and text else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Steps that show one thing."""

    title: str
    steps: tuple[Step, ...]
    note: str | None = None
    """What to say in place of steps that cannot be done here."""


def scenes(*, missing: str | None, keep: Path | None) -> Iterator[Scene]:
    """The whole story; *missing* says why there is no guest, if there is none."""
    yield Scene(
        title="A session with a quota of 1 MB, and a file in it",
        steps=(
            Step(line="carrel session create demo --max-mb 1", tells=("demo\n",)),
            Step(line="carrel files put demo rain.csv", silent=True),
        ),
    )
    yield Scene(
        title="A shell for it, with no program of this machine behind it",
        steps=(
            Step(line="carrel sh demo ls", tells=("rain.csv\n",)),
            Step(line="carrel sh demo 'grep -n ^12, rain.csv'", tells=("13:12,75,55\n",)),
        ),
    )
    yield _python(missing)
    yield Scene(title="Nothing leads out, neither for a path nor for code", steps=_escapes(missing))
    yield Scene(
        title="The quota holds",
        steps=(
            Step(
                line="carrel sh demo --pipelines 'seq 1000000 > seq.txt'",
                status=1,
                tells=("Workspace quota exceeded: ",),
            ),
        ),
    )
    yield Scene(
        title="A role holds: a critic may read, and has no tool that writes",
        steps=(
            Step(
                line="""carrel tool demo --role critic file_write '{"path": "a", "content": ""}'""",
                status=3,
                tells=("There is no tool 'file_write'.",),
            ),
        ),
    )
    yield Scene(
        title="The journal tells what was changed, and what the gate refused", steps=(_journal(missing),)
    )
    if keep is not None:
        yield Scene(title="The files are kept", steps=(_kept(keep),))
    yield Scene(
        title="The session is removed, with all that was in it",
        steps=(
            Step(line="carrel session delete demo", silent=True),
            Step(line="carrel files ls demo", status=1, tells=("no such session: 'demo'",)),
        ),
    )


def _python(missing: str | None) -> Scene:
    title = "Python in WebAssembly on the same files, with pandas and matplotlib"
    if missing is not None:
        return Scene(title=title, steps=(), note=missing)
    return Scene(
        title=title,
        steps=(
            Step(line=PYTHON, tells=("mean   74.6   51.0\n",)),
            Step(line="carrel sh demo 'ls -l rain.png'", tells=(" rain.png\n",)),
        ),
    )


def _escapes(missing: str | None) -> tuple[Step, ...]:
    path = Step(
        line="carrel files cat demo ../secret",
        status=3,
        tells=("path '../secret' escapes session workspace",),
    )
    code = Step(
        line="""carrel run demo -c 'import os; print(sorted(os.listdir("/")))'""",
        tells=("['app', 'tmp', 'workspace']\n",),
    )
    return (path, code) if missing is None else (path,)


def _journal(missing: str | None) -> Step:
    told = ("write   rain.csv ", "refused: path.escape\n", "refused: quota.bytes\n")
    written = () if missing else ("guest    write   rain.png ",)
    return Step(line="carrel session show demo --journal", tells=told + written)


def _kept(keep: Path) -> Step:
    return Step(line=shlex.join(["carrel", "files", "get", "demo", ".", str(keep)]), silent=True)
