"""The same operations without carrel: by plain calls, and by the usual way: resolve, check, act."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


def read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def write(path: str, data: bytes) -> None:
    """Overwrite in place, or create; a reader may meet an empty or half-written file."""
    with open(path, "wb") as file:
        file.write(data)


def update(path: str, data: bytes) -> None:
    """Overwrite in place without emptying the file first; right only where the size stays the same."""
    with open(path, "r+b") as file:
        file.write(data)


def write_atomically(path: str, data: bytes) -> None:
    """Replace as a careful program does it, by a temporary file beside the target."""
    temporary = f"{path}.{os.urandom(8).hex()}"
    with open(temporary, "xb") as file:
        file.write(data)
    os.replace(temporary, path)


def listing(path: str) -> list[tuple[str, os.stat_result]]:
    with os.scandir(path) as entries:
        return sorted((entry.name, entry.stat(follow_symlinks=False)) for entry in entries)


def walk(path: str) -> list[tuple[str, os.stat_result]]:
    found = []
    for top, directories, files in os.walk(path):
        for name in (*directories, *files):
            entry = os.path.join(top, name)
            found.append((entry, os.stat(entry, follow_symlinks=False)))
    return found


@dataclass(frozen=True, slots=True)
class Usual:
    """Resolve a path, check it, and then open what may be another file by now."""

    workspace_root: Path
    session_id: str

    def validate(self, relative_path: str) -> Path:
        """`_validate_session_path`, word for word."""
        workspace = self.workspace_root / self.session_id
        target = workspace / relative_path

        # Resolve symlinks and normalize
        resolved = target.resolve()

        # Ensure result is within workspace
        if not resolved.is_relative_to(workspace.resolve()):
            raise ValueError(f"Path escapes session workspace: {relative_path}")

        return resolved

    def read(self, path: str) -> bytes:
        return self.validate(path).read_bytes()

    def stat(self, path: str) -> os.stat_result:
        return self.validate(path).stat()

    def write(self, path: str, data: bytes) -> None:
        resolved = self.validate(path)
        resolved.parent.mkdir(parents=True, exist_ok=True)
        resolved.write_bytes(data)

    def listing(self, path: str) -> list[tuple[Path, os.stat_result]]:
        return [(entry, entry.stat()) for entry in sorted(self.validate(path).iterdir())]

    def walk(self, path: str) -> list[tuple[Path, os.stat_result]]:
        return [(entry, entry.stat()) for entry in self.validate(path).rglob("*")]
