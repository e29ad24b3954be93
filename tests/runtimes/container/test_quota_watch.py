"""Looking at how much a program has written, while it runs."""

from __future__ import annotations

from pathlib import Path
from threading import Event, Semaphore
from typing import cast

import pytest

from carrel.containers.container import Container
from carrel.fs.cancellable import checkpoint
from carrel.runtimes.container import quota_watch
from carrel.runtimes.container.quota_watch import QuotaWatch
from carrel.values import Limits, Usage
from carrel.workspace.unmediated_run import UnmediatedRun
from carrel.workspace.workspace import Workspace


class LongUse(UnmediatedRun):
    """The use of a workspace so large that a look at it takes longer than the program runs."""

    guard: QuotaWatch
    looking = Event()
    has_seen_all = False

    def measure(self) -> Usage:
        self.looking.set()
        self.guard._stopped.wait()
        checkpoint()
        self.has_seen_all = True
        return Usage(disk_bytes=0, entries=0)


def test_a_look_ends_with_the_program(directory: Path) -> None:
    with Workspace.open(directory, limits=Limits(disk_bytes=100)) as workspace:
        use = LongUse(workspace)
        # Nothing is asked of a container by a first look.
        use.guard = QuotaWatch(use, cast("Container", None))
        with use.guard:
            use.looking.wait()
        assert (use.has_seen_all, use.guard.problem) == (False, None)


class SmallUse(UnmediatedRun):
    """The use of a workspace that is looked at quickly."""

    looks = Semaphore(0)

    def measure(self) -> Usage:
        self.looks.release()
        return Usage(disk_bytes=0, entries=0)


class Freezer:
    """A container that only notes what is asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.frozen = Event()
        self.killed = Event()

    def kill(self) -> None:
        self.asked.append("kill")
        self.killed.set()

    def pause(self) -> None:
        self.asked.append("pause")
        self.frozen.set()

    def unpause(self) -> None:
        self.asked.append("unpause")


def test_nothing_is_frozen_before_the_program_has_begun(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota_watch, "_MIN_PAUSE_SECONDS", 0)
    monkeypatch.setattr(quota_watch, "_FROZEN_EVERY", 1)
    container = Freezer()
    with Workspace.open(directory, limits=Limits(disk_bytes=100)) as workspace:
        use = SmallUse(workspace)
        with QuotaWatch(use, cast("Container", container)) as guard:
            for _ in range(3):
                use.looks.acquire()
            assert container.asked == []
            guard.may_freeze = True
            container.frozen.wait()
    assert container.asked[:2] == ["pause", "unpause"]
    assert container.asked.count("pause") == container.asked.count("unpause")


class FailingUse(UnmediatedRun):
    """The use of a workspace whose usage cannot be measured, by a mistake of ours."""

    def measure(self) -> Usage:
        raise RuntimeError("mistake")


def test_a_program_that_nothing_measures_any_more_is_ended(directory: Path) -> None:
    container = Freezer()
    with Workspace.open(directory, limits=Limits(disk_bytes=100)) as workspace:
        with QuotaWatch(FailingUse(workspace), cast("Container", container)) as guard:
            container.killed.wait()
        assert guard.problem
    assert container.asked == ["kill"]
