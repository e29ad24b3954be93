"""A workspace knows whether it is small, without waiting for anybody."""

from __future__ import annotations

from pathlib import Path

from carrel.policy.rules import AccessMode, PathRule
from carrel.sessions.manager import WorkspaceManager
from carrel.workspace.gate import SMALL_ENTRIES


def test_a_session_is_small_once_it_was_counted_and_until_it_holds_much(tmp_path: Path) -> None:
    with WorkspaceManager(tmp_path / "sessions").create("one") as workspace:
        said = [workspace.gate.is_small]
        workspace.usage()
        said.append(workspace.gate.is_small)
        for number in range(SMALL_ENTRIES):
            workspace.mkdir(str(number))
        said.append(workspace.gate.is_small)
        workspace.mkdir("more")
        said += [
            workspace.gate.is_small,
            workspace.narrowed(mode=AccessMode.READ_ONLY).gate.is_small,
        ]
    assert said == [False, True, True, False, False]


def test_what_lies_behind_other_rules_is_not_known(tmp_path: Path) -> None:
    (tmp_path / "extra").mkdir()
    manager = WorkspaceManager(tmp_path / "sessions")
    manager.create("one").close()
    rule = PathRule(str(tmp_path / "extra"), AccessMode.READ_ONLY)
    with manager.open("one", allow=[rule]) as workspace:
        workspace.usage()
        assert not workspace.gate.is_small


def test_a_workspace_that_is_closed_is_not_small(tmp_path: Path) -> None:
    with WorkspaceManager(tmp_path / "sessions").create("one") as workspace:
        workspace.usage()
    assert not workspace.gate.is_small
