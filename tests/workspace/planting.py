"""Trees written as they look, and what they look like afterwards."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

STATE = ".carrel"


def plant(top: Path, *entries: str) -> None:
    """Make `d/`, `f` (with the content "in"), `f = content` and `link => target` beneath *top*."""
    for entry in entries:
        name, _, target = entry.partition(" => ")
        name, _, content = name.partition(" = ")
        place = top / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if target:
            place.symlink_to(target)
        elif name.endswith("/"):
            place.mkdir(exist_ok=True)
        else:
            place.write_bytes(content.encode() if " = " in entry else b"in")


def snapshot(top: Path) -> dict[str, bytes | str | None]:
    """Every path beneath *top* but our own state: content of a file, text of a link, `None` for the rest."""
    found: dict[str, bytes | str | None] = {}
    for place, directories, files in os.walk(top):
        directories[:] = [name for name in directories if name != STATE]
        for name in (*directories, *files):
            path = Path(place, name)
            found[str(path.relative_to(top))] = (
                str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None
            )
    return found


def reserve(path: Path, size: int) -> None:
    """Make a file that is empty and holds *size* bytes of the disk."""
    with path.open("wb") as file:
        done = ctypes.CDLL(None).fallocate(file.fileno(), 1, ctypes.c_long(0), ctypes.c_long(size))
    assert (done, path.stat().st_size, path.stat().st_blocks * 512 >= size) == (0, 0, True)
