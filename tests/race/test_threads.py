"""Many threads on one path, and `close()` while others are at work."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from carrel.errors import BusyError, ChangedError, ClosedError, ExistsError, MissingError
from carrel.sessions.manager import WorkspaceManager
from carrel.workspace.workspace import Workspace
from tests.depth import rounds
from tests.race.arena import quiet
from tests.workspace.traces import drafts_in

pytestmark = [pytest.mark.race, pytest.mark.slow, pytest.mark.deeper]

ROUNDS = {2: rounds(500), 8: rounds(200), 64: rounds(40)}
"""Threads at once, and how often."""
CLOSES = rounds(300)
EDITS = rounds(50)

CHAIN = "a/b/c/d/e"


def at_once(count: int, act: Callable[[], object]) -> None:
    """Call *act* in *count* threads that begin together; an error in any of them is an error here."""
    start = threading.Barrier(count)

    def wait_and_act() -> None:
        start.wait()
        act()

    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(wait_and_act) for _ in range(count)]:
            done.result()


def workspaces(top: Path, confinement: str) -> list[Workspace]:
    """One without a scratch directory and one with it."""
    (top / "bare").mkdir()
    return [
        Workspace.open(top / "bare", confinement=confinement, logger=quiet()),
        WorkspaceManager(top / "sessions", confinement=confinement, logger=quiet()).create("many"),
    ]


@pytest.mark.parametrize("confinement", ["kernel", "walk"])
@pytest.mark.parametrize("threads", [2, 8, 64])
def test_many_threads_make_and_remove_one_path_and_all_succeed(
    place: Path, threads: int, confinement: str
) -> None:
    for workspace in workspaces(place, confinement):
        for _ in range(ROUNDS[threads]):
            at_once(threads, partial(workspace.mkdir, CHAIN, exist_ok=True))
            assert workspace.stat(CHAIN).is_directory
            workspace.write(f"{CHAIN}/f", b"in")
            workspace.write("a/f", b"in")
            at_once(threads, partial(workspace.remove, "a", recursive=True, force=True))
            assert workspace.list() == []
        workspace.close()


@pytest.mark.parametrize("threads", [2, 8, 64])
def test_of_many_threads_that_make_one_file_exactly_one_succeeds(place: Path, threads: int) -> None:
    for workspace in workspaces(place, "kernel"):
        for number in range(ROUNDS[threads]):
            outcomes: list[str] = []
            at_once(threads, partial(make_one, workspace, f"d{number}/f", outcomes))
            assert outcomes.count("made") == 1
        workspace.close()


def make_one(workspace: Workspace, path: str, outcomes: list[str]) -> None:
    try:
        workspace.write(path, os.urandom(8), overwrite=False)
    except ExistsError:
        outcomes.append("exists")
    else:
        outcomes.append("made")


@pytest.mark.parametrize("threads", [2, 8])
def test_many_threads_append_to_a_new_file_and_nothing_is_lost(place: Path, threads: int) -> None:
    for workspace in workspaces(place, "kernel"):
        for number in range(ROUNDS[threads]):
            path = f"log{number}"
            at_once(threads, partial(workspace.append, path, b"line\n"))
            assert workspace.read(path) == b"line\n" * threads
        workspace.close()


@pytest.mark.parametrize("threads", [2, 8])
def test_edits_of_one_file_from_many_sides_are_all_made(place: Path, threads: int) -> None:
    """Each thread has a workspace of its own, as another process would; no edit may undo another."""
    (place / "ws").mkdir()
    (place / "ws" / "f").write_bytes(b"end")
    sides = iter([Workspace.open(place / "ws", logger=quiet()) for _ in range(threads)])
    lock = threading.Lock()

    def add_lines() -> None:
        with lock:
            workspace = next(sides)
        made = 0
        while made < EDITS:
            try:
                workspace.edit("f", "end", "line\nend")
            except (ChangedError, BusyError):
                continue
            made += 1
        workspace.close()

    at_once(threads, add_lines)
    assert (place / "ws" / "f").read_bytes() == b"line\n" * (EDITS * threads) + b"end"


@pytest.mark.parametrize("apart", [False, True], ids=["one_workspace", "each_its_own"])
def test_of_many_who_saw_one_version_one_changes_it(place: Path, apart: bool) -> None:
    """Each thread may have a workspace of its own, as another process would."""
    (place / "ws").mkdir()
    sides = [Workspace.open(place / "ws", logger=quiet()) for _ in range(8 if apart else 1)]
    for number in range(ROUNDS[8]):
        seen = sides[0].write("f", b"seen").version
        outcomes: list[str] = []
        turns = iter(range(8))
        at_once(8, partial(_change, sides, turns, f"moved{number}", seen, outcomes))
        assert sorted(outcomes) == ["late"] * 7 + ["won"]
    for workspace in sides:
        workspace.close()


def _change(
    sides: list[Workspace], turns: Iterator[int], target: str, seen: str, outcomes: list[str]
) -> None:
    """Write, append, remove or move what was seen, each of them two threads."""
    turn = next(turns)
    workspace = sides[turn % len(sides)]
    acts: tuple[Callable[[], object], ...] = (
        partial(workspace.write, "f", b"written", if_version=seen),
        partial(workspace.append, "f", b" and more", if_version=seen),
        partial(workspace.remove, "f", if_version=seen),
        partial(workspace.move, "f", target, if_version=seen),
    )
    try:
        acts[turn % len(acts)]()
    except (BusyError, ChangedError, MissingError):
        outcomes.append("late")
    else:
        outcomes.append("won")


def test_a_workspace_closed_while_others_use_it_answers_normally_or_says_that_it_is_closed(
    place: Path,
) -> None:
    """The descriptors that are closed must not be reused under a running operation: a decoy would be read."""
    decoy = place / "decoy"
    decoy.mkdir()
    (decoy / "f").write_bytes(b"decoy")
    sessions = place / "sessions"
    WorkspaceManager(sessions, logger=quiet()).create("closed").write("f", b"in")
    for _ in range(CLOSES):
        # Nobody else keeps the sessions alive, so closing the workspace closes every directory of theirs.
        workspace = WorkspaceManager(sessions, logger=quiet()).open("closed")
        start = threading.Barrier(4)
        with ThreadPoolExecutor(4) as pool:
            reads = pool.submit(use, start, partial(workspace.read, "f"))
            names = pool.submit(use, start, partial(workspace.glob, "*"))
            writes = pool.submit(use, start, partial(workspace.write, "f", b"in"))
            pool.submit(close_and_take_the_numbers, start, workspace, decoy).result()
        assert reads.result() <= {"b'in'"}
        assert names.result() <= {"['f']"}
        assert all("size_bytes=2" in answer for answer in writes.result())
        del workspace, reads, names, writes
    assert os.listdir(decoy) == ["f"]
    assert drafts_in(sessions) == []


def use(start: threading.Barrier, act: Callable[[], object]) -> set[str]:
    """Call *act* until the workspace is closed, and tell what it answered."""
    start.wait()
    answers: set[str] = set()
    try:
        while True:
            answers.add(repr(act()))
    except ClosedError:
        return answers


def close_and_take_the_numbers(start: threading.Barrier, workspace: Workspace, decoy: Path) -> None:
    """Close the workspace, and open the decoy so often that it gets every number that became free."""
    start.wait()
    workspace.close()
    for fd in [os.open(decoy, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) for _ in range(8)]:
        os.close(fd)
