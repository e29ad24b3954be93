"""`ChangeTracker`: the files that a script created, modified and deleted, as recorded by the gate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from carrel.errors import CarrelError
from carrel.storage.recorder import effective_changes
from carrel.workspace.workspace import Workspace


class ChangeTracker:
    """The net changes of a script; a file that it creates and deletes again is in no list."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._created: set[str] = set()
        self._modified: set[str] = set()
        self._deleted: set[str] = set()

    @property
    def created(self) -> list[str]:
        """Files that did not exist before, sorted."""
        return sorted(self._created)

    @property
    def modified(self) -> list[str]:
        """Files that existed before and were written, sorted."""
        return sorted(self._modified)

    @property
    def deleted(self) -> list[str]:
        """Files that existed before and are gone, sorted."""
        return sorted(self._deleted)

    @contextmanager
    def track_write(self) -> Iterator[None]:
        """Record the files that are written within the block."""
        with self._workspace.gate.watching() as events:
            yield
        for event in effective_changes(events):
            self._write(event.path, is_new=event.before_bytes is None)

    @contextmanager
    def track_remove(self) -> Iterator[None]:
        """Record the file that is removed within the block."""
        with self._workspace.gate.watching() as events:
            yield
        for event in effective_changes(events):
            self._remove(event.path)

    @contextmanager
    def track_move(self, source: str, target: str) -> Iterator[None]:
        """Record the files that the block moves from *source* to *target*, a file or a directory."""
        moved = self._files(source)
        replaced = set(self._files(target))
        yield
        for path in moved:
            moved_to = target + path[len(source) :]
            self._remove(path)
            self._write(moved_to, is_new=moved_to not in replaced)

    def _files(self, path: str) -> list[str]:
        """Return the file *path*, or all files beneath the directory *path*."""
        try:
            info = self._workspace.stat(path, follow_symlinks=False)
            if not info.is_directory:
                return [info.path]
            return [found.path for found in self._workspace.walk(path) if not found.is_directory]
        except (CarrelError, OSError):
            return []

    def _write(self, path: str, *, is_new: bool) -> None:
        if path in self._created:
            return
        if is_new and path not in self._deleted:
            self._created.add(path)
            return
        self._deleted.discard(path)
        self._modified.add(path)

    def _remove(self, path: str) -> None:
        if path in self._created:
            self._created.remove(path)
            return
        self._modified.discard(path)
        self._deleted.add(path)
