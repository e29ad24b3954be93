"""The script of `carrel demo`: command lines in sections, and what each must answer."""

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
class DemoStep:
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
class DemoSection:
    """Steps that show one thing."""

    title: str
    steps: tuple[DemoStep, ...]
    note: str | None = None
    """What to say in place of steps that cannot be done here."""


def demo_sections(*, missing: str | None, keep: Path | None) -> Iterator[DemoSection]:
    """The whole story; *missing* says why there is no guest, if there is none."""
    yield DemoSection(
        title="A session with a quota of 1 MB, and a file in it",
        steps=(
            DemoStep(line="carrel session create demo --max-mb 1", tells=("demo\n",)),
            DemoStep(line="carrel files put demo rain.csv", silent=True),
        ),
    )
    yield DemoSection(
        title="A shell for it, with no program of this machine behind it",
        steps=(
            DemoStep(line="carrel sh demo ls", tells=("rain.csv\n",)),
            DemoStep(line="carrel sh demo 'grep -n ^12, rain.csv'", tells=("13:12,75,55\n",)),
        ),
    )
    yield _python(missing)
    yield DemoSection(title="Nothing leads out, neither for a path nor for code", steps=_escapes(missing))
    yield DemoSection(
        title="The quota holds",
        steps=(
            DemoStep(
                line="carrel sh demo --pipelines 'seq 1000000 > seq.txt'",
                status=1,
                tells=("Workspace quota exceeded: ",),
            ),
        ),
    )
    yield DemoSection(
        title="A role holds: a critic may read, and has no tool that writes",
        steps=(
            DemoStep(
                line="""carrel tool demo --role critic file_write '{"path": "a", "content": ""}'""",
                status=3,
                tells=("There is no tool 'file_write'.",),
            ),
        ),
    )
    yield DemoSection(
        title="The journal tells what was changed, and what the gate refused", steps=(_journal(missing),)
    )
    if keep is not None:
        yield DemoSection(title="The files are kept", steps=(_kept(keep),))
    yield DemoSection(
        title="The session is removed, with all that was in it",
        steps=(
            DemoStep(line="carrel session delete demo", silent=True),
            DemoStep(line="carrel files ls demo", status=1, tells=("no such session: 'demo'",)),
        ),
    )


def _python(missing: str | None) -> DemoSection:
    title = "Python in WebAssembly on the same files, with pandas and matplotlib"
    if missing is not None:
        return DemoSection(title=title, steps=(), note=missing)
    return DemoSection(
        title=title,
        steps=(
            DemoStep(line=PYTHON, tells=("mean   74.6   51.0\n",)),
            DemoStep(line="carrel sh demo 'ls -l rain.png'", tells=(" rain.png\n",)),
        ),
    )


def _escapes(missing: str | None) -> tuple[DemoStep, ...]:
    path = DemoStep(
        line="carrel files cat demo ../secret",
        status=3,
        tells=("path '../secret' escapes session workspace",),
    )
    code = DemoStep(
        line="""carrel run demo -c 'import os; print(sorted(os.listdir("/")))'""",
        tells=("['app', 'tmp', 'workspace']\n",),
    )
    return (path, code) if missing is None else (path,)


def _journal(missing: str | None) -> DemoStep:
    told = ("write   rain.csv ", "refused: path.escape\n", "refused: quota.bytes\n")
    written = () if missing else ("guest    write   rain.png ",)
    return DemoStep(line="carrel session show demo --journal", tells=told + written)


def _kept(keep: Path) -> DemoStep:
    return DemoStep(line=shlex.join(["carrel", "files", "get", "demo", ".", str(keep)]), silent=True)
