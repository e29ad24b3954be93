"""`Engines`: the runtimes of this process, created on first use."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

from carrel.audit.logger import SandboxLogger
from carrel.config.settings import ContainerSettings, PythonSettings
from carrel.errors import ConfigError
from carrel.process import PROCESS
from carrel.runtimes.api import Runtime
from carrel.runtimes.wasm.build.compiled import CompiledGuest
from carrel.runtimes.wasm.pool import Owner, Pool, PoolSettings
from carrel.runtimes.wasm.runtime import PythonRuntime
from carrel.runtimes.wasm.stateful import StatefulInterpreters
from carrel.runtimes.wasm.worker.lockdown import has_seccomp, landlock_version
from carrel.values import MIB

if TYPE_CHECKING:
    from carrel.runtimes.container.runtime import ContainerRuntime

FindEngine = Callable[[PythonSettings], Runtime]
"""Returns the runtime that executes guest code under given settings."""


class Engines:
    """One runtime per distinct settings; a process rarely has more than one or two."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._found: dict[PythonSettings, PythonRuntime] = {}
        self._containers: dict[ContainerSettings, ContainerRuntime] = {}

    def get(self, settings: PythonSettings) -> PythonRuntime:
        """Return the Python runtime with these *settings*."""
        with self._lock:
            found = self._found.get(settings)
            if found is None:
                found = self._found[settings] = make_engine(settings)
            return found

    def container(self, settings: ContainerSettings) -> ContainerRuntime:
        """Return the container runtime with these *settings*."""
        with self._lock:
            found = self._containers.get(settings)
            if found is None:
                found = self._containers[settings] = make_containers(settings)
            return found

    def close(self) -> None:
        """End all processes, and remove the containers that no other process uses."""
        with self._lock:
            found, self._found = self._found, {}
            containers, self._containers = self._containers, {}
        for engine in found.values():
            engine.close()
        for runtime in containers.values():
            runtime.close()

    def abandon(self) -> None:
        """Start empty in a forked child; what runs belongs to the parent."""
        self._lock = RLock()
        for engine in self._found.values():
            engine.abandon()
        for runtime in self._containers.values():
            runtime.abandon()


def make_engine(settings: PythonSettings, *, clock: Callable[[], float] = time.monotonic) -> PythonRuntime:
    """Create a Python runtime, which the caller closes.

    Raises:
        ConfigError: No location of the compiled guest is configured.
    """
    guest = CompiledGuest(settings.cache)
    logger = SandboxLogger()
    logger.log_event(
        "runtime.confined", runtime="python", landlock_abi=landlock_version(), seccomp=has_seccomp()
    )
    pool = Pool(
        str(guest.directory),
        PoolSettings(workers=settings.workers, ready=settings.ready, memory_mb=settings.memory_bytes // MIB),
    )
    kept = StatefulInterpreters(max_count=settings.stateful, idle_seconds=settings.idle_seconds, clock=clock)
    return PythonRuntime(guest, pool, kept)


def make_containers(settings: ContainerSettings) -> ContainerRuntime:
    """Create a container runtime, which the caller closes."""
    from carrel.runtimes.container.runtime import ContainerRuntime

    return ContainerRuntime(settings, state=_state_directory)


def _state_directory() -> Path:
    """Return the directory of usage locks for containers of workspaces that are not sessions.

    Raises:
        ConfigError: There is no home directory.
    """
    given, home = os.environ.get("XDG_STATE_HOME", ""), os.environ.get("HOME", "")
    if given.startswith("/"):
        return Path(given, "carrel", "containers")
    if not home.startswith("/"):
        raise ConfigError("a container for a directory needs HOME or XDG_STATE_HOME, for its usage lock")
    return Path(home, ".local", "state", "carrel", "containers")


def engines() -> Engines:
    """Return the engines of this process."""
    return PROCESS.get(Engines)


def owned_engine(owner: Owner, engine: FindEngine | None = None) -> FindEngine:
    """Restrict *engine*, by default that of this process, to worker processes that serve only *owner*."""

    def find(settings: PythonSettings) -> Runtime:
        found = (engine or engines().get)(settings)
        return found.owned_by(owner) if isinstance(found, PythonRuntime) else found

    return find


@contextmanager
def one_shot_engine() -> Iterator[FindEngine]:
    """Provide one runtime for a short-lived process, which keeps no interpreter ready."""
    made: list[PythonRuntime] = []

    def find(settings: PythonSettings) -> Runtime:
        if not made:
            made.append(make_engine(replace(settings, workers=1, ready=0)))
        return made[0]

    try:
        yield find
    finally:
        for each in made:
            each.close()
