"""Managers kept for reuse by the module-level functions, by everything they were made from.

To read the configuration and to open the registry takes ten times as long as to write a file. So a manager is
used again, as long as everything that it was made from is the same: the directory, the environment, the
configuration file, the current directory, the user and the logger.
"""

from __future__ import annotations

import os
import stat
from collections import OrderedDict
from functools import cache
from pathlib import Path
from threading import Lock

from carrel.audit.logger import SandboxLogger
from carrel.config.file import config_path
from carrel.config.table import CONFIG_VARIABLE, KEYS
from carrel.sessions.manager import WorkspaceManager

MAX_MANAGERS = 8
_VARIABLES = (
    CONFIG_VARIABLE,
    "HOME",
    "XDG_CONFIG_HOME",
    *(name for key in KEYS for name in key.variables),
)

CacheKey = tuple[object, ...]


class ManagerCache:
    """Managers by what they were made from; the one that was not used for longest goes first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: OrderedDict[CacheKey, tuple[object, WorkspaceManager]] = OrderedDict()

    def get(self, root: Path | None, logger: SandboxLogger | None) -> WorkspaceManager:
        """The manager of the sessions directory *root*, or of the configured one; made if it is missing."""
        signs = _signs(root, logger)
        with self._lock:
            identity, found = self._found.get(signs, (None, None))
            if found is not None and identity == _identity(found.root):
                self._found.move_to_end(signs)
                return found
        made = WorkspaceManager.from_env(root=root, logger=logger)
        with self._lock:
            self._found[signs] = _identity(made.root), made
            while len(self._found) > MAX_MANAGERS:
                self._found.popitem(last=False)
        return made

    def clear(self) -> None:
        """Let go of all of them."""
        with self._lock:
            self._found.clear()


@cache
def manager_cache() -> ManagerCache:
    """Those of this process; a forked child begins with none."""
    os.register_at_fork(after_in_child=manager_cache.cache_clear)
    return ManagerCache()


def _signs(root: Path | None, logger: SandboxLogger | None) -> CacheKey:
    """What a manager depends on, as it is now."""
    environ = os.environ
    variables = tuple(environ.get(name) for name in _VARIABLES)
    return root, logger, os.geteuid(), os.getcwd(), variables, _identity(config_path(environ))


def _identity(path: Path | None) -> object:
    """Differs when something else is there, or when the file was written."""
    if path is None:
        return None
    try:
        found = os.stat(path)
    except OSError:
        return None
    written = None if stat.S_ISDIR(found.st_mode) else (found.st_mtime_ns, found.st_size)
    return found.st_dev, found.st_ino, written
