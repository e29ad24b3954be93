"""`Workspace.touch` and `Workspace.read_tree`, through the whole gate."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from carrel.errors import AccessError, HostDeniedError, MissingError, NotRegularError, QuotaError
from carrel.policy.rules import AccessMode, SandboxPolicy
from carrel.values import Limits
from carrel.workspace.workspace import Workspace

WHEN_NS = 1_234_567_890 * 10**9


def test_a_touch_makes_an_empty_file_now(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, clock=lambda: WHEN_NS) as workspace:
        assert workspace.touch("new").size_bytes == 0
        workspace.touch("new")
        assert workspace.stat("new").modified_ns == WHEN_NS
        assert [event.operation for event in workspace.changes()] == ["write", "touch"]


def test_a_touch_may_set_another_time(tmp_path: Path) -> None:
    with Workspace.open(tmp_path) as workspace:
        workspace.write("f", "kept")
        assert workspace.touch("f", modified_ns=WHEN_NS).modified_ns == WHEN_NS
        assert workspace.touch("new", modified_ns=WHEN_NS).modified_ns == WHEN_NS
        assert workspace.read("f") == b"kept"


def test_a_touch_makes_no_directory(tmp_path: Path) -> None:
    with Workspace.open(tmp_path) as workspace, pytest.raises(MissingError):
        workspace.touch("missing/new")
    assert list(tmp_path.iterdir()) == []


def test_a_touch_of_a_read_only_workspace_is_denied_and_recorded(tmp_path: Path) -> None:
    policy = SandboxPolicy.for_workspace(tmp_path, AccessMode.READ_ONLY)
    with Workspace.open(tmp_path, policy=policy) as workspace:
        with pytest.raises(AccessError):
            workspace.touch("new")
        assert [(event.operation, event.error) for event in workspace.changes()] == [
            ("touch", "access.denied")
        ]
    assert list(tmp_path.iterdir()) == []


def test_a_touch_is_charged_for_what_it_makes(tmp_path: Path) -> None:
    with Workspace.open(tmp_path, limits=Limits(entries=1)) as workspace:
        workspace.touch("one")
        with pytest.raises(QuotaError):
            workspace.touch("two")
        workspace.touch("one")


def test_a_file_with_another_name_is_not_touched(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("theirs")
    os.utime(outside, ns=(WHEN_NS, WHEN_NS))
    top = tmp_path / "workspace"
    top.mkdir()
    (top / "f").hardlink_to(outside)
    with Workspace.open(top) as workspace, pytest.raises(HostDeniedError, match="other names"):
        workspace.touch("f")
    assert outside.stat().st_mtime_ns == WHEN_NS


def test_a_fifo_is_not_touched(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with Workspace.open(tmp_path) as workspace, pytest.raises(NotRegularError):
        workspace.touch("fifo")


def test_a_tree_is_read_without_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "f").write_text("text")
    with Workspace.open(tmp_path) as workspace:
        assert [(each.path, list(each.chunks)) for each in workspace.read_tree()] == [("f", [b"text"])]


def test_a_file_that_grows_while_a_tree_is_read_comes_whole(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"1" * 10)
    with Workspace.open(tmp_path) as workspace:
        (found,) = workspace.read_tree(chunk_bytes=10)
        pieces = iter(found.chunks)
        first = next(pieces)
        with (tmp_path / "f").open("ab") as file:
            file.write(b"2" * 10)
        assert first + b"".join(pieces) == b"1" * 10 + b"2" * 10
