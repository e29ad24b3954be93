"""Tool calls, compared with the bare call of the workspace, and a search compared with GNU grep.

    .venv/bin/python -m bench.tools [--quick] [--dir DIRECTORY] [--json]

Ours is a toolbox of a developer on a session: arguments are checked, the role and the time are watched, and
the answer is what an agent gets. `bare` is the call of the workspace that does the work; `GNU` starts `grep`
by `subprocess.run`, without any confinement. Nothing is asserted: the exit status is 0 unless something is
broken. README.md says how to read the result.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench import _machine
from bench._aims import Aim, verdict
from bench._errors import BrokenError
from bench._measure import Effort, Way, race, repeated
from bench._program import Given
from bench._program import run as program
from bench._rows import OURS, Row, row_of
from bench._trees import TEXT
from carrel.sessions.manager import WorkspaceManager
from carrel.tools.toolbox import Toolbox
from carrel.values import Limits

BATCH = 16
BARE = "bare: the workspace"
GREP = "GNU grep, a process"
READ, SEARCH = "file_read", "file_search"
MOST_US = 40
"""What a read through a tool may cost more than without."""


class Bench:
    """A toolbox on one session, and the session itself."""

    def __init__(self, given: Given) -> None:
        base, quick = given.base, given.quick
        limits = Limits(disk_bytes=None, entries=None)
        self.workspace = WorkspaceManager(base / "sessions").create("bench", limits=limits)
        self.toolbox = Toolbox(self.workspace)
        self.host = base / "sessions" / "bench"
        self.short = Effort(rounds=40 if quick else 600, seconds=0.5 if quick else 4)
        self.long = Effort(rounds=3 if quick else 15, seconds=2 if quick else 20)
        self.directories = 10 if quick else 100

    def versions(self) -> Mapping[str, str]:
        return _machine.programs(grep="grep")

    def run(self) -> Iterator[Row]:
        """Measure everything, one row after the other."""
        yield self.read()
        yield self.refuse()
        yield self.write()
        yield self.list()
        yield self.search()

    def aims(self, rows: Sequence[Row]) -> list[Aim]:
        """The aims, and their results."""
        return [_cheap(rows)]

    def read(self) -> Row:
        (self.host / "small.txt").write_text(TEXT)
        return self._short(
            READ,
            "4 KiB",
            {
                OURS: lambda: self._call(READ, path="small.txt"),
                BARE: lambda: self.workspace.read("small.txt"),
            },
        )

    def refuse(self) -> Row:
        """Explain what is wrong with the arguments."""
        return self._short(
            "wrong arguments", "explained", {OURS: lambda: self.toolbox.call(READ, {"pth": "small.txt"})}
        )

    def write(self) -> Row:
        """Replace a file by another content, and tell the difference."""
        contents = [TEXT, TEXT.replace("line 7 ", "line seven ")]

        def turns(write: Callable[[str], object]) -> Callable[[], None]:
            def call() -> None:
                contents.reverse()
                write(contents[0])

            return call

        return self._short(
            "file_write",
            "4 KiB, with diff",
            {
                OURS: turns(lambda text: self._call("file_write", path="w.txt", content=text)),
                BARE: turns(lambda text: self.workspace.write("w.txt", text.encode())),
            },
        )

    def list(self) -> Row:
        directory = self.host / "listed"
        directory.mkdir()
        for number in range(100):
            (directory / f"file-{number}.txt").write_bytes(b"")
        return self._short(
            "file_list",
            "100 files",
            {
                OURS: lambda: self._call("file_list", path="listed"),
                BARE: lambda: self.workspace.list("listed"),
            },
        )

    def search(self) -> Row:
        """Find a word that is in one file of a hundred."""
        for number in range(self.directories):
            directory = self.host / "tree" / f"d{number}"
            directory.mkdir(parents=True)
            for each in range(100):
                needle = "a needle here\n" if each == number % 100 else ""
                (directory / f"f{each}.txt").write_text(TEXT[:1000] + "\n" + needle)
        arguments = {"query": "needle", "path": "tree", "case_sensitive": True, "max_results": 1000}
        ways: dict[str, Callable[[], object]] = {
            OURS: lambda: self._call(SEARCH, **arguments),
            GREP: lambda: _grep(self.host / "tree"),
        }
        found = len(self._call(SEARCH, **arguments)), len(_grep(self.host / "tree").splitlines())
        if found != (self.directories, self.directories):
            raise BrokenError(f"ours finds {found[0]} lines and grep {found[1]}, not {self.directories}")
        racing = {name: Way(call) for name, call in ways.items()}
        return race(SEARCH, f"{self.directories * 100:,} files", racing, count=1, effort=self.long)

    def _call(self, name: str, /, **arguments: Any) -> Any:  # Any: any JSON value
        answer = self.toolbox.call(name, arguments)
        if not answer.success:
            raise BrokenError(f"{name}: {answer.error}")
        return answer.output

    def _short(self, operation: str, detail: str, calls: Mapping[str, Callable[[], object]]) -> Row:
        ways = {name: Way(repeated(call, BATCH)) for name, call in calls.items()}
        return race(operation, detail, ways, count=BATCH, effort=self.short)


def _grep(directory: Path) -> bytes:
    done = subprocess.run(
        ["grep", "-rn", "needle", "."],
        cwd=directory,
        capture_output=True,
        check=True,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    )
    return done.stdout


def _cheap(rows: Sequence[Row]) -> Aim:
    row = row_of(rows, READ)
    ours, bare = row.figures[OURS], row.figures[BARE]
    more = ours.decisive - bare.decisive
    return Aim(
        f"a call of file_read for 4 KiB at most {MOST_US} µs more than the bare read",
        verdict(more, MOST_US),
        f"{more:.1f} µs more (by medians {ours.median - bare.median:.1f})",
    )


if __name__ == "__main__":
    program("Measure what calls of tools cost, side by side with the bare calls and with grep.", Bench)
