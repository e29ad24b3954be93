"""The runtimes of this process, created when first needed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Lock
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
"""Gives the engine that runs guest code under some settings."""


class Engines:
    """One engine for each way in which it can be set up; in a process that is never more than one or two."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._found: dict[PythonSettings, PythonRuntime] = {}
        self._containers: dict[ContainerSettings, ContainerRuntime] = {}

    def get(self, settings: PythonSettings) -> PythonRuntime:
        """The engine with these *settings*."""
        with self._lock:
            found = self._found.get(settings)
            if found is None:
                found = self._found[settings] = make_engine(settings)
            return found

    def container(self, settings: ContainerSettings) -> ContainerRuntime:
        """What runs programs in containers with these *settings*."""
        with self._lock:
            found = self._containers.get(settings)
            if found is None:
                found = self._containers[settings] = make_containers(settings)
            return found

    def close(self) -> None:
        """End all processes, and remove the containers that nobody else uses."""
        with self._lock:
            found, self._found = self._found, {}
            containers, self._containers = self._containers, {}
        for engine in found.values():
            engine.close()
        for runtime in containers.values():
            runtime.close()

    def abandon(self) -> None:
        """Begin anew in a child that was forked; what runs is the parent's."""
        self._lock = Lock()
        for engine in self._found.values():
            engine.abandon()
        for runtime in self._containers.values():
            runtime.abandon()


def make_engine(settings: PythonSettings, *, clock: Callable[[], float] = time.monotonic) -> PythonRuntime:
    """A new engine, which the caller closes.

    Raises:
        ConfigError: Nothing says where the compiled guest is.
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
    kept = StatefulInterpreters(most=settings.stateful, idle_seconds=settings.idle_seconds, clock=clock)
    return PythonRuntime(guest, pool, kept)


def make_containers(settings: ContainerSettings) -> ContainerRuntime:
    """What runs programs in containers, which the caller closes."""
    from carrel.runtimes.container.runtime import ContainerRuntime

    return ContainerRuntime(settings, state=_state)


def _state() -> Path:
    """Where it is noted which containers are used by workspaces that are no sessions.

    Raises:
        ConfigError: There is no home directory.
    """
    given, home = os.environ.get("XDG_STATE_HOME", ""), os.environ.get("HOME", "")
    if given.startswith("/"):
        return Path(given, "carrel", "containers")
    if not home.startswith("/"):
        raise ConfigError("a container for a directory needs HOME or XDG_STATE_HOME, to be noted there")
    return Path(home, ".local", "state", "carrel", "containers")


def engines() -> Engines:
    """Return the engines of this process."""
    return PROCESS.get(Engines)


def owned_engine(owner: Owner, engine: FindEngine | None = None) -> FindEngine:
    """What *engine* gives, by default that of this process, with no process shared by another owner."""

    def find(settings: PythonSettings) -> Runtime:
        found = (engine or engines().get)(settings)
        return found.owned_by(owner) if isinstance(found, PythonRuntime) else found

    return find


@contextmanager
def one_shot_engine() -> Iterator[FindEngine]:
    """For a process that ends soon: one engine, which makes nothing ready for a second call."""
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
