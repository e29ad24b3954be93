"""`ChangeTracker`: which files a script created, modified and deleted, as the gate recorded it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from carrel.errors import CarrelError
from carrel.storage.recorder import effective_changes
from carrel.workspace.workspace import Workspace


class ChangeTracker:
    """The difference that a script makes; a file that it makes and removes again is in no list."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._created: set[str] = set()
        self._modified: set[str] = set()
        self._deleted: set[str] = set()

    @property
    def created(self) -> list[str]:
        """Files that were not there before, sorted."""
        return sorted(self._created)

    @property
    def modified(self) -> list[str]:
        """Files that were there and were written, sorted."""
        return sorted(self._modified)

    @property
    def deleted(self) -> list[str]:
        """Files that were there and are gone, sorted."""
        return sorted(self._deleted)

    @contextmanager
    def of_writing(self) -> Iterator[None]:
        """Note the files that are written meanwhile."""
        with self._workspace.gate.watching() as events:
            yield
        for event in effective_changes(events):
            self._write(event.path, is_new=event.before_bytes is None)

    @contextmanager
    def of_removing(self) -> Iterator[None]:
        """Note the file that is removed meanwhile."""
        with self._workspace.gate.watching() as events:
            yield
        for event in effective_changes(events):
            self._remove(event.path)

    @contextmanager
    def of_moving(self, source: str, target: str) -> Iterator[None]:
        """Note the files that are moved meanwhile from *source* to *target*, be it a file or a directory."""
        moved = self._files(source)
        replaced = set(self._files(target))
        yield
        for path in moved:
            goal = target + path[len(source) :]
            self._remove(path)
            self._write(goal, is_new=goal not in replaced)

    def _files(self, path: str) -> list[str]:
        """The file *path*, or those beneath the directory."""
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
