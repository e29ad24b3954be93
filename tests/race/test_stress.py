"""Many processes at work in one small session while others of them are killed."""

from __future__ import annotations

import mmap
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from carrel.audit.event import Event
from carrel.errors import (
    CarrelError,
    ClosedError,
    DiskError,
    SessionMissingError,
    UnavailableError,
)
from carrel.fs.handle import Handle
from carrel.policy.rules import Access
from carrel.sessions.manager import WorkspaceManager
from carrel.storage.local.lock import SessionLock
from carrel.values import Limits
from carrel.workspace.workspace import Workspace
from tests.depth import rounds
from tests.race.arena import quiet
from tests.storage.ledgers import age_drafts, count, leftovers, listing, page, replay, state
from tests.workspace.archives import file, tar
from tests.workspace.dying import Moment, arm, forked

pytestmark = [pytest.mark.race, pytest.mark.slow]

KILLED = rounds(25)
"""It goes on until so many processes were killed,"""
RECOUNTS = rounds(15)
"""and until the files had to be counted so often because one was killed in the middle of a change."""
PROCESSES = 16
PAUSE_SECONDS = 0.02
"""Between two looks; at each, a process may be killed."""
KILLS = 0.5
"""How likely that is. Most processes wait most of the time, so this seldom hits the middle of a change."""
DEATHS = 0.02
"""How likely a process kills itself, some system calls after it begins a change."""

LIMITS = Limits(disk_bytes=20_000, entries=30)
DIRECTORIES = ["", "a/", "b/", "a/c/", "b/d/e/"]
TREES = ["a", "b", "a/c", "b/d", "b/d/e", "g"]

UNEXPECTED = (ClosedError, DiskError, SessionMissingError, UnavailableError)


class Worker:
    """One process that changes whatever comes to its mind."""

    def __init__(self, workspace: Workspace, seed: int) -> None:
        self.workspace = workspace
        self.random = random.Random(seed)

    def work(self, is_over: mmap.mmap) -> None:
        """Go on until it is over; what is refused for a good reason is no problem."""
        acts: list[Callable[[], object]] = [
            *[self.write] * 6,
            *[self.append] * 4,
            *[self.remove] * 3,
            *[self.move] * 3,
            *[self.copy] * 2,
            self.write_chunks,
            self.edit,
            self.mkdir,
            self.link,
            self.remove_tree,
            self.move_tree,
            self.copy_tree,
            self.extract,
            self.workspace.usage,
        ]
        while not is_over[0]:
            if self.random.random() < DEATHS:
                arm(self.random.randrange(1, 20), self.random.choice(list(Moment)))
            try:
                self.random.choice(acts)()
            except CarrelError as error:
                if isinstance(error, UNEXPECTED):
                    raise

    def file(self) -> str:
        return self.random.choice(DIRECTORIES) + self.random.choice("uvwxyz")

    def tree(self) -> str:
        return self.random.choice(TREES)

    def data(self) -> bytes:
        return b"n" * self.random.choice([0, 1, 10, 100, 1000, 3000])

    def is_bold(self) -> bool:
        return self.random.random() < 0.5

    def write(self) -> None:
        self.workspace.write(self.file(), self.data(), overwrite=self.is_bold())

    def write_chunks(self) -> None:
        self.workspace.write_chunks(self.file(), [self.data() for _ in range(3)])

    def append(self) -> None:
        self.workspace.append(self.file(), self.data())

    def edit(self) -> None:
        self.workspace.edit(self.file(), "n", "mmm", replace_all=True)

    def mkdir(self) -> None:
        self.workspace.mkdir(self.tree(), exist_ok=self.is_bold())

    def link(self) -> None:
        files, where = self.workspace.gate.permit(Access.WRITE, self.file())
        files.link(where, self.random.choice("uvwxyz"))

    def remove(self) -> None:
        self.workspace.remove(self.file())

    def remove_tree(self) -> None:
        self.workspace.remove(self.tree(), recursive=True)

    def move(self) -> None:
        self.workspace.move(self.file(), self.file(), overwrite=self.is_bold())

    def move_tree(self) -> None:
        self.workspace.move(self.tree(), self.tree(), overwrite=self.is_bold())

    def copy(self) -> None:
        self.workspace.copy(self.file(), self.file(), overwrite=self.is_bold())

    def copy_tree(self) -> None:
        self.workspace.copy(self.tree(), self.tree(), recursive=True, overwrite=self.is_bold())

    def extract(self) -> None:
        archive = tar(file("x", self.data()), file("h/y", self.data()))
        self.workspace.extract(archive, self.tree(), overwrite=self.is_bold())


class Crew:
    """The processes at work."""

    def __init__(self, sessions: WorkspaceManager) -> None:
        self.sessions = sessions
        self.is_over = mmap.mmap(-1, 1)
        """Shared by all of them: whether to end."""
        self.random = random.Random(0)
        self.started = 0
        self.killed = 0
        self.alive: list[int] = []

    def fill_up(self) -> None:
        while len(self.alive) < PROCESSES:
            self.started += 1
            self.alive.append(forked(partial(self._work, self.started)))

    def _work(self, seed: int) -> None:
        with self.sessions.open("busy") as workspace:
            Worker(workspace, seed).work(self.is_over)

    def kill_one(self) -> None:
        os.kill(self.random.choice(self.alive), signal.SIGKILL)

    def bury(self, options: int = os.WNOHANG) -> None:
        """Take note of those that are dead, or with other *options* wait for all of them."""
        for child in tuple(self.alive):
            found, status = os.waitpid(child, options)
            if found:
                self.alive.remove(child)
                is_killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
                assert is_killed or (status == 0 and self.is_over[0])
                self.killed += is_killed


class Watch:
    """Looks at the session in moments when nobody changes it."""

    def __init__(self, sessions: WorkspaceManager) -> None:
        self.sessions = sessions
        self.lock = SessionLock(Handle(os.open(state(sessions, "busy"), os.O_PATH)))
        self.seen: Counter[str] = Counter()
        self.most_bytes = self.most_entries = 0

    def look(self) -> None:
        """What is there is within the limits, and what the ledger says if nobody was killed in between."""
        self.lock.acquire()
        try:
            found = count(self.sessions.root / "busy")
            said = page(self.sessions, "busy")
        finally:
            self.lock.release()
        self.most_bytes = max(self.most_bytes, found.disk_bytes)
        self.most_entries = max(self.most_entries, found.entries)
        assert LIMITS.disk_bytes is not None
        assert LIMITS.entries is not None
        assert found.disk_bytes <= LIMITS.disk_bytes
        assert found.entries <= LIMITS.entries
        if said.mark:
            self.seen["marked"] += 1
        elif said.pending_deletions:
            self.seen["owed"] += 1
            assert found.disk_bytes <= said.disk_bytes
            assert found.entries <= said.entries
        else:
            self.seen["settled"] += 1
            assert found == said.usage


def test_many_processes_of_which_many_are_killed_keep_the_books_in_order(place: Path) -> None:
    sessions = WorkspaceManager(place / "sessions", limits=LIMITS, logger=quiet())
    sessions.create("busy").close()
    watch = Watch(sessions)
    crew = Crew(sessions)
    events: list[Event] = []
    with sessions.open("busy") as workspace:

        def read_on() -> None:
            events.extend(workspace.changes(events[-1].sequence if events else 0))

        def is_enough() -> bool:
            refused = {event.error for event in events}
            return (
                crew.killed >= KILLED
                and page(sessions, "busy").recounts >= RECOUNTS
                and refused >= {"quota.bytes", "quota.entries"}
                and watch.seen["settled"] > 0
            )

        while not is_enough():
            crew.bury()
            crew.fill_up()
            watch.look()
            read_on()
            if crew.random.random() < KILLS:
                crew.kill_one()
            time.sleep(PAUSE_SECONDS)
        crew.is_over[0] = 1
        crew.bury(0)
        found = workspace.usage()
        read_on()
        watch.look()
        recounts = page(sessions, "busy").recounts
        assert found == count(sessions.root / "busy") == workspace.recount()
        assert replay(events) == listing(sessions.root / "busy")
        age_drafts(sessions, "busy")
        sessions.sweep()
        assert leftovers(sessions, "busy") == []
        assert found == workspace.usage() == count(sessions.root / "busy")
    refused = Counter(event.error for event in events if event.error)
    print(f"{len(events)} records, {crew.killed} killed, {recounts} counts, {dict(watch.seen)},")
    print(f"at most {watch.most_bytes} bytes in {watch.most_entries} entries, refused: {dict(refused)}")
    assert recounts <= crew.killed
