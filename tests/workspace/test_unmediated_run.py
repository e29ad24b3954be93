"""Programs that change the files by themselves, where there is no time to see what they did."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.fs.cancellable import WalkCancelledError, cancelled_when
from carrel.sessions.manager import WorkspaceManager
from carrel.values import MIB, Limits, Usage
from carrel.workspace.unmediated_run import UnmediatedRun
from carrel.workspace.workspace import Workspace


@pytest.fixture(params=["session", "bare"])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    """A workspace of each kind, with a quota."""
    limits = Limits(disk_bytes=MIB)
    if request.param == "session":
        return WorkspaceManager(tmp_path / "sessions").create("s", limits=limits)
    (tmp_path / "bare").mkdir()
    return Workspace.open(tmp_path / "bare", limits=limits)


def test_what_there_is_no_time_to_survey_is_counted_by_the_next_one(opened: Workspace) -> None:
    with opened as workspace:
        workspace.write("d/old", b"12345")
        use = UnmediatedRun(workspace)
        use.begin()
        (workspace.host_path("d") / "new").write_bytes(b"123")
        with cancelled_when(lambda: True):
            changes = use.end()
        assert (changes.created, changes.is_whole, changes.problem) == ([], False, None)
        assert workspace.usage() == Usage(disk_bytes=8, entries=3)
        workspace.write("more", b"1")
        assert workspace.usage() == Usage(disk_bytes=9, entries=4)


def test_a_count_that_is_cancelled_is_made_by_the_next_one(opened: Workspace) -> None:
    with opened as workspace:
        workspace.write("d/old", b"12345")
        (workspace.host_path("d") / "new").write_bytes(b"123")
        with cancelled_when(lambda: True), pytest.raises(WalkCancelledError):
            workspace.recount()
        assert workspace.usage() == Usage(disk_bytes=8, entries=3)


def test_nothing_begins_if_there_is_no_time_to_survey_it(opened: Workspace) -> None:
    with opened as workspace:
        workspace.write("old", b"12345")
        use = UnmediatedRun(workspace)
        with cancelled_when(lambda: True), pytest.raises(WalkCancelledError):
            use.begin()
        assert workspace.gate.ledger.known_entries() == 1
        use.begin()
        (workspace.host_path(".") / "new").write_bytes(b"123")
        assert use.end().created == ["new"]


def test_what_was_seen_before_time_was_up_is_told(opened: Workspace) -> None:
    """What was not there before is new, whatever was not looked at; what is not seen is not gone."""
    with opened as workspace:
        for name in "abc":
            workspace.write(f"{name}/old", b"1")
        use = UnmediatedRun(workspace)
        use.begin()
        (workspace.host_path(".") / "new").write_bytes(b"123")
        # Only the survey is cancelled, in its third directory.
        answers = iter([False, False, True])
        with cancelled_when(lambda: next(answers, False)):
            changes = use.end()
        assert (changes.created, changes.deleted, changes.is_whole) == (["new"], [], False)
        assert workspace.usage() == Usage(disk_bytes=6, entries=7)
