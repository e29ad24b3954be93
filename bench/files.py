"""The cost of the gate: files through it, by plain calls, and by resolve-then-check-then-open.

    .venv/bin/python -m bench.files [--quick] [--dir DIRECTORY] [--json]

Ours is the workspace of a session, with its policy and its journal file, and with logging off. `plain` is
what one would write without confinement; `usual` is the usual way: resolve, check, act. Nothing is asserted:
the exit status is 0 unless something is broken. README.md says how to read the result.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, cycle, repeat

from bench import _others as plain
from bench._aims import MET, MISSED, Aim, Ceiling
from bench._errors import BrokenError
from bench._measure import Effort, Way, race
from bench._program import Given
from bench._program import run as program
from bench._rows import OURS, Row
from bench._trees import DATA, dig, fill, name_often, plant, under
from carrel.errors import LimitError
from carrel.sessions.manager import WorkspaceManager

DEPTHS = (1, 3, 8)
BATCH = 16
"""Short enough that a batch mostly runs without being interrupted."""
NAMES = 128 * BATCH
"""More paths than the gate remembers."""
SESSION = "bench"

WALK = "ours, walk resolver"
USUAL = "usual: resolve, check, act"
RGLOB = "usual: rglob, stat"
READ = "plain: open().read()"
WRITE = "plain: open('wb').write()"
UPDATE = "plain: open('r+b').write()"
ATOMIC = "plain: temporary, os.replace"
STAT = "plain: os.stat"
LIST = "plain: scandir, stat, sort"
OS_WALK = "plain: os.walk, os.stat"
RMTREE = "plain: shutil.rmtree"

AIMS = (
    Ceiling("4 KiB read within 2.5 times plain open().read()", "read 4 KiB", READ, 2.5),
    Ceiling("4 KiB read at least 5 times faster than the usual way", "read 4 KiB", USUAL, 1 / 5),
    Ceiling("atomic replace no slower than a plain in-place overwrite", "replace 4 KiB", WRITE, 1),
    Ceiling("walk of 10,000 files faster than rglob with stat", "walk with stat", RGLOB, 1),
    Ceiling("removal no slower than shutil.rmtree", "remove a tree", RMTREE, 1),
)


class Bench:
    """One session, through the gate and by its path on the host."""

    def __init__(self, given: Given) -> None:
        quick = given.quick
        root = given.base / "sessions"
        self.workspace = WorkspaceManager(root).create(SESSION)
        self.walking = WorkspaceManager(root, confinement="walk").open(SESSION)
        self.usual = plain.Usual(root, SESSION)
        self.host = root / SESSION
        self.short = Effort(rounds=40 if quick else 600, seconds=0.2 if quick else 2)
        self.long = Effort(rounds=3 if quick else 15, seconds=0.5 if quick else 8)
        self.files = 1000 if quick else 10_000
        self.levels = 2000 if quick else 20_000
        self._unused = count()

    def versions(self) -> Mapping[str, str]:
        """Nothing but what comes with Python."""
        return {}

    def run(self) -> Iterator[Row]:
        """Measure everything but the deep tree, one row after the other."""
        for measure in (self.read, self.stat, self.create, self.replace, self.refuse_dots, self.refuse_link):
            yield from map(measure, DEPTHS)
        yield self.read_other_names()
        yield self.list()
        yield self.walk()
        yield self.remove(self.files // 100, 100)
        yield self.remove(self.files // 10, 9)

    def aims(self, rows: Sequence[Row]) -> list[Aim]:
        """The aims, and their results."""
        return [*(ceiling.judge(rows) for ceiling in AIMS), self.deep()]

    # Short operations, many to a batch

    def read(self, depth: int) -> Row:
        paths = fill(self.host, depth, "read", BATCH)
        return self._read("read 4 KiB", depth, lambda: repeat(paths))

    def read_other_names(self) -> Row:
        """Read files that were not asked for lately, so that nothing is remembered about their paths."""

        def sources() -> Iterator[list[str]]:
            paths = name_often(self.host, 3, f"many-{next(self._unused)}", NAMES)
            return cycle(paths[start : start + BATCH] for start in range(0, NAMES, BATCH))

        return self._read("read 4 KiB, other names", 3, sources)

    def _read(self, operation: str, depth: int, sources: Callable[[], Iterator[list[str]]]) -> Row:
        calls: dict[str, Callable[[str], bytes]] = {
            OURS: self.workspace.read,
            READ: plain.read,
            USUAL: self.usual.read,
            WALK: self.walking.read,
        }
        (path,) = fill(self.host, depth, "sample", 1)
        for name, call in calls.items():
            found = call(self._on_host(path) if name == READ else path)
            _expect(found == DATA, f"{operation}: {name} finds something else")
        return self._short(operation, f"depth {depth}", calls, sources)

    def stat(self, depth: int) -> Row:
        paths = fill(self.host, depth, "stat", BATCH)
        calls: dict[str, Callable[[str], object]] = {
            OURS: self.workspace.stat,
            STAT: os.stat,
            USUAL: self.usual.stat,
            WALK: self.walking.stat,
        }
        return self._short("stat", f"depth {depth}", calls, lambda: repeat(paths))

    def create(self, depth: int) -> Row:
        fill(self.host, depth, "create", 0)
        calls: dict[str, Callable[[str], object]] = {
            OURS: lambda path: self.workspace.write(path, DATA),
            WRITE: lambda path: plain.write(path, DATA),
            USUAL: lambda path: self.usual.write(path, DATA),
        }
        return self._short("create 4 KiB", f"depth {depth}", calls, lambda: self._new_names(depth))

    def _new_names(self, depth: int) -> Iterator[list[str]]:
        """Names that were never used; what was made with the last ones is removed."""
        while True:
            paths = [under(depth, f"new-{next(self._unused)}") for _ in range(BATCH)]
            yield paths
            for path in paths:
                os.unlink(self.host / path)

    def replace(self, depth: int) -> Row:
        calls: dict[str, Callable[[str], object]] = {
            OURS: lambda path: self.workspace.write(path, DATA),
            WRITE: lambda path: plain.write(path, DATA),
            UPDATE: lambda path: plain.update(path, DATA),
            ATOMIC: lambda path: plain.write_atomically(path, DATA),
            USUAL: lambda path: self.usual.write(path, DATA),
        }
        return self._short(
            "replace 4 KiB",
            f"depth {depth}",
            calls,
            lambda: repeat(fill(self.host, depth, f"replace-{next(self._unused)}", BATCH)),
        )

    def refuse_dots(self, depth: int) -> Row:
        path = under(depth, "../" * (depth + 1) + "etc/passwd")
        return self._refuse("refuse ../../etc/passwd", f"depth {depth}", path)

    def refuse_link(self, depth: int) -> Row:
        fill(self.host, depth, "link", 0)
        link = under(depth, "out")
        os.symlink("/etc", self.host / link)
        return self._refuse("refuse a link out", f"depth {depth}", f"{link}/passwd")

    def _refuse(self, operation: str, detail: str, path: str) -> Row:
        calls: dict[str, Callable[[str], object]] = {
            OURS: lambda path: _refused(self.workspace.read, path),
            USUAL: lambda path: _refused(self.usual.read, path),
            WALK: lambda path: _refused(self.walking.read, path),
        }
        return self._short(operation, detail, calls, lambda: repeat([path] * BATCH))

    def _short(
        self,
        operation: str,
        detail: str,
        calls: Mapping[str, Callable[[str], object]],
        sources: Callable[[], Iterator[list[str]]],
    ) -> Row:
        """Race the calls, each with paths from a source of its own; the plain ones get host paths."""
        ways = {
            name: _one_by_one(call, sources(), f"{self.host}/" if name.startswith("plain") else "")
            for name, call in calls.items()
        }
        return race(operation, detail, ways, count=BATCH, effort=self.short)

    # Long operations, one to a batch

    def list(self) -> Row:
        """List one directory with what is known about each entry, sorted by name."""
        plant(self._on_host("list"), 1, self.files)
        return self._long(
            "list with stat",
            self.files,
            {
                OURS: lambda: self.workspace.list("list/0"),
                LIST: lambda: plain.listing(self._on_host("list/0")),
                USUAL: lambda: self.usual.listing("list/0"),
            },
        )

    def walk(self) -> Row:
        """Visit 100 directories with what is known about each entry."""
        plant(self._on_host("walk"), 100, self.files // 100)
        return self._long(
            "walk with stat",
            self.files + 100,
            {
                OURS: lambda: [*self.workspace.walk("walk")],
                OS_WALK: lambda: plain.walk(self._on_host("walk")),
                RGLOB: lambda: self.usual.walk("walk"),
                WALK: lambda: [*self.walking.walk("walk")],
            },
        )

    def _long(self, operation: str, entries: int, calls: Mapping[str, Callable[[], Sequence[object]]]) -> Row:
        for name, call in calls.items():
            _expect(len(call()) == entries, f"{operation}: {name} does not find {entries} entries")
        ways = {name: Way(call) for name, call in calls.items()}
        return race(operation, f"{entries:,} entries", ways, count=1, effort=self.long)

    def remove(self, directories: int, files_each: int) -> Row:
        def planted(name: str, call: Callable[[], object]) -> Way:
            return Way(call, lambda: plant(self._on_host(name), directories, files_each, b"content\n"))

        ways = {
            OURS: planted("gone-1", lambda: self.workspace.remove("gone-1", recursive=True)),
            RMTREE: planted("gone-2", lambda: shutil.rmtree(self._on_host("gone-2"))),
        }
        detail = f"{directories:,} x {files_each} files"
        return race("remove a tree", detail, ways, count=1, effort=self.long)

    def _on_host(self, path: str) -> str:
        return f"{self.host}/{path}"

    # A tree deeper than any path can say

    def deep(self) -> Aim:
        """Walk and remove a tree of very many levels, with hardly any stack to recurse on."""
        dig(self.host, "deep", self.levels)
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(100)
        try:
            told = self._walk_tells_its_limit("deep")
            self.workspace.remove("deep", recursive=True)
        finally:
            sys.setrecursionlimit(limit)
        removed = not os.path.lexists(self._on_host("deep"))
        return Aim(
            f"{self.levels:,} levels: removed, walked with the limit reported, never recursed into",
            MET if removed and told else MISSED,
            f"removed: {_yes(removed)}, limit reported: {_yes(told)}, within 100 frames of stack: yes",
        )

    def _walk_tells_its_limit(self, path: str) -> bool:
        seen = 0
        try:
            for _ in self.workspace.walk(path):
                seen += 1
        except LimitError:
            return seen == self.workspace.limits.depth
        return False


def _one_by_one(call: Callable[[str], object], source: Iterator[list[str]], prefix: str) -> Way:
    """Call for one path after the other; each batch has those the source gives next."""
    paths: list[str] = []

    def prepare() -> None:
        paths[:] = [prefix + path for path in next(source)]

    def batch() -> None:
        for path in paths:
            call(path)

    return Way(batch, prepare)


def _refused(read: Callable[[str], bytes], path: str) -> None:
    try:
        read(path)
    except ValueError:
        return
    raise BrokenError(f"{path!r} was not refused")


def _expect(true: bool, problem: str) -> None:
    if not true:
        raise BrokenError(problem)


def _yes(true: bool) -> str:
    return "yes" if true else "NO"


if __name__ == "__main__":
    program("Measure what the gate costs, side by side with other ways.", Bench)
