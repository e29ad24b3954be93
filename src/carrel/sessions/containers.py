"""The containers of the sessions of one directory, removed together with their sessions.

Every user of a session's container holds a lock in `.carrel/containers` beside the sessions. Without such a
lock, nothing of Docker is imported and no engine is connected to. What the engine fails to do stays recorded
there, and the next sweep tries again.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from carrel.audit.logger import SandboxLogger
from carrel.config.settings import ContainerSettings
from carrel.errors import BusyError, ContainerError, EngineError, UnavailableError
from carrel.paths.session_id import id_problem
from carrel.storage.local.store import STATE, Store

if TYPE_CHECKING:
    from carrel.containers.manager import Containers

T = TypeVar("T")
RUN_SUFFIX = ".turn"
"""Suffix of the file that serializes the runs in a session's container; it is locked during a run."""
QUICK_SECONDS = 5.0
"""Seconds to wait for the engine where a caller waits for a session; the next sweep tries again."""


def locks_dir(root: Path) -> Path:
    """Return the directory of the locks on the containers of the sessions in *root*."""
    return root / STATE / "containers"


class SessionContainers:
    """Stops and removes the containers of the sessions of one directory."""

    def __init__(self, store: Store, settings: ContainerSettings, *, logger: SandboxLogger) -> None:
        self._store = store
        self._settings = settings
        self._logger = logger
        self._locks = locks_dir(store.root)

    def remove(self, session_id: str) -> bool:
        """Remove the container of a deleted session, even if it is in use; return whether there was one."""
        self._remove_run_file(session_id)
        if session_id not in self._recorded():
            return False
        return self._remove(lambda containers: [session_id] if containers.remove(session_id) else []) == 1

    def sweep(self) -> int:
        """Remove containers that no live process uses, and those of deleted sessions; return how many."""
        for session_id in self._run_files():
            self._if_deleted(session_id, partial(self._remove_run_file, session_id))
        return self._remove(self._orphans_and_deleted) if self._recorded() else 0

    def remove_orphans(self) -> None:
        """Remove the containers that killed processes left, if there are any."""
        if self._has_orphans():
            self._remove(lambda containers: containers.sweep(), QUICK_SECONDS)

    def stop_programs(self, session_id: str) -> bool:
        """Stop the programs of a session that a killed process left running; return false if that failed.

        A process that runs something locks the run file and removes it afterwards. An unlocked run file was
        left by a process that was killed; it stays until the engine has stopped its programs.
        """
        run_file = self._locks / f"{session_id}{RUN_SUFFIX}"
        if not os.path.lexists(run_file):
            return True
        from carrel.containers.usage_lock import exclusive_usage_lock

        try:
            with exclusive_usage_lock(run_file) as lock:
                if lock is not None:
                    self._with_engine(lambda containers: containers.stop_programs(session_id), QUICK_SECONDS)
        except (EngineError, ContainerError) as error:
            self._log_left(error)
            return False
        return True

    def _orphans_and_deleted(self, containers: Containers) -> list[str]:
        orphans = containers.sweep()
        remove = containers.remove
        return orphans + [key for key in containers.known() if self._if_deleted(key, partial(remove, key))]

    def _recorded(self) -> list[str]:
        """Return the sessions whose container has a lock file."""
        if not os.path.isdir(self._locks):
            return []
        from carrel.containers.usage_lock import recorded_keys

        return recorded_keys(self._locks)

    def _run_files(self) -> list[str]:
        """Return the sessions that have a run file."""
        try:
            names = os.listdir(self._locks)
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = (name.removesuffix(RUN_SUFFIX) for name in names if name.endswith(RUN_SUFFIX))
        return [name for name in found if id_problem(name) is None]

    def _has_orphans(self) -> bool:
        names = self._recorded()
        if not names:
            return False
        from carrel.containers.usage_lock import LOCK_SUFFIX, is_held

        return not all(is_held(self._locks / f"{name}{LOCK_SUFFIX}") for name in names)

    def _if_deleted(self, session_id: str, action: Callable[[], bool]) -> bool:
        """Call *action* if the session is deleted, while it cannot be created; return whether it acted."""
        if os.path.lexists(self._store.root / session_id):
            return False
        try:
            with self._store.claim(session_id, wait_seconds=0) as claim:
                return claim.workspace() is None and action()
        except (BusyError, UnavailableError):
            return False

    def _remove_run_file(self, session_id: str) -> bool:
        """Remove the run file of a session; its programs end with the container."""
        try:
            (self._locks / f"{session_id}{RUN_SUFFIX}").unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def _remove(self, remove: Callable[[Containers], list[str]], max_seconds: float = math.inf) -> int:
        """Call *remove*; return how many it removed. Failures are logged and left to the next sweep."""
        try:
            removed = self._with_engine(remove, max_seconds)
        except (EngineError, ContainerError) as error:
            self._log_left(error)
            return 0
        for session_id in removed:
            self._logger.log_event("session.container.removed", session_id=session_id)
        return len(removed)

    def _with_engine(self, call: Callable[[Containers], T], max_seconds: float) -> T:
        """Connect to the engine and call *call* with the containers of these sessions.

        Raises:
            EngineError: The engine does not answer in time.
            ContainerError: The engine could not carry it out.
        """
        from carrel.containers.engine import Engine
        from carrel.containers.manager import Containers

        seconds = min(self._settings.timeout_seconds, max_seconds)
        with Engine.connect(self._settings.address, timeout_seconds=seconds) as engine:
            return call(Containers(engine, self._locks))

    def _log_left(self, error: EngineError | ContainerError) -> None:
        # The log is for the operator, who may see the engine's own message.
        fields = {"code": error.code, "error": str(error), "detail": error.detail}
        self._logger.log_event("session.container.left", logging.WARNING, **fields)
