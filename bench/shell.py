"""Commands of the shell, compared with the GNU tools in processes of their own and with bashkit.

    .venv/bin/python -m bench.shell [--quick] [--dir DIRECTORY] [--others DIRECTORY] [--json]

Ours is a shell on a session, with its rules, its quota and its journal, and with logging off; in a worker,
its lines run in another process with a memory limit, as in a service. `GNU` starts the tool by
`subprocess.run` for every command, without a shell and any confinement. bashkit is installed once, in a
virtual environment of its own, and works on the same files, mounted. All collect the output.
Nothing is asserted: the exit status is 0 unless something is broken. README.md says how to read the result.
"""

from __future__ import annotations

import random
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from bench import _machine
from bench._aims import MET, MISSED, UNMEASURED, Aim, Ceiling
from bench._children import BASHKIT, Child, Here, Way
from bench._errors import UnmeasuredError
from bench._packages import Package
from bench._program import Given
from bench._program import run as program
from bench._rows import OURS, Row
from bench._turns import Turns, take_turns
from carrel.sandbox.shell import Shell
from carrel.sandbox.workers.pool import ShellWorkers
from carrel.sandbox.workers.runner import SessionRunner
from carrel.sessions.manager import WorkspaceManager
from carrel.shell.budget import Budget
from carrel.values import MIB, Limits

GNU = "GNU, a process"
WORKER = "ours, in a worker"
BASHKIT_PACKAGE = Package("bashkit", "0.20.1", oldest_python="3.9")
OTHER = f"{BASHKIT_PACKAGE.name} {BASHKIT_PACKAGE.version}"
LINE = "line"
"""The only kind of call: one command line."""

SMALL = {
    "ls": "ls small",
    "cat": "cat small/f.txt",
    "wc": "wc small/f.txt",
    "head": "head -n 5 small/f.txt",
}
TREE = {
    "grep -r": "grep -r needle tree",
    "grep -rn, regex": "grep -rnE 'ne+dle[0-9]?' tree",
    "grep -rl": "grep -rl needle tree",
    "find": "find tree -name '*7.txt'",
    "find -type f": "find tree -type f",
    "wc": None,
    "sort": None,
    "du": "du -s tree",
}
"""What is done over many files; for `None`, all files of one directory after the other are named."""
LARGE = {
    "grep": "grep needle large/big.txt",
    "grep -c, common": "grep -c w1 large/big.txt",
    "grep -i": "grep -i NEEDLE large/big.txt",
    "grep, regex": "grep -E 'ne+dle[0-9]?' large/big.txt",
    "wc": "wc large/big.txt",
    "wc -l": "wc -l large/big.txt",
    "head": "head -n 1 large/big.txt",
    "tail": "tail -n 1 large/big.txt",
    "sort": "sort large/big.txt",
    "du": "du large/big.txt",
    "find": "find large -size +1k",
}
SMALL_AT, MANY, ONE = "a small file", "many files", "one large file"

AIMS = (
    *(
        Ceiling(f"{name} of a small file 10 times faster than a process", name, GNU, 1 / 10, SMALL_AT)
        for name in SMALL
    ),
    Ceiling("grep -r over many files within 2 times GNU grep", "grep -r", GNU, 2, MANY),
    Ceiling("grep over one large file within 2 times GNU grep", "grep", GNU, 2, ONE),
)


class Bench:
    """A shell of ours on a session, and others on the same files."""

    def __init__(self, given: Given) -> None:
        quick = given.quick
        self.others = given.others
        self.base = given.base
        self.calls = 20 if quick else 100
        self.rounds = 2 if quick else 5
        self.directories = 10 if quick else 100
        self.large_bytes = 10**7 if quick else 10**8 - 10**5
        self.missing: dict[str, str] = {}

    def versions(self) -> Mapping[str, str]:
        tools = _machine.programs(coreutils="ls", findutils="find", grep="grep")
        return tools | {BASHKIT_PACKAGE.name: BASHKIT_PACKAGE.version}

    def run(self) -> Iterator[Row]:
        """Measure everything, one row after the other."""
        with ExitStack() as stack:
            manager = stack.enter_context(WorkspaceManager(self.base / "sessions"))
            limits = Limits(disk_bytes=None, entries=None, file_bytes=None)
            workspace = stack.enter_context(manager.create("bench", limits=limits))
            files = self.base / "sessions" / "bench"
            self._plant(files)
            budget = Budget(seconds=600, output_bytes=None)
            workers = ShellWorkers(2, 512 * MIB)
            stack.callback(workers.close)
            runner = SessionRunner(workers, manager, "bench", "host")
            walled = Shell(workspace, budget=budget, runner=runner)
            ways = self._ways(stack, Shell(workspace, budget=budget), walled, files)
            for name, line in SMALL.items():
                yield self._take_turns(name, SMALL_AT, ways, line, calls=self.calls)
            for name, given in TREE.items():
                for_all = " ".join(f"tree/d{n}/f{m}.txt" for n in range(self.directories) for m in range(100))
                yield self._take_turns(name, MANY, ways, given or f"{name} {for_all}", calls=1)
            for name, line in LARGE.items():
                yield self._take_turns(name, ONE, ways, line, calls=1)

    def aims(self, rows: Sequence[Row]) -> list[Aim]:
        """The aims, and their results."""
        return [*(ceiling.judge(rows) for ceiling in AIMS), _nowhere_slower(rows)]

    def _plant(self, files: Path) -> None:
        """One small file, many of them, and a large one; the same in every run."""
        chance = random.Random(7)
        words = [f"w{number}" for number in range(100_000)]

        def lines(count: int) -> bytes:
            return "".join(" ".join(chance.choices(words, k=8)) + "\n" for _ in range(count)).encode()

        (files / "small").mkdir()
        (files / "small" / "f.txt").write_bytes(lines(20))
        for number in range(self.directories):
            directory = files / "tree" / f"d{number}"
            directory.mkdir(parents=True)
            for each in range(100):
                needle = b"a needle here\n" if (number * 100 + each) % 97 == 0 else b""
                (directory / f"f{each}.txt").write_bytes(lines(20) + needle)
        (files / "large").mkdir()
        block = lines(50_000)
        with (files / "large" / "big.txt").open("wb") as big:
            for _ in range(self.large_bytes // len(block)):
                big.write(block)
            big.write(b"a needle here\n")

    def _ways(self, stack: ExitStack, shell: Shell, walled: Shell, files: Path) -> dict[str, Way]:
        ways: dict[str, Way] = {
            OURS: Here({LINE: _ours(shell)}),
            WORKER: Here({LINE: _ours(walled)}),
            GNU: Here({LINE: _gnu(files)}),
        }
        try:
            python = BASHKIT_PACKAGE.python(self.others)
            ways[OTHER] = stack.enter_context(Child(python, BASHKIT, files))
        except UnmeasuredError as error:
            self.missing[OTHER] = str(error)
        return ways

    def _take_turns(
        self, operation: str, detail: str, ways: Mapping[str, Way], line: str, *, calls: int
    ) -> Row:
        row = take_turns(operation, detail, ways, LINE, line, Turns(rounds=self.rounds, calls=calls))
        return replace(row, missing={**self.missing, **row.missing})


def _ours(shell: Shell) -> Callable[[str, int], None]:
    def call(line: str, _: int) -> None:
        result = shell.run(line)
        if result.exit_code:
            raise RuntimeError(f"{line}: {result.stderr.decode()}")

    return call


def _gnu(files: Path) -> Callable[[str, int], None]:
    def call(line: str, _: int) -> None:
        subprocess.run(
            shlex.split(line),
            cwd=files,
            capture_output=True,
            check=True,
            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
        )

    return call


def _nowhere_slower(rows: Sequence[Row]) -> Aim:
    text = "nowhere slower than bashkit"
    judged = [row for row in rows if OTHER in row.figures]
    if not judged:
        return Aim(text, UNMEASURED, "bashkit was not measured")
    slower = [
        f"{row.operation} of {row.detail} {row.ratio(OTHER):.2f} times"
        for row in judged
        if row.ratio(OTHER) > 1
    ]
    worst = max(judged, key=lambda row: row.ratio(OTHER))
    found = (
        ", ".join(slower) or f"at worst {worst.ratio(OTHER):.2f} times ({worst.operation} of {worst.detail})"
    )
    return Aim(text, MISSED if slower else MET, found)


if __name__ == "__main__":
    program("Measure what commands of the shell cost, side by side with other ways.", Bench)
