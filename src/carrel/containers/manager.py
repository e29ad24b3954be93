"""`Containers`: one container per key, however many threads and processes use it.

The engine lets only one container have a name, so of all who make it at the same time one does, and the
others find it. A `UsageLock` says who uses it; what nobody alive uses is an orphan, and `sweep` removes it.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, RLock

from carrel.containers.container import Container
from carrel.containers.docker_errors import translate_docker_errors
from carrel.containers.engine import Engine
from carrel.containers.kill import kill_leftovers
from carrel.containers.spec import USER_LABEL, ContainerSpec
from carrel.containers.usage_lock import LOCK_SUFFIX, UsageLock, exclusive_usage_lock, recorded_keys
from carrel.containers.volume import create_volume
from carrel.errors import ContainerError, EngineError
from carrel.paths.session_id import require_session_id

_HOME = "carrel.home"
_KEY = "carrel.key"
_SPEC = "carrel.spec"
_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerStatus:
    """What is known about the container of a name."""

    registered: bool
    exists: bool
    running: bool
    docker_id: str | None


class Containers:
    """The containers of one directory, in which it is written who uses which."""

    def __init__(self, engine: Engine, directory: Path) -> None:
        """Keep them on *engine*; all who name the same *directory* on this host share them."""
        self.engine = engine
        self._directory = directory
        self._home = _home(directory)
        self._lock = Lock()
        self._specs: dict[str, ContainerSpec] = {}
        self._turns: dict[str, RLock] = {}
        self._holds: dict[str, UsageLock] = {}

    def register(self, key: str, spec: ContainerSpec) -> None:
        """Say what the container of *key* is made of; nothing is made yet.

        Raises:
            SessionIdError: A key is spelled like the id of a session, and this is not.
        """
        require_session_id(key)
        with self._lock:
            self._specs[key] = spec

    def name(self, key: str) -> str:
        """What the engine knows the container of *key* by."""
        return f"carrel-{self._home}-{require_session_id(key)}"

    def ensure(self, key: str) -> Container:
        """The container of *key*, which runs: made, started or found, once for all who ask.

        Raises:
            ContainerError: Nothing is registered under *key*, its image is missing, it cannot be started, or
                another process uses it with another specification.
            EngineError: The engine does not answer.
        """
        spec = self._specs.get(key)
        if spec is None:
            raise ContainerError("unregistered", f"container {key!r} is not registered: register it first")
        with self._turn(key):
            container = self._made(key, spec, self._held(key))
            if spec.command is not None:
                _run(container)
            return container

    def start(self, key: str) -> Container:
        """The same as `ensure`."""
        return self.ensure(key)

    def stop(self, key: str) -> bool:
        """End what runs in the container and leave it there; whether it ran."""
        with self._turn(key):
            container = self._find(key)
            if container is None or not container.state().running:
                return False
            container.stop()
            return True

    def remove(self, key: str) -> bool:
        """Take the container away, whoever uses it; whether there was one. Volumes stay."""
        with self._turn(key):
            container = self._find(key)
            if container is not None:
                container.remove()
            hold = self._holds.pop(key, None)
            if hold is not None:
                hold.release(forget=hold.alone())
            elif container is not None:
                with suppress(OSError):
                    self._file(key).unlink()
            return container is not None

    def end_left(self, key: str) -> None:
        """End what programs left running in the container of *key*, which stays."""
        with self._turn(key):
            container = self._find(key)
            if container is not None:
                kill_leftovers(container)

    def status(self, key: str) -> ContainerStatus:
        """What is known about the container of *key*."""
        container = self._find(key)
        running = False
        if container is not None:
            try:
                running = container.state().running
            except ContainerError as error:
                if error.problem != "missing":
                    raise
                container = None
        return ContainerStatus(
            registered=key in self._specs,
            exists=container is not None,
            running=running,
            docker_id=None if container is None else container.id,
        )

    def known(self) -> list[str]:
        """The keys that have a container on the engine, whoever made it."""
        return sorted(found["Labels"][_KEY] for found in self.engine.listed({_HOME: self._home}))

    def sweep(self) -> list[str]:
        """Remove the containers that nobody alive uses, and locks without one; the keys of the former."""
        removed = []
        for key in sorted({*self.known(), *recorded_keys(self._directory)}):
            with exclusive_usage_lock(self._file(key)) as hold:
                if hold is None:
                    continue
                container = self._find(key)
                if container is not None:
                    container.remove()
                    removed.append(key)
        return removed

    def close(self) -> None:
        """Let go of all containers; those that nobody else uses are removed, or left to the next sweep."""
        for key in list(self._holds):
            self.release(key)

    def release(self, key: str) -> None:
        """Let go of one; if nobody else uses it, it is removed, or left to the next sweep."""
        with self._turn(key):
            hold = self._holds.pop(key, None)
            if hold is not None:
                hold.release(forget=hold.alone() and self._is_removed(key))

    def abandon(self) -> None:
        """Let go in a child that was forked, where the parent goes on: nothing is removed nor asked."""
        holds, self._holds = self._holds, {}
        for hold in holds.values():
            hold.release()

    def _is_removed(self, key: str) -> bool:
        """Remove a container, if the engine can do that now."""
        try:
            container = self._find(key)
            if container is not None:
                container.remove()
        except (ContainerError, EngineError):
            return False
        return True

    def _held(self, key: str) -> UsageLock:
        """Say that we use the container, as long as this is not closed."""
        hold = self._holds.get(key)
        if hold is not None and not hold.is_there():
            hold.release()
            hold = None
        if hold is None:
            hold = self._holds[key] = UsageLock.share(self._file(key))
        return hold

    def _turn(self, key: str) -> RLock:
        with self._lock:
            return self._turns.setdefault(key, RLock())

    def _file(self, key: str) -> Path:
        return self._directory / f"{require_session_id(key)}{LOCK_SUFFIX}"

    def _find(self, key: str) -> Container | None:
        name = self.name(key)
        try:
            with translate_docker_errors(f"{name}: looking for it"):
                found = self.engine.api.inspect_container(name)
        except ContainerError as error:
            if error.problem == "missing":
                return None
            raise
        user = (found["Config"]["Labels"] or {}).get(USER_LABEL)
        return Container(self.engine, found["Id"], name, user=user)

    def _made(self, key: str, spec: ContainerSpec, hold: UsageLock) -> Container:
        """The container with this specification, found or made."""
        for _ in range(_TRIES):
            container = self._find(key)
            if container is not None and container.state().labels.get(_SPEC) == spec.digest:
                return container
            if container is not None:
                self._remove_other(key, container, hold)
            try:
                return self._make(key, spec)
            except ContainerError as error:
                if error.problem != "conflict":
                    raise
        raise ContainerError("conflict", f"container {key!r} is made and removed again and again")

    def _remove_other(self, key: str, container: Container, hold: UsageLock) -> None:
        """Take away a container that was made otherwise, if nobody else uses it."""
        if not hold.alone():
            raise ContainerError("in_use", f"container {key!r} is in use with other settings")
        try:
            container.remove()
        finally:
            hold.share_again()

    def _make(self, key: str, spec: ContainerSpec) -> Container:
        name = self.name(key)
        labels = {"carrel": "1", _HOME: self._home, _KEY: key, _SPEC: spec.digest}
        if spec.pull and not self.engine.has_image(spec.image):
            self.engine.pull(spec.image)
        try:
            config = spec.to_engine(labels, self.engine.image_volumes(spec.image))
            create_volume(self.engine, spec)
            with translate_docker_errors(f"{name}: making it of {spec.image!r}"):
                made = self.engine.api.create_container_from_config(config, name)
        except ContainerError as error:
            if error.problem not in ("image", "missing"):
                raise
            problem = ContainerError(
                "image", f"the image {spec.image!r} is not on the engine, and may not be pulled"
            )
        else:
            return Container(self.engine, made["Id"], name, user=spec.user)
        raise problem


def _run(container: Container) -> None:
    """Let it run, whatever it does now."""
    state = container.state()
    if state.paused:
        container.unpause()
    elif not state.running:
        container.start()


def _home(directory: Path) -> str:
    """Tells the containers of one directory on one host from all others on the engine."""
    try:
        machine = Path("/etc/machine-id").read_text("ascii", "replace").strip()
    except OSError:
        machine = ""
    return hashlib.sha256(f"{machine}:{directory.resolve()}".encode()).hexdigest()[:12]
