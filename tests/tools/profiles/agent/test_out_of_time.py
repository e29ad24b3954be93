"""Whenever a deadline passes, the result says what was done and what was not."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel import Workspace
from carrel.testing.tree import tree
from tests.tools.profiles.agent.answers import hurried
from tests.workspace.planting import snapshot

CHANGES: dict[str, tuple[str, dict[str, object]]] = {
    "write": ("file_write", {"path": "f", "content": "two"}),
    "make": ("file_write", {"path": "new", "content": "two"}),
    "make deep": ("file_write", {"path": "x/y/new", "content": "two", "create_dirs": True}),
    "append": ("file_write", {"path": "f", "content": "two", "mode": "append"}),
    "begin": ("file_write", {"path": "new", "content": "two", "mode": "append"}),
    "edit": ("file_edit", {"path": "f", "old_text": "one", "new_text": "two"}),
    "delete": ("file_delete", {"path": "f"}),
    "delete a tree": ("file_delete", {"path": "d", "recursive": True}),
    "move": ("file_move", {"source": "f", "destination": "new"}),
    "replace": ("file_move", {"source": "f", "destination": "d/g", "overwrite": True}),
}
READS: dict[str, tuple[str, dict[str, object]]] = {
    "read": ("file_read", {"path": "f"}),
    "read lines": ("file_read", {"path": "f", "offset": 1}),
    "list": ("file_list", {"path": "."}),
    "list a tree": ("file_list", {"path": ".", "recursive": True}),
    "search": ("file_search", {"query": "one"}),
    "search a file": ("file_search", {"query": "one", "path": "f"}),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_change_was_made_or_the_answer_says_that_it_was_not(tmp_path: Path, case: str) -> None:
    name, arguments = CHANGES[case]
    succeeded: list[bool] = []
    for calls in range(1, 12):
        directory = tree(tmp_path / str(calls), "f = one", "d/g = three", "d/e/h")
        before = snapshot(directory)
        with Workspace.open(directory) as workspace:
            answer = hurried(workspace, calls).call(name, arguments)
        assert answer.code in (None, "limit.time")
        assert answer.success == (snapshot(directory) != before) == ("changes" in answer.metadata)
        succeeded.append(answer.success)
    assert succeeded == sorted(succeeded)
    assert set(succeeded) == {False, True}


@pytest.mark.parametrize("case", READS)
def test_a_read_ends_with_its_time_wherever_it_is(directory: Path, workspace: Workspace, case: str) -> None:
    tree(directory, "f = one", "d/g = three", "d/e/h")
    name, arguments = READS[case]
    succeeded = []
    for calls in range(1, 40):
        answer = hurried(workspace, calls).call(name, arguments)
        assert answer.code in (None, "limit.time")
        succeeded.append(answer.success)
    assert succeeded == sorted(succeeded)
    assert set(succeeded) == {False, True}
