"""The cost of a session: its life cycle, and its quota and journal at every write.

    .venv/bin/python -m bench.sessions [--quick] [--dir DIRECTORY] [--json]

Ours is a `WorkspaceManager` with its registry, its ledgers and its journals on disk, and with logging off.
`usual` is what is usually done: a directory with a JSON file for what is known about the session, a scan of
the whole workspace before each write for the quota, `shutil.rmtree` for what is too old. Nothing is asserted:
the exit status is 0 unless something is broken. README.md says how to read the result.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count

from bench import _others as plain
from bench._aims import MET, MISSED, Aim, Ceiling, verdict
from bench._measure import Effort, Way, race, repeated
from bench._program import Given
from bench._program import run as program
from bench._rows import OURS, Row, row_of
from bench._trees import DATA, plant
from carrel.fs.accounts import NullAccount
from carrel.sessions.manager import WorkspaceManager
from carrel.values import Limits
from carrel.workspace.workspace import Workspace

BATCH = 16
FEW = 4
"""Of what waits for the disk."""
ROOMY = Limits(disk_bytes=2**40, entries=10**7)
DAY_SECONDS = 86_400

JSON_FILE = "usual: mkdir, JSON file"
RMTREE = "usual: shutil.rmtree"
PRUNE = "usual: read JSON, rmtree"
SCAN = "usual: scan, then write"
UNCOUNTED = "ours, no ledger, no journal"
DISK = "ours, durability disk"
WRITE = "plain: open('wb').write()"

AIMS = (Ceiling("ledger and journal together less than the write itself", "replace 4 KiB", UNCOUNTED, 2),)


class Bench:
    """A manager, and directories made the usual way beside it."""

    def __init__(self, given: Given) -> None:
        base, quick = given.base, given.quick
        self.base = base
        self.manager = WorkspaceManager(base / "sessions", limits=ROOMY, max_sessions=None)
        self.usual = base / "usual"
        self.usual.mkdir()
        self.short = Effort(rounds=40 if quick else 400, seconds=0.3 if quick else 4)
        self.long = Effort(rounds=3 if quick else 7, seconds=1 if quick else 20)
        self.sizes = (10, 1_000, 5_000) if quick else (10, 10_000, 100_000)
        self.swept = 100 if quick else 1_000
        self._unused = count()

    def versions(self) -> Mapping[str, str]:
        """Nothing but what comes with Python."""
        return {}

    def run(self) -> Iterator[Row]:
        """Measure everything, one row after the other."""
        yield self.create()
        yield self.open()
        yield self.delete()
        crowded = {size: self._crowded(size) for size in self.sizes}
        yield self.cost(crowded[self.sizes[0]])
        yield self.flat(crowded)
        for size, workspace in crowded.items():
            yield self.scan(size, workspace)
        yield self.sweep()
        yield from self.durable()

    # The life of a session

    def create(self) -> Row:
        """Make sessions; each batch removes what the last one made, off the clock."""

        def make(create: Callable[[str], object], remove: Callable[[str], object]) -> Way:
            names: list[str] = []

            def prepare() -> None:
                for name in names:
                    remove(name)
                names[:] = [f"new-{next(self._unused)}" for _ in range(BATCH)]

            return Way(lambda: [create(name) for name in names], prepare)

        ways = {
            OURS: make(lambda name: self.manager.create(name).close(), self._forget),
            JSON_FILE: make(self._create_usual, lambda name: shutil.rmtree(self.usual / name, True)),
        }
        return race("create a session", "", ways, count=BATCH, effort=self.short)

    def open(self) -> Row:
        """Open a session with what is known about it, and let it go."""
        self.manager.create("opened").close()
        self._create_usual("opened")
        ways = {
            OURS: Way(repeated(lambda: self.manager.open("opened").close(), BATCH)),
            "usual: read the JSON file": Way(repeated(lambda: self._read_usual("opened"), BATCH)),
        }
        return race("open a session", "", ways, count=BATCH, effort=self.short)

    def delete(self) -> Row:
        """Delete a session of 100 files."""

        def fill_ours() -> None:
            self.manager.create("deleted").close()
            plant(str(self.manager.root / "deleted"), 10, 10)

        def fill_usual() -> None:
            self._create_usual("deleted")
            plant(str(self.usual / "deleted"), 10, 10)

        ways = {
            OURS: Way(lambda: self.manager.delete_workspace("deleted"), fill_ours),
            RMTREE: Way(lambda: shutil.rmtree(self.usual / "deleted"), fill_usual),
        }
        return race("delete a session", "100 files", ways, count=1, effort=self.short)

    def _create_usual(self, name: str) -> None:
        (self.usual / name).mkdir()
        self._write_usual(name, time.time())

    def _write_usual(self, name: str, used: float) -> None:
        known = {"session_id": name, "created_at": used, "updated_at": used, "version": 1}
        (self.usual / name / ".metadata.json").write_text(json.dumps(known))

    def _read_usual(self, name: str) -> float:
        known = json.loads((self.usual / name / ".metadata.json").read_text())
        return float(known["updated_at"])

    def _forget(self, name: str) -> None:
        self.manager.delete_workspace(name)

    # Writing

    def _crowded(self, files: int) -> Workspace:
        """A session with so many files, in directories of 100."""
        name = f"crowded-{files}"
        workspace = self.manager.create(name)
        plant(str(self.manager.root / name / "crowd"), max(1, files // 100), min(files, 100), b"x")
        workspace.recount()
        return workspace

    def cost(self, workspace: Workspace) -> Row:
        """The same write with the ledger and the journal, and without either."""
        bare = self.manager.open(workspace.session_id or "")
        # The same files and drafts, but nobody counts or records.
        bare._files.account = NullAccount()
        host = f"{self.manager.root / (workspace.session_id or '')}/plain"
        ways = {
            OURS: _replace(workspace, "ours"),
            UNCOUNTED: _replace(bare, "uncounted"),
            WRITE: Way(repeated(lambda: plain.write(host, DATA), BATCH)),
        }
        return race("replace 4 KiB", "", ways, count=BATCH, effort=self.short)

    def flat(self, crowded: dict[int, Workspace]) -> Row:
        """The same write beside few and beside many files."""
        few, *many = crowded
        ways = {OURS: _replace(crowded[few], "flat")}
        for size in many:
            ways[f"ours, {size:,} files"] = _replace(crowded[size], "flat")
        return race("replace, files beside it", f"{few} files", ways, count=BATCH, effort=self.short)

    def scan(self, size: int, workspace: Workspace) -> Row:
        """The quota by a ledger, and by looking at every file first."""
        top = f"{self.manager.root}/{workspace.session_id}"

        def scan_and_write() -> None:
            if _scan(top) + len(DATA) > 2**40:
                raise OSError("quota")
            plain.write(f"{top}/scanned", DATA)

        ways = {
            OURS: Way(lambda: workspace.write("counted", DATA)),
            SCAN: Way(scan_and_write),
        }
        return race("write within a quota", f"{size:,} files", ways, count=1, effort=self.long)

    # The end

    def sweep(self) -> Row:
        """Remove many sessions of ten files whose time is over."""
        clock_ns = time.time_ns

        def fill_ours() -> None:
            past = WorkspaceManager(
                self.base / "swept", max_sessions=None, clock=lambda: clock_ns() - 2 * DAY_SECONDS * 10**9
            )
            for number in range(self.swept):
                past.create(f"old-{number}").close()
                plant(str(past.root / f"old-{number}"), 1, 10)
                for name in ("ledger", "lease"):
                    os.utime(past.root / f".carrel/sessions/old-{number}/{name}", (0, 0))

        def fill_usual() -> None:
            for number in range(self.swept):
                self._create_usual(f"old-{number}")
                self._write_usual(f"old-{number}", time.time() - 2 * DAY_SECONDS)
                plant(str(self.usual / f"old-{number}"), 1, 10)

        def sweep_ours() -> None:
            with WorkspaceManager(self.base / "swept", max_sessions=None) as manager:
                found = manager.sweep()
                if len(found.deleted) != self.swept:
                    raise RuntimeError(f"the sweep did not remove all: {found}")

        def prune() -> None:
            for name in os.listdir(self.usual):
                if self._read_usual(name) < time.time() - DAY_SECONDS:
                    shutil.rmtree(self.usual / name)

        ways = {OURS: Way(sweep_ours, fill_ours), PRUNE: Way(prune, fill_usual)}
        return race("sweep", f"{self.swept:,} sessions", ways, count=self.swept, effort=self.long)

    # Durability

    def durable(self) -> Iterator[Row]:
        """The same changes, acknowledged when the kernel has them and when the disk has them."""
        flushing = WorkspaceManager(self.base / "durable", limits=ROOMY, max_sessions=None, durability="disk")
        managers = {OURS: self.manager, DISK: flushing}
        opened = {name: manager.create("durable") for name, manager in managers.items()}
        changes: dict[str, Callable[[Workspace, str], object]] = {
            "create 4 KiB": lambda workspace, name: workspace.write(name, DATA),
            "replace 4 KiB": lambda workspace, _: workspace.write("replaced", DATA),
            "append 4 KiB": lambda workspace, _: workspace.append("appended", DATA),
            "mkdir": lambda workspace, name: workspace.mkdir(f"{name}.d"),
            "remove": lambda workspace, name: workspace.remove(name),
        }
        for operation, change in changes.items():
            ways = {
                name: self._named(partial(change, workspace), operation == "remove" and workspace)
                for name, workspace in opened.items()
            }
            yield race(operation, "disk durability", ways, count=FEW, effort=self.short)
        ways = {
            name: Way(repeated(partial(self._create_and_close, manager), FEW))
            for name, manager in managers.items()
        }
        yield race("create a session", "disk durability", ways, count=FEW, effort=self.short)

    def _named(self, change: Callable[[str], object], planted: Workspace | bool) -> Way:
        """Change names that are new, or have a file in the workspace *planted*."""
        names: list[str] = []

        def prepare() -> None:
            names[:] = [f"new-{next(self._unused)}" for _ in range(FEW)]
            if isinstance(planted, Workspace):
                for name in names:
                    planted.write(name, DATA)

        return Way(lambda: [change(name) for name in names], prepare)

    def _create_and_close(self, manager: WorkspaceManager) -> None:
        manager.create(f"new-{next(self._unused)}").close()

    # The aims

    def aims(self, rows: Sequence[Row]) -> list[Aim]:
        """The aims, and their results."""
        return [self.creation(), _flatness(rows), *(ceiling.judge(rows) for ceiling in AIMS)]

    def creation(self) -> Aim:
        """The time that the processor works on one session."""
        started = time.process_time()
        for number in range(200):
            self.manager.create(f"cpu-{number}").close()
        spent_us = (time.process_time() - started) / 200 * 1e6
        return Aim(
            "session creation under 1 ms of CPU",
            MET if spent_us < 1000 else MISSED,
            f"{spent_us:,.0f} µs to create and close one, mean of 200",
        )


def _replace(workspace: Workspace, path: str) -> Way:
    return Way(repeated(lambda: workspace.write(path, DATA), BATCH))


def _scan(top: str) -> int:
    """Sum of the sizes of all files, found by looking at each."""
    size = 0
    for directory, _, files in os.walk(top):
        for name in files:
            size += os.lstat(os.path.join(directory, name)).st_size
    return size


def _flatness(rows: Sequence[Row]) -> Aim:
    row = row_of(rows, "replace, files beside it")
    ratios = {way: row.ratio(OURS, way) for way in row.others}
    found = ", ".join(f"{way.removeprefix('ours, ')}: {ratio:.2f}" for way, ratio in ratios.items())
    return Aim(
        "the cost of a write flat within 10 % whatever is there",
        verdict(max(ratios.values()), 1.1),
        f"times {row.detail}: {found}",
    )


if __name__ == "__main__":
    program("Measure what a session costs, side by side with other ways.", Bench)
