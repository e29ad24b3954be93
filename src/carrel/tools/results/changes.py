"""The changes that a call made, for the metadata of its result, from the events that the gate recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from carrel.audit.event import Event
from carrel.storage.recorder import effective_changes
from carrel.tools.core.pagination import fit_values

MAX_CHANGES = 100
"""Most changes listed in a result; the others are counted."""
MAX_CHANGES_BYTES = 2**15
"""Most bytes of changes listed in a result, because paths can be long."""


def changes_metadata(events: Iterable[Event], display_path: Callable[[str], str]) -> dict[str, Any]:
    """Return the metadata that list what *events* changed; empty if they changed nothing."""
    changes = _merge(_change(event, display_path) for event in effective_changes(events))
    if not changes:
        return {}
    listed = fit_values(changes[:MAX_CHANGES], MAX_CHANGES_BYTES)
    left_out = len(changes) - len(listed)
    return {"changes": listed, **({"changes_left_out": left_out} if left_out else {})}


def _merge(changes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Merge repeated changes of a file into one row; a file that was created and deleted has none."""
    rows: dict[int, dict[str, Any]] = {}
    written: dict[str, int] = {}
    for number, change in enumerate(changes):
        action, path = change["action"], change["path"]
        before = written.get(path)
        is_written = action in ("created", "changed") and "type" not in change
        if before is None:
            rows[number] = change
            if is_written:
                written[path] = number
            elif action in ("deleted", "moved"):
                # A written file may have been inside the deleted directory, or was moved.
                written.clear()
        elif is_written:
            rows[before]["size_bytes"] = change["size_bytes"]
        elif action == "deleted":
            row = rows.pop(before)
            del written[path]
            if row["action"] == "changed":
                rows[number] = {**change, "size_bytes": row["before_bytes"]}
        elif action != "touched":
            rows[number] = change
            written.clear()
    return list(rows.values())


def _change(event: Event, display_path: Callable[[str], str]) -> dict[str, Any]:
    path = display_path(event.path)
    match event.operation:
        case "remove":
            return {"action": "deleted", "path": path, "size_bytes": event.before_bytes or 0}
        case "move":
            target = display_path(event.other_path or "")
            return {"action": "moved", "path": target, "from": path, "size_bytes": event.after_bytes or 0}
        case "mkdir":
            return {"action": "created", "path": path, "type": "directory"}
        case "touch":
            return {"action": "touched", "path": path}
        case "link":
            return {"action": "created", "path": path, "type": "link"}
        case "copy":
            path = display_path(event.other_path or "")
    is_new = event.before_bytes is None
    change = {
        "action": "created" if is_new else "changed",
        "path": path,
        "size_bytes": event.after_bytes or 0,
    }
    return change if is_new else {**change, "before_bytes": event.before_bytes}
