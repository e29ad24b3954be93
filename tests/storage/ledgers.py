"""What a session holds, found out in three ways: its ledger, its directory and its journal."""

from __future__ import annotations

import os
import posixpath
import time
from collections.abc import Iterable
from pathlib import Path

from carrel.audit.event import UNDONE, Event
from carrel.fs.local.draft import ABANDONED_SECONDS
from carrel.sessions.manager import WorkspaceManager
from carrel.storage.local.ledger_page import LedgerPage, read_page
from carrel.values import FileKind, Usage
from carrel.workspace.workspace import Workspace
from tests.workspace.traces import sweep_all

Listing = dict[str, tuple[FileKind, int | str]]
"""Each path with what it is, and the size of a file or the text of a link."""


def state(sessions: WorkspaceManager, session_id: str) -> Path:
    """Where the ledger and the journal of a session are."""
    return sessions.root / ".carrel" / "sessions" / session_id


def page(sessions: WorkspaceManager, session_id: str) -> LedgerPage:
    """What the ledger says, read without its lock."""
    with (state(sessions, session_id) / "ledger").open("rb") as file:
        found = read_page(file.fileno())
    assert found is not None
    return found


def count(directory: Path) -> Usage:
    """What is beneath *directory*, each inode once."""
    sizes: dict[int, int] = {}
    entries = 0
    for place, directories, files in os.walk(directory):
        entries += len(directories) + len(files)
        for name in files:
            path = Path(place, name)
            if not path.is_symlink():
                sizes[path.stat().st_ino] = path.stat().st_size
    return Usage(disk_bytes=sum(sizes.values()), entries=entries)


def listing(directory: Path) -> Listing:
    """Everything beneath *directory*."""
    found: Listing = {}
    for place, directories, files in os.walk(directory):
        for name in (*directories, *files):
            path = Path(place, name)
            relative = str(path.relative_to(directory))
            if path.is_symlink():
                found[relative] = (FileKind.LINK, str(path.readlink()))
            elif path.is_dir():
                found[relative] = (FileKind.DIRECTORY, 0)
            else:
                found[relative] = (FileKind.FILE, path.stat().st_size)
    return found


def replay(events: Iterable[Event]) -> Listing:
    """What the records say that there is; links are followed at the end of a path only."""
    found: Listing = {}
    for event in standing(events):
        _apply(event, found)
    return {path: what for path, what in found.items() if not path.startswith("/")}


def standing(events: Iterable[Event]) -> list[Event]:
    """The changes that were made and not taken back."""
    kept: list[Event] = []
    for event in events:
        if event.error is None:
            kept.append(event)
        elif event.error == UNDONE:
            latest = max(place for place, one in enumerate(kept) if _fields(one) == _fields(event))
            del kept[latest]
    return kept


def _fields(event: Event) -> tuple[object, ...]:
    return event.operation, event.path, event.other_path, event.before_bytes, event.after_bytes


def _apply(event: Event, found: Listing) -> None:
    path = event.path
    if event.operation == "mkdir":
        assert path not in found
        found[path] = (FileKind.DIRECTORY, 0)
    elif event.operation == "link":
        found[path] = (FileKind.LINK, event.other_path or "")
    elif event.operation == "remove":
        for name in beneath(path, found):
            del found[name]
    elif event.operation == "move":
        assert event.other_path is not None
        moved = {event.other_path + name[len(path) :]: found.pop(name) for name in beneath(path, found)}
        found.update(moved)
    elif event.operation == "touch":
        assert path in found
    else:
        place = _followed(event.other_path or path, found)
        assert (place in found) == (event.before_bytes is not None), event
        if event.before_bytes is not None:
            assert found[place] == (FileKind.FILE, event.before_bytes), event
        assert event.after_bytes is not None
        found[place] = (FileKind.FILE, event.after_bytes)


def beneath(path: str, found: Listing) -> list[str]:
    """*path* and all that is in it; it is there."""
    assert path in found or path.startswith("/"), path
    return [name for name in found if name == path or name.startswith(path + "/")]


def _followed(path: str, found: Listing) -> str:
    while path in found and found[path][0] is FileKind.LINK:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(path), str(found[path][1])))
    return path


def leftovers(sessions: WorkspaceManager, session_id: str) -> list[str]:
    """Drafts of the session and trash of all."""
    own = state(sessions, session_id)
    drafts = [name for name in os.listdir(own) if name.startswith(".carrel-draft-")]
    return drafts + os.listdir(sessions.root / ".carrel" / "trash")


def age_drafts(sessions: WorkspaceManager, session_id: str) -> None:
    """Let the drafts of a session look as if they were written long ago."""
    then = time.time() - 2 * ABANDONED_SECONDS
    for path in state(sessions, session_id).glob(".carrel-draft-*"):
        os.utime(path, (then, then), follow_symlinks=False)


def require_agreement(sessions: WorkspaceManager, workspace: Workspace) -> None:
    """Ledger, directory and journal tell the same, and a sweep leaves nothing but that."""
    session_id = workspace.session_id
    assert session_id is not None
    directory = sessions.root / session_id
    assert workspace.usage() == count(directory)
    assert page(sessions, session_id)[:5] == (
        0,
        *(workspace.usage().disk_bytes, workspace.usage().entries),
        0,
        page(sessions, session_id).recounts,
    )
    assert replay(workspace.changes()) == listing(directory)
    age_drafts(sessions, session_id)
    sweep_all(sessions)
    assert leftovers(sessions, session_id) == []
    assert workspace.usage() == count(directory) == workspace.recount()
