"""The changes that a call made, for the metadata of its result, from the events that the gate recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from carrel.audit.event import Event
from carrel.errors import CarrelError
from carrel.storage.recorder import effective_changes
from carrel.tools.core.pagination import fit_values
from carrel.tools.results.media import (
    MAX_IMAGE_BYTES,
    SHOWN_TYPES,
    describe_file,
    image_size,
    media_type,
    media_type_by_name,
    tool_image,
)
from carrel.values import ToolImage, ToolResult

MAX_CHANGES = 100
"""Most changes listed in a result; the others are counted."""
MAX_SHOWN_IMAGES = 4
"""Most images of a run that a model sees; of more, it has to read those that it wants to see."""
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


def with_images(
    result: ToolResult, changes: Iterable[Mapping[str, Any]], read: Callable[[str, int], bytes]
) -> ToolResult:
    """Return the *result* of a run with the images among the *changes*, such as plots.

    *read* returns as much of a file as it is allowed to, and raises a `CarrelError` if it cannot.
    """
    paths = [
        change["path"]
        for change in changes
        if change["action"] in ("created", "changed") and media_type_by_name(change["path"]) in SHOWN_TYPES
    ]
    if not paths:
        return result
    if len(paths) > MAX_SHOWN_IMAGES:
        return _with_note(result, f"[{len(paths)} images were written: read those that you want to see]")
    images: list[ToolImage] = []
    notes: list[str] = []
    room = MAX_IMAGE_BYTES
    for path in paths:
        with suppress(CarrelError):
            content = read(path, MAX_IMAGE_BYTES + 1)
            kind = media_type(path, content, is_text=False)
            image = tool_image(path, content, kind)
            if image is not None and image.size_bytes <= room:
                room -= image.size_bytes
                images.append(image)
                notes.append(describe_file(path, len(content), kind, image_size(content)))
    return replace(_with_note(result, "\n".join(notes)) if notes else result, images=tuple(images))


def _with_note(result: ToolResult, note: str) -> ToolResult:
    before = result.metadata.get("note")
    note = f"{before}\n{note}" if before else note
    return replace(result, metadata={**result.metadata, "note": note})
