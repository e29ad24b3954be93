"""The changes a call made, for its metadata, from the events that the gate recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from carrel.audit.event import Event
from carrel.storage.recorder import effective_changes
from carrel.tools.core.pagination import fit_values

MAX_CHANGES = 100
"""So many changes are told; the rest is counted."""
MAX_CHANGES_BYTES = 2**15
"""So much is told of them, as their paths may be long."""


def changes_metadata(events: Iterable[Event], shown: Callable[[str], str]) -> dict[str, Any]:
    """The part of the metadata that tells what *events* changed; nothing, if they changed nothing."""
    changes = _folded(_change(event, shown) for event in effective_changes(events))
    if not changes:
        return {}
    given = fit_values(changes[:MAX_CHANGES], MAX_CHANGES_BYTES)
    left_out = len(changes) - len(given)
    return {"changes": given, **({"changes_left_out": left_out} if left_out else {})}


def _folded(changes: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each file that was written more than once; none for one that came and went."""
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
                # What was written may have been beneath it, or was moved.
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


def _change(event: Event, shown: Callable[[str], str]) -> dict[str, Any]:
    path = shown(event.path)
    match event.operation:
        case "remove":
            return {"action": "deleted", "path": path, "size_bytes": event.before_bytes or 0}
        case "move":
            target = shown(event.other_path or "")
            return {"action": "moved", "path": target, "from": path, "size_bytes": event.after_bytes or 0}
        case "mkdir":
            return {"action": "created", "path": path, "type": "directory"}
        case "touch":
            return {"action": "touched", "path": path}
        case "link":
            return {"action": "created", "path": path, "type": "link"}
        case "copy":
            path = shown(event.other_path or "")
    is_new = event.before_bytes is None
    change = {
        "action": "created" if is_new else "changed",
        "path": path,
        "size_bytes": event.after_bytes or 0,
    }
    return change if is_new else {**change, "before_bytes": event.before_bytes}
