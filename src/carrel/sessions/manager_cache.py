"""Managers kept for reuse by the module-level functions, keyed by everything they were created from.

Opening the registry takes ten times as long as writing a file. A manager is therefore reused while everything
it was created from is unchanged: the directory, the settings, the current directory, the user and the logger.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from contextlib import suppress
from pathlib import Path
from threading import RLock

from carrel.audit.logger import SandboxLogger
from carrel.config.load import load
from carrel.config.settings import Settings
from carrel.process import PROCESS
from carrel.sessions.manager import WorkspaceManager

MAX_MANAGERS = 8

CacheKey = tuple[object, ...]


class ManagerCache:
    """Managers by what they were created from; the least recently used one is dropped first."""

    def __init__(self) -> None:
        # Reentrant: a signal handler may look for a manager while its own thread does.
        self._lock = RLock()
        self._found: OrderedDict[CacheKey, tuple[object, WorkspaceManager]] = OrderedDict()

    def get(
        self, root: Path | None, logger: SandboxLogger | None, settings: Settings | None = None
    ) -> WorkspaceManager:
        """Return the manager of the sessions directory *root*, or of the configured one.

        Without *settings*, those of the environment are loaded.
        """
        settings = settings or load(os.environ)
        key = root, logger, os.geteuid(), os.getcwd(), settings
        with self._lock:
            identity, found = self._found.get(key, (None, None))
            if found is not None and identity == _identity(found.root):
                with suppress(KeyError):  # dropped by a signal handler
                    self._found.move_to_end(key)
                return found
        made = WorkspaceManager.from_settings(settings, root=root, logger=logger)
        with self._lock:
            self._found[key] = _identity(made.root), made
            while len(self._found) > MAX_MANAGERS:
                self._found.popitem(last=False)
        return made

    def close(self) -> None:
        """Drop all managers; those in use stay open until their last reference is dropped."""
        with self._lock:
            self._found.clear()

    def abandon(self) -> None:
        """Start empty in a forked child."""
        self._lock = RLock()
        self._found.clear()


def manager_cache() -> ManagerCache:
    """Return the managers of this process."""
    return PROCESS.get(ManagerCache)


def _identity(path: Path) -> object:
    """Return a value that differs once another directory is at *path*."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
