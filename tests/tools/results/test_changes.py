"""What a call changed, from what the gate recorded."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from carrel.audit.event import UNDONE, Event
from carrel.errors import CarrelError
from carrel.testing.tree import tree
from carrel.tools.results import changes
from carrel.tools.results.changes import MAX_CHANGES, MAX_CHANGES_BYTES, changes_metadata
from carrel.workspace.workspace import Workspace


def shown(path: str) -> str:
    """A path as an answer would show it."""
    return f"/workspace/{path}"


def event(operation: str, path: str, **fields: Any) -> Event:
    """A record of a session."""
    return Event(time_ns=1, session_id="abc-123", actor="host", operation=operation, path=path, **fields)


def changed(workspace: Workspace, act: Callable[[Workspace], object]) -> dict[str, Any]:
    """Return the changes in the metadata after *act*, even if it fails."""
    with workspace.gate.watching() as events, suppress(CarrelError):
        act(workspace)
    return changes_metadata(events, shown)


ROWS: list[tuple[Callable[[Workspace], object], list[dict[str, object]]]] = [
    (
        lambda ws: ws.write("new", b"123"),
        [{"action": "created", "path": "/workspace/new", "size_bytes": 3}],
    ),
    (
        lambda ws: ws.write("f", b"123"),
        [{"action": "changed", "path": "/workspace/f", "size_bytes": 3, "before_bytes": 2}],
    ),
    (
        lambda ws: ws.append("f", b"3"),
        [{"action": "changed", "path": "/workspace/f", "size_bytes": 3, "before_bytes": 2}],
    ),
    (
        lambda ws: ws.append("new", b"3"),
        [{"action": "created", "path": "/workspace/new", "size_bytes": 1}],
    ),
    (
        lambda ws: ws.edit("f", "in", "out"),
        [{"action": "changed", "path": "/workspace/f", "size_bytes": 3, "before_bytes": 2}],
    ),
    (
        lambda ws: ws.write("empty", b""),
        [{"action": "created", "path": "/workspace/empty", "size_bytes": 0}],
    ),
    (
        lambda ws: ws.mkdir("a/b"),
        [
            {"action": "created", "path": "/workspace/a", "type": "directory"},
            {"action": "created", "path": "/workspace/a/b", "type": "directory"},
        ],
    ),
    (lambda ws: ws.remove("f"), [{"action": "deleted", "path": "/workspace/f", "size_bytes": 2}]),
    (
        lambda ws: ws.remove("d", recursive=True),
        [{"action": "deleted", "path": "/workspace/d", "size_bytes": 0}],
    ),
    (
        lambda ws: ws.move("f", "moved"),
        [{"action": "moved", "path": "/workspace/moved", "from": "/workspace/f", "size_bytes": 2}],
    ),
    (
        lambda ws: ws.copy("f", "copied"),
        [{"action": "created", "path": "/workspace/copied", "size_bytes": 2}],
    ),
    (
        lambda ws: ws.copy("f", "d/g", overwrite=True),
        [{"action": "changed", "path": "/workspace/d/g", "size_bytes": 2, "before_bytes": 2}],
    ),
    (lambda ws: ws.touch("f"), [{"action": "touched", "path": "/workspace/f"}]),
]


@pytest.mark.parametrize(("act", "expected"), ROWS)
def test_each_change_is_reported_with_its_paths_and_sizes(
    workspace: Workspace,
    directory: Path,
    act: Callable[[Workspace], object],
    expected: list[dict[str, object]],
) -> None:
    tree(directory, "f", "d/g")
    assert changed(workspace, act) == {"changes": expected}


@pytest.mark.parametrize(
    "act",
    [
        lambda ws: ws.read("f"),
        lambda ws: ws.list(),
        lambda ws: ws.mkdir("d", exist_ok=True),
        lambda ws: ws.remove("missing", force=True),
        lambda ws: ws.write("../out", b""),
        lambda ws: ws.write("f", b"", overwrite=False),
        lambda ws: ws.remove("d"),
    ],
)
def test_what_changes_nothing_reports_nothing(
    workspace: Workspace, directory: Path, act: Callable[[Workspace], object]
) -> None:
    tree(directory, "f", "d/g")
    assert changed(workspace, act) == {}


def test_several_changes_are_reported_in_their_order(workspace: Workspace) -> None:
    def act(ws: Workspace) -> None:
        ws.write("a", b"1")
        ws.move("a", "b")
        ws.remove("b")

    actions = [each["action"] for each in changed(workspace, act)["changes"]]
    assert actions == ["created", "moved", "deleted"]


def test_a_link_is_reported_as_one() -> None:
    assert changes_metadata([event("link", "l")], shown) == {
        "changes": [{"action": "created", "path": "/workspace/l", "type": "link"}]
    }


def test_what_was_refused_or_taken_back_is_not_reported() -> None:
    events = [
        event("write", "a", after_bytes=1),
        event("write", "b", after_bytes=1),
        event("write", "c", error="access.denied"),
        event("write", "a", after_bytes=1, error=UNDONE),
    ]
    assert [each["path"] for each in changes_metadata(events, shown)["changes"]] == ["/workspace/b"]


def test_very_many_changes_are_counted() -> None:
    events = [event("write", str(number), after_bytes=1) for number in range(MAX_CHANGES + 7)]
    found = changes_metadata(events, shown)
    assert [each["path"] for each in found["changes"]] == [
        f"/workspace/{number}" for number in range(MAX_CHANGES)
    ]
    assert found["changes_left_out"] == 7
    assert "changes_left_out" not in changes.changes_metadata(events[:MAX_CHANGES], shown)


# Several changes of one file


def after(workspace: Workspace, *steps: Callable[[Workspace], object]) -> list[dict[str, Any]]:
    """Return the changes in the metadata after *steps*."""

    def act(workspace: Workspace) -> None:
        for step in steps:
            step(workspace)

    return list(changed(workspace, act).get("changes", []))


def write(path: str, size: int) -> Callable[[Workspace], object]:
    return lambda ws: ws.write(path, b"x" * size)


def remove(path: str) -> Callable[[Workspace], object]:
    return lambda ws: ws.remove(path, recursive=True)


def test_a_file_that_is_written_again_and_again_is_reported_once(workspace: Workspace) -> None:
    new = {"action": "created", "path": "/workspace/f", "size_bytes": 7}
    assert after(workspace, write("f", 1), write("f", 3), write("f", 7)) == [new]
    old = {"action": "changed", "path": "/workspace/f", "size_bytes": 2, "before_bytes": 7}
    assert after(workspace, write("f", 1), lambda ws: ws.append("f", b"x")) == [old]


def test_a_file_that_came_and_went_is_not_reported(workspace: Workspace) -> None:
    assert after(workspace, write("f", 1), write("f", 2), remove("f")) == []
    again = {"action": "created", "path": "/workspace/f", "size_bytes": 5}
    assert after(workspace, write("f", 1), remove("f"), write("f", 5)) == [again]


def test_a_file_that_was_changed_and_then_deleted_is_reported_as_it_was_before(workspace: Workspace) -> None:
    workspace.write("f", b"1234")
    gone = {"action": "deleted", "path": "/workspace/f", "size_bytes": 4}
    assert after(workspace, write("f", 9), remove("f")) == [gone]


@pytest.mark.parametrize("leave", [remove("d"), lambda ws: ws.move("d", "e")])
def test_what_was_below_a_directory_that_left_is_not_taken_for_what_comes_later(
    workspace: Workspace, leave: Callable[[Workspace], object]
) -> None:
    rows = after(workspace, write("d/f", 1), leave, write("d/f", 2))
    files = [row for row in rows if row["path"] == "/workspace/d/f"]
    assert [(row["action"], row["size_bytes"]) for row in files] == [("created", 1), ("created", 2)]


def test_a_file_that_was_written_and_moved_is_reported_with_both_names(workspace: Workspace) -> None:
    moved = {"action": "moved", "path": "/workspace/g", "from": "/workspace/f", "size_bytes": 1}
    assert after(workspace, write("f", 1), lambda ws: ws.move("f", "g"))[1:] == [moved]


def test_long_paths_leave_room_for_fewer_changes() -> None:
    events = [event("write", f"{'n/' * 2000}{number}", after_bytes=1) for number in range(20)]
    found = changes_metadata(events, shown)
    assert 1 <= len(found["changes"]) <= MAX_CHANGES_BYTES // 4000
    assert len(found["changes"]) + found["changes_left_out"] == 20
