"""What a sessions directory holds besides the workspaces."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from carrel.sessions.manager import WorkspaceManager

DRAFT = ".carrel-draft-"


def state_of(root: Path, session_id: str) -> Path:
    """Where the state of a session is."""
    return root / ".carrel/sessions" / session_id


def drafts_in(root: Path) -> list[Path]:
    """The unfinished files of all sessions."""
    return sorted((root / ".carrel/sessions").glob(f"*/{DRAFT}*"))


def states_in(root: Path) -> list[str]:
    """The ids that there is state of."""
    return _names(root / ".carrel/sessions")


def trash_in(root: Path) -> list[str]:
    """The trees that are being removed."""
    return _names(root / ".carrel/trash")


def records_in(root: Path) -> list[str]:
    """The ids that the registry has, read without any code of ours."""
    file = root / ".carrel/registry.db"
    if not file.exists():
        return []
    with closing(sqlite3.connect(file, timeout=30)) as registry:
        return sorted(row[0] for row in registry.execute("SELECT session_id FROM sessions"))


def workspaces_in(root: Path) -> list[str]:
    """Everything in the sessions directory that is not ours."""
    return [name for name in _names(root) if name != ".carrel"]


def require_whole(root: Path, *session_ids: str) -> None:
    """Exactly these sessions are there, each with all its parts, and nothing of any other."""
    expected = sorted(session_ids)
    assert workspaces_in(root) == expected
    assert records_in(root) == expected
    assert states_in(root) == expected
    assert trash_in(root) == []


def change_record(root: Path, session_id: str, /, **columns: object) -> None:
    """Write into the registry what nobody of us would."""
    with closing(sqlite3.connect(root / ".carrel/registry.db", timeout=30)) as registry, registry:
        for name, value in columns.items():
            registry.execute(f"UPDATE sessions SET {name} = ? WHERE session_id = ?", (value, session_id))


def _names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory)) if directory.is_dir() else []


def sweep_all(manager: WorkspaceManager) -> None:
    """Sweep with a look at every session, which another sweep of the manager may have taken lately."""
    manager._full_sweeps.clear()
    manager.sweep()
