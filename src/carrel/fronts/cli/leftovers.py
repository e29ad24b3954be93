"""What `carrel doctor` looks at beside the sessions: how many there are, what was left behind, the keys."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from carrel.paths.names import id_problem
from carrel.service.keys import FILE as KEYS
from carrel.workspace.store import STATE

Document = dict[str, Any]  # Any: whatever JSON can say


def examine_store(directory: Path) -> Document:
    """What lies in the sessions directory, as far as it can be seen; no database is opened."""
    state = directory / STATE
    sessions = {name for name in _directories(directory) if id_problem(name) is None}
    return {
        "sessions": len(sessions),
        "trash": len(list(_directories(state / "trash"))),
        "orphans": len([name for name in _directories(state / "sessions") if name not in sessions]),
        "keys": _keys(state / KEYS),
    }


def _directories(directory: Path) -> Iterator[str]:
    with suppress(OSError), os.scandir(directory) as found:
        yield from (each.name for each in found if each.is_dir(follow_symlinks=False))


def _keys(file: Path) -> Document:
    """Whether there has ever been a key, and whether others could have put in keys of their own."""
    told = {"file": str(file)}
    try:
        found = os.lstat(file)
    except OSError:
        return {**told, "are_there": False, "are_safe": True}
    are_safe = found.st_uid == os.geteuid() and not found.st_mode & 0o022
    return {**told, "are_there": True, "are_safe": are_safe}
