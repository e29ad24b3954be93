"""`kill -9` at every step of every change: ledger, directory and journal still tell the same."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from carrel.audit.event import UNDONE
from carrel.policy.rules import AccessMode, PathRule
from carrel.sessions.manager import WorkspaceManager
from carrel.workspace.workspace import Workspace
from tests.depth import IS_THOROUGH, STRIDE, pairs
from tests.faults.inject import in_memory
from tests.storage.ledgers import count, page, require_agreement
from tests.workspace.changes import CHANGES, plant_allowed, planted
from tests.workspace.dying import Moment, arm, die, forked, survives

pytestmark = pytest.mark.deeper


@pytest.fixture
def place() -> Iterator[Path]:
    with in_memory() as found:
        yield found


@pytest.fixture
def allowed(place: Path) -> Path:
    """A directory that sessions may use besides their own."""
    made = place / "allowed"
    plant_allowed(made)
    return made


@pytest.fixture
def sessions(place: Path, allowed: Path) -> Iterator[WorkspaceManager]:
    with WorkspaceManager(place / "sessions", rules=[PathRule(str(allowed), AccessMode.READ_WRITE)]) as made:
        yield made


def test_a_touch_that_is_killed_at_any_step_is_told_as_it_is(sessions: WorkspaceManager, place: Path) -> None:
    made = set()
    for step in itertools.count(1):
        session_id = planted(sessions)
        path = sessions.root / session_id / "f"
        before = path.stat().st_mtime_ns
        survived = change(
            sessions,
            session_id,
            lambda workspace: workspace.touch("f", modified_ns=12345),
            partial(arm, step, Moment.AFTER),
        )
        with sessions.open(session_id) as workspace:
            workspace.usage()
            events = [event for event in workspace.changes() if event.operation == "touch"]
        errors = [event.error for event in events]
        if path.stat().st_mtime_ns == before:
            assert errors in ([], [None, UNDONE]), step
        else:
            assert errors == [None], step
        made.add(tuple(errors))
        sessions.delete_workspace(session_id)
        if survived:
            break
    assert made == {(), (None, UNDONE), (None,)}


def test_a_touch_to_the_time_that_it_was_has_been_made(sessions: WorkspaceManager) -> None:
    session_id = planted(sessions)
    before = (sessions.root / session_id / "f").stat().st_mtime_ns

    def act(workspace: Workspace) -> None:
        os.utime = lambda *_, **__: die()  # the process is one of its own
        workspace.touch("f", modified_ns=before)

    assert not change(sessions, session_id, act, lambda: None)
    with sessions.open(session_id) as workspace:
        workspace.usage()
        assert [event.error for event in workspace.changes() if event.operation == "touch"] == [None]


def change(
    sessions: WorkspaceManager,
    session_id: str,
    act: Callable[[Workspace], object],
    before: Callable[[], None],
) -> bool:
    """Let another process *act*, which does *before* once it has the session open; whether it survives."""

    def work() -> None:
        with sessions.open(session_id) as workspace:
            before()
            act(workspace)

    return survives(forked(work))


MANY_STEPS = ("extract", "copy a tree", "move to another rule")
KILLS = [
    pytest.param(
        name,
        moment,
        marks=[pytest.mark.slow] if moment is Moment.AFTER or name in MANY_STEPS else [],
        id=f"{moment.value} each step of {name}",
    )
    for name, moment in pairs(list(CHANGES), list(Moment))
]


@pytest.mark.parametrize(("name", "moment"), KILLS)
def test_a_change_that_is_killed_at_any_step_is_made_or_not_in_all_books(
    sessions: WorkspaceManager, allowed: Path, name: str, moment: Moment
) -> None:
    recounts: list[int] = []
    for step in itertools.count(1, STRIDE):
        session_id = planted(sessions)
        survived = change(
            sessions, session_id, lambda w: CHANGES[name](w, allowed), partial(arm, step, moment)
        )
        assert sessions.verify(session_id).problem is None, step
        with sessions.open(session_id) as workspace:
            assert workspace.usage() == count(sessions.root / session_id), step
            recounts.append(page(sessions, session_id).recounts)
            assert recounts[-1] <= (not survived), "a change that nobody killed needs no count"
            require_agreement(sessions, workspace)
        assert sessions.verify(session_id).problem is None, step
        sessions.delete_workspace(session_id)
        shutil.rmtree(allowed)
        plant_allowed(allowed)
        if survived:
            break
    assert len(recounts) > 4 / STRIDE
    if IS_THOROUGH and name != "copy to another rule":
        assert 1 in recounts, "no kill came between mark and count"


@pytest.mark.parametrize(
    "name",
    [
        "append",
        "move over",
        pytest.param("write with parents", marks=pytest.mark.slow),
        pytest.param("remove a tree", marks=pytest.mark.slow),
    ],
)
def test_settling_that_is_killed_at_any_step_is_settled_once(
    sessions: WorkspaceManager, allowed: Path, name: str
) -> None:
    is_settled = survived = False
    for step in itertools.count(1, STRIDE):
        for settling in itertools.count(1, STRIDE):
            session_id = planted(sessions)
            survived = change(
                sessions, session_id, lambda w: CHANGES[name](w, allowed), partial(arm, step, Moment.BEFORE)
            )
            found = page(sessions, session_id)
            settled = not (found.mark or found.pending_deletions) or change(
                sessions, session_id, lambda w: w.usage(), partial(arm, settling, Moment.BEFORE)
            )
            with sessions.open(session_id) as workspace:
                require_agreement(sessions, workspace)
            sessions.delete_workspace(session_id)
            if settled:
                break
            is_settled = True
        if survived:
            break
    assert is_settled, "nothing was left to settle"
