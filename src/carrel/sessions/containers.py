"""The containers of the sessions of one directory, removed together with their sessions.

Whoever uses the container of a session holds a lock in `.carrel/containers` beside the sessions. As long as
no lock is there nothing of Docker is imported or asked. What the engine does not do now stays noted there,
and the next sweep tries again.
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

EngineAnswer = TypeVar("EngineAnswer")
TURN = ".turn"
"""Ends the name of the file by which those take turns who run something in a container."""
START_SECONDS = 5.0
"""How long a start waits for the engine; there is a sweep later."""


def locks_of(root: Path) -> Path:
    """Where it is noted who uses the containers of the sessions in *root*."""
    return root / STATE / "containers"


class SessionContainers:
    """The containers of the sessions of one directory, as those see them who delete sessions."""

    def __init__(self, store: Store, settings: ContainerSettings, *, logger: SandboxLogger) -> None:
        self._store = store
        self._settings = settings
        self._logger = logger
        self._locks = locks_of(store.root)

    def remove(self, session_id: str) -> bool:
        """Take away the container of a session that is gone, whoever uses it; whether there was one."""
        self._forget_turn(session_id)
        if session_id not in self._noted():
            return False
        return self._remove(lambda kept: [session_id] if kept.remove(session_id) else []) == 1

    def sweep(self) -> int:
        """Remove the containers that nobody alive uses, and those of sessions that are gone; how many."""
        for session_id in self._turns():
            self._if_gone(session_id, partial(self._forget_turn, session_id))
        return self._remove(self._orphans_and_gone) if self._noted() else 0

    def start(self) -> None:
        """Remove what processes that were killed left, if there is any."""
        if self._has_orphans():
            self._remove(lambda kept: kept.sweep(), START_SECONDS)

    def end_left(self, session_id: str) -> bool:
        """End what runs in the container of a session if nobody alive watches it; whether that is known.

        Whoever runs something holds the file of its turn and removes it afterwards. One that is there and
        not held was left by somebody who was killed; it stays until the engine has done its part.
        """
        turn = self._locks / f"{session_id}{TURN}"
        if not os.path.lexists(turn):
            return True
        from carrel.containers.usage_lock import exclusive_usage_lock

        try:
            with exclusive_usage_lock(turn) as hold:
                if hold is not None:
                    self._asked(lambda kept: kept.end_left(session_id), START_SECONDS)
        except (EngineError, ContainerError) as error:
            self._log_left(error)
            return False
        return True

    def _orphans_and_gone(self, kept: Containers) -> list[str]:
        orphans = kept.sweep()
        return orphans + [key for key in kept.known() if self._if_gone(key, partial(kept.remove, key))]

    def _noted(self) -> list[str]:
        """The sessions that somebody used a container of."""
        if not os.path.isdir(self._locks):
            return []
        from carrel.containers.usage_lock import recorded_keys

        return recorded_keys(self._locks)

    def _turns(self) -> list[str]:
        """The sessions that programs took turns in."""
        try:
            names = os.listdir(self._locks)
        except (FileNotFoundError, NotADirectoryError):
            return []
        found = (name.removesuffix(TURN) for name in names if name.endswith(TURN))
        return [name for name in found if id_problem(name) is None]

    def _has_orphans(self) -> bool:
        names = self._noted()
        if not names:
            return False
        from carrel.containers.usage_lock import LOCK_SUFFIX, is_held

        return not all(is_held(self._locks / f"{name}{LOCK_SUFFIX}") for name in names)

    def _if_gone(self, session_id: str, do: Callable[[], bool]) -> bool:
        """Do it if there is no such session, while nobody can make it again; whether it was done."""
        if os.path.lexists(self._store.root / session_id):
            return False
        try:
            with self._store.claim(session_id, wait_seconds=0) as claim:
                return claim.workspace() is None and do()
        except (BusyError, UnavailableError):
            return False

    def _forget_turn(self, session_id: str) -> bool:
        """Remove the file by which programs took turns; those that ran are ended with the container."""
        try:
            (self._locks / f"{session_id}{TURN}").unlink()
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def _remove(self, remove: Callable[[Containers], list[str]], most_seconds: float = math.inf) -> int:
        """How many *remove* did; what the engine does not do is logged, and left for the next sweep."""
        try:
            removed = self._asked(remove, most_seconds)
        except (EngineError, ContainerError) as error:
            self._log_left(error)
            return 0
        for session_id in removed:
            self._logger.log_event("session.container.removed", session_id=session_id)
        return len(removed)

    def _asked(self, ask: Callable[[Containers], EngineAnswer], most_seconds: float) -> EngineAnswer:
        """What the containers of these sessions answer.

        Raises:
            EngineError: The engine does not answer in time.
            ContainerError: It could not do that.
        """
        from carrel.containers.engine import Engine
        from carrel.containers.manager import Containers

        seconds = min(self._settings.timeout_seconds, most_seconds)
        with Engine.connect(self._settings.address, timeout_seconds=seconds) as engine:
            return ask(Containers(engine, self._locks))

    def _log_left(self, error: EngineError | ContainerError) -> None:
        # The log is the operator's, who may know what the engine itself says.
        told = {"code": error.code, "error": str(error), "detail": error.detail}
        self._logger.log_event("session.container.left", logging.WARNING, **told)
