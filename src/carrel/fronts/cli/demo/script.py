"""The script of `carrel demo`: command lines in sections, each with its expected result."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TABLE = "rain.csv"
PLOT = "rain.png"
RAIN = "month,north,south\n" + "".join(f"{n},{60 + 9 * n % 31},{40 + 7 * n % 23}\n" for n in range(1, 13))
"""The content of `TABLE`."""
PYTHON = """carrel run demo -c 'import pandas as pd
rain = pd.read_csv("rain.csv", index_col="month")
print(rain.agg(["mean"]).round(1))
rain.plot().figure.savefig("rain.png")'"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoStep:
    """A command line and its expected result."""

    line: str
    status: int = 0
    expected: tuple[str, ...] = ()
    """Texts that the output must contain."""
    silent: bool = False
    """Whether the command must print nothing."""

    def problem(self, text: str, status: int) -> str | None:
        """Describe how a result differs from the expected one; `None` if it does not."""
        if status != self.status:
            return f"exited with status {status} instead of {self.status}"
        for each in self.expected:
            if each not in text:
                return f"did not print {each!r}"
        return "printed something" if self.silent and text else None


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSection:
    """Steps that demonstrate one feature."""

    title: str
    steps: tuple[DemoStep, ...]
    note: str | None = None
    """Printed in place of steps that cannot run here."""


def demo_sections(*, missing: str | None, keep: Path | None) -> Iterator[DemoSection]:
    """The sections of the demo; *missing* says why there is no guest, *keep* is where to copy the files."""
    yield DemoSection(
        title="A session with a quota of 1 MB, and a file in it",
        steps=(
            DemoStep(line="carrel session create demo --max-mb 1", expected=("demo\n",)),
            DemoStep(line="carrel files put demo rain.csv", silent=True),
        ),
    )
    yield DemoSection(
        title="A built-in shell, which starts no program of this machine",
        steps=(
            DemoStep(line="carrel sh demo ls", expected=("rain.csv\n",)),
            DemoStep(line="carrel sh demo 'grep -n ^12, rain.csv'", expected=("13:12,75,55\n",)),
        ),
    )
    yield _python(missing)
    yield DemoSection(title="Neither paths nor code can leave the session", steps=_escapes(missing))
    yield DemoSection(
        title="The quota is enforced",
        steps=(
            DemoStep(
                line="carrel sh demo --pipelines 'seq 1000000 > seq.txt'",
                status=1,
                expected=("Workspace quota exceeded: ",),
            ),
        ),
    )
    yield DemoSection(
        title="Roles are enforced: a critic can read, and has no tool that writes",
        steps=(
            DemoStep(
                line="""carrel tool demo --role critic file_write '{"path": "a", "content": ""}'""",
                status=3,
                expected=("There is no tool 'file_write'.",),
            ),
        ),
    )
    yield DemoSection(title="The journal records every change and every refusal", steps=(_journal(missing),))
    if keep is not None:
        yield DemoSection(title="The files are kept", steps=(_kept(keep),))
    yield DemoSection(
        title="The session is deleted with all its files",
        steps=(
            DemoStep(line="carrel session delete demo", silent=True),
            DemoStep(line="carrel files ls demo", status=1, expected=("no such session: 'demo'",)),
        ),
    )


def _python(missing: str | None) -> DemoSection:
    title = "Python in WebAssembly on the same files, with pandas and matplotlib"
    if missing is not None:
        return DemoSection(title=title, steps=(), note=missing)
    return DemoSection(
        title=title,
        steps=(
            DemoStep(line=PYTHON, expected=("mean   74.6   51.0\n",)),
            DemoStep(line="carrel sh demo 'ls -l rain.png'", expected=(" rain.png\n",)),
        ),
    )


def _escapes(missing: str | None) -> tuple[DemoStep, ...]:
    path = DemoStep(
        line="carrel files cat demo ../secret",
        status=3,
        expected=("path '../secret' escapes session workspace",),
    )
    code = DemoStep(
        line="""carrel run demo -c 'import os; print(sorted(os.listdir("/")))'""",
        expected=("['app', 'tmp', 'workspace']\n",),
    )
    return (path, code) if missing is None else (path,)


def _journal(missing: str | None) -> DemoStep:
    records = ("write   rain.csv ", "refused: path.escape\n", "refused: quota.bytes\n")
    guest_records = () if missing else ("guest    write   rain.png ",)
    return DemoStep(line="carrel session show demo --journal", expected=records + guest_records)


def _kept(keep: Path) -> DemoStep:
    return DemoStep(line=shlex.join(["carrel", "files", "get", "demo", ".", str(keep)]), silent=True)
