"""A disk that does not store what it is asked to flush: nothing is acknowledged, and the books agree."""

from __future__ import annotations

import errno
import itertools
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from carrel.audit.logger import SandboxLogger
from carrel.errors import CarrelError, DiskError, DiskFullError, UnavailableError
from carrel.fs.nonblocking import WouldBlock, run_nonblocking
from carrel.policy.rules import AccessMode, PathRule
from carrel.sessions.manager import WorkspaceManager
from tests.faults.inject import Call, failing, in_memory
from tests.storage.ledgers import count, page, require_agreement
from tests.workspace.changes import CHANGES, plant_allowed, planted
from tests.workspace.traces import records_in, sweep_all, workspaces_in

ONE_RECORD = ("write over", "append", "mkdir", "remove", "remove a tree", "move over", "link", "copy over")
"""Of the changes, some that happen by one step."""


@pytest.fixture
def place() -> Iterator[Path]:
    with in_memory() as found:
        yield found


@pytest.fixture
def allowed(place: Path) -> Path:
    plant_allowed(place / "allowed")
    return place / "allowed"


@pytest.fixture
def sessions(place: Path, allowed: Path) -> Iterator[WorkspaceManager]:
    rules = [PathRule(str(allowed), AccessMode.READ_WRITE)]
    with WorkspaceManager(place / "sessions", durability="disk", rules=rules) as made:
        yield made


class Flushes:
    """Lets one of the flushes fail, counted from 1, and with it those that come right after."""

    def __init__(self, failing_one: int, number: int = errno.EIO, *, times: int = 1) -> None:
        self._failing = range(failing_one, failing_one + times)
        self._number = number
        self.count = 0

    def patched(self, patch: pytest.MonkeyPatch) -> Flushes:
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, self._counted(getattr(os, name)))
        return self

    def _counted(self, call: Call) -> Call:
        def counted(fd: int) -> Any:  # Any: whatever the system call gives
            self.count += 1
            if self.count in self._failing:
                raise OSError(self._number, os.strerror(self._number))
            return call(fd)

        return counted

    @property
    def has_failed(self) -> bool:
        return self.count >= self._failing.start


@pytest.mark.parametrize("name", ONE_RECORD)
def test_a_change_whose_flush_fails_is_an_error_and_settled_by_whoever_comes_next(
    sessions: WorkspaceManager, allowed: Path, name: str
) -> None:
    for step in itertools.count(1):
        session_id = planted(sessions)
        with sessions.open(session_id) as workspace:
            before = count(sessions.root / session_id)
            with pytest.MonkeyPatch.context() as patch:
                flushes = Flushes(step).patched(patch)
                problem = problem_of(lambda: CHANGES[name](workspace, allowed))
            if not flushes.has_failed:
                assert problem is None
                break
            assert isinstance(problem, DiskError)
            assert (problem.code, problem.errno) == ("disk.error", errno.EIO)
            if count(sessions.root / session_id) != before:
                assert page(sessions, session_id).mark, "it was made, and nobody knows whether it stays"
            require_agreement(sessions, workspace)
            workspace.write("after", b"x")
            require_agreement(sessions, workspace)
        assert sessions.verify(session_id).problem is None
    assert step > 4, "content, ledger, record, head and directory are flushed"


def problem_of(act: Callable[[], object]) -> CarrelError | None:
    try:
        act()
    except CarrelError as error:
        return error
    return None


@pytest.mark.parametrize("name", [name for name in CHANGES if name not in ONE_RECORD])
def test_the_last_flush_of_a_change_is_waited_for(
    sessions: WorkspaceManager, allowed: Path, name: str
) -> None:
    session_id = planted(sessions)
    with sessions.open(session_id) as workspace, pytest.MonkeyPatch.context() as patch:
        flushes = Flushes(10**6).patched(patch)
        CHANGES[name](workspace, allowed)
    again = planted(sessions)
    plant_again(allowed)
    with sessions.open(again) as workspace:
        with pytest.MonkeyPatch.context() as patch:
            Flushes(flushes.count).patched(patch)
            problem = problem_of(lambda: CHANGES[name](workspace, allowed))
        assert isinstance(problem, DiskError)
        require_agreement(sessions, workspace)


def plant_again(allowed: Path) -> None:
    for path in sorted(allowed.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()
    allowed.rmdir()
    plant_allowed(allowed)


def test_a_full_disk_is_told_as_one(sessions: WorkspaceManager) -> None:
    with sessions.create("one") as workspace, pytest.MonkeyPatch.context() as patch:
        Flushes(1, errno.ENOSPC).patched(patch)
        with pytest.raises(DiskFullError, match="'f'"):
            workspace.write("f", b"x")


def test_a_record_that_cannot_be_flushed_refuses_the_change_and_says_so(sessions: WorkspaceManager) -> None:
    with sessions.create("one") as workspace:
        workspace.write("f", b"x")
        with pytest.MonkeyPatch.context() as patch:
            Flushes(3, times=100).patched(patch)
            with pytest.raises(DiskError, match="the journal of the session cannot be written"):
                workspace.write("f", b"yy")
        assert workspace.read("f") == b"x"
        require_agreement(sessions, workspace)


def test_an_append_that_was_not_flushed_is_taken_away(sessions: WorkspaceManager) -> None:
    """A later flush would not store it either, and must not be taken for its own."""
    with sessions.create("one") as workspace:
        workspace.write("f", b"old")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", failing(os.fsync, errno.EIO, when=is_of(workspace.host_path("f"))))
            with pytest.raises(DiskError):
                workspace.append("f", b"lost")
        assert workspace.read("f") == b"old"
        require_agreement(sessions, workspace)


def is_of(path: Path) -> Callable[[int], bool]:
    return lambda fd: os.path.samestat(os.fstat(fd), path.stat())


def test_what_a_failed_flush_left_is_flushed_before_anything_else_is_acknowledged(
    sessions: WorkspaceManager,
) -> None:
    from carrel.fs import syscalls

    with sessions.create("one") as workspace:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", failing(os.fsync, errno.EIO, when=is_of(workspace.host_path("."))))
            with pytest.raises(DiskError):
                workspace.mkdir("d")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(syscalls, "syncfs_unchecked", failing(syscalls.syncfs_unchecked, errno.EIO))
            with pytest.raises(DiskError):
                workspace.write("d/f", b"x")
        workspace.write("d/f", b"x")
        require_agreement(sessions, workspace)


@pytest.mark.parametrize("act", ["create", "delete"])
def test_a_session_whose_flush_fails_is_unavailable_and_not_by_halves(
    sessions: WorkspaceManager, act: str
) -> None:
    for step in itertools.count(1):
        session_id = f"{act}-{step}"
        if act == "delete":
            sessions.create(session_id).close()
        with pytest.MonkeyPatch.context() as patch:
            flushes = Flushes(step).patched(patch)
            if act == "create":
                problem = problem_of(partial(sessions.create, session_id))
            else:
                problem = problem_of(partial(sessions.delete_workspace, session_id))
        if not flushes.has_failed:
            break
        assert isinstance(problem, UnavailableError)
        sweep_all(sessions)
        assert (session_id in workspaces_in(sessions.root)) == (session_id in records_in(sessions.root))
    assert step > 2


def test_an_event_loop_does_not_wait_for_the_disk(sessions: WorkspaceManager) -> None:
    with sessions.create("one") as workspace:
        workspace.write("f", b"x")
        for act in (
            lambda: workspace.write("f", b"y"),
            lambda: workspace.append("f", b"y"),
            lambda: workspace.mkdir("d"),
            lambda: workspace.remove("f"),
            lambda: workspace.read("../f"),
        ):
            with pytest.raises(WouldBlock):
                run_nonblocking(act)
            assert page(sessions, "one").mark == 0
        assert run_nonblocking(lambda: workspace.read("f")) == b"x"
        assert page(sessions, "one").recounts == 0
        require_agreement(sessions, workspace)


def test_managers_elsewhere_and_in_workers_are_as_durable(sessions: WorkspaceManager, place: Path) -> None:
    for other in (
        sessions.elsewhere(place / "other"),
        WorkspaceManager.from_description(
            sessions.description() | {"root": str(place / "worker")}, logger=SandboxLogger()
        ),
        WorkspaceManager.from_env({"CARREL_DURABILITY": "disk"}, root=place / "configured"),
    ):
        with other, other.create("one") as workspace, pytest.MonkeyPatch.context() as patch:
            Flushes(1).patched(patch)
            with pytest.raises(DiskError):
                workspace.write("f", b"x")


def test_a_word_that_is_no_durability_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="memory"):
        WorkspaceManager(tmp_path / "sessions", durability="memory")
