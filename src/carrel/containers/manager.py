"""`Containers`: one container per key, shared by all threads and processes.

Container names are unique on an engine, so of several concurrent creators one succeeds and the others find
its container. Each user holds a `UsageLock`; a container without a living user is an orphan, which `sweep`
removes.
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

_DIRECTORY_LABEL = "carrel.home"
_KEY_LABEL = "carrel.key"
_SPEC_LABEL = "carrel.spec"
_TRIES = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerStatus:
    """Status of the container of one key."""

    registered: bool
    exists: bool
    running: bool
    docker_id: str | None


class Containers:
    """The containers of one directory, which holds their usage locks."""

    def __init__(self, engine: Engine, directory: Path) -> None:
        """Manage containers on *engine*; processes of this host with the same *directory* share them."""
        self.engine = engine
        self._directory = directory
        self._directory_id = _directory_id(directory)
        self._lock = Lock()
        self._specs: dict[str, ContainerSpec] = {}
        self._key_locks: dict[str, RLock] = {}
        self._usage_locks: dict[str, UsageLock] = {}

    def register(self, key: str, spec: ContainerSpec) -> None:
        """Register the specification for *key*; nothing is created yet.

        Raises:
            SessionIdError: The key is not valid; keys follow the rule for session ids.
        """
        require_session_id(key)
        with self._lock:
            self._specs[key] = spec

    def name(self, key: str) -> str:
        """Return the name of the container of *key*."""
        return f"carrel-{self._directory_id}-{require_session_id(key)}"

    def ensure(self, key: str) -> Container:
        """Return the running container of *key*, creating or starting it if needed.

        Raises:
            ContainerError: *key* is not registered, its image is missing, it cannot be started, or another
                process uses it with another specification.
            EngineError: The engine does not respond.
        """
        spec = self._specs.get(key)
        if spec is None:
            raise ContainerError("unregistered", f"container {key!r} is not registered: register it first")
        with self._key_lock(key):
            container = self._find_or_create(key, spec, self._usage_lock(key))
            if spec.command is not None:
                _ensure_running(container)
            return container

    def start(self, key: str) -> Container:
        """Alias of `ensure`."""
        return self.ensure(key)

    def stop(self, key: str) -> bool:
        """Stop the container without removing it; returns whether it was running."""
        with self._key_lock(key):
            container = self._find(key)
            if container is None or not container.state().running:
                return False
            container.stop()
            return True

    def remove(self, key: str) -> bool:
        """Remove the container, even if it is in use; returns whether there was one. Volumes stay."""
        with self._key_lock(key):
            container = self._find(key)
            if container is not None:
                container.remove()
            lock = self._usage_locks.pop(key, None)
            if lock is not None:
                lock.release(remove_file=lock.try_exclusive())
            elif container is not None:
                with suppress(OSError):
                    self._lock_file(key).unlink()
            return container is not None

    def stop_programs(self, key: str) -> None:
        """Kill what programs left running in the container of *key*."""
        with self._key_lock(key):
            container = self._find(key)
            if container is not None:
                kill_leftovers(container)

    def status(self, key: str) -> ContainerStatus:
        """Return the status of the container of *key*."""
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
        """Return the keys that have a container on the engine, from any process."""
        return sorted(
            found["Labels"][_KEY_LABEL]
            for found in self.engine.listed({_DIRECTORY_LABEL: self._directory_id})
        )

    def sweep(self) -> list[str]:
        """Remove orphaned containers and locks without a container; returns the keys of the containers."""
        removed = []
        for key in sorted({*self.known(), *recorded_keys(self._directory)}):
            with exclusive_usage_lock(self._lock_file(key)) as lock:
                if lock is None:
                    continue
                container = self._find(key)
                if container is not None:
                    container.remove()
                    removed.append(key)
        return removed

    def close(self) -> None:
        """Release all containers; those with no other user are removed, or left to the next sweep."""
        for key in list(self._usage_locks):
            self.release(key)

    def release(self, key: str) -> None:
        """Release one container; without another user it is removed, or left to the next sweep."""
        with self._key_lock(key):
            lock = self._usage_locks.pop(key, None)
            if lock is not None:
                lock.release(remove_file=lock.try_exclusive() and self._is_removed(key))

    def abandon(self) -> None:
        """Release all locks in a forked child, whose parent keeps using them; does not touch the engine."""
        locks, self._usage_locks = self._usage_locks, {}
        for lock in locks.values():
            lock.release()

    def _is_removed(self, key: str) -> bool:
        """Remove a container; returns false if the engine fails."""
        try:
            container = self._find(key)
            if container is not None:
                container.remove()
        except (ContainerError, EngineError):
            return False
        return True

    def _usage_lock(self, key: str) -> UsageLock:
        """Return our usage lock of the container, taking it if needed."""
        lock = self._usage_locks.get(key)
        if lock is not None and not lock.exists():
            lock.release()
            lock = None
        if lock is None:
            lock = self._usage_locks[key] = UsageLock.share(self._lock_file(key))
        return lock

    def _key_lock(self, key: str) -> RLock:
        with self._lock:
            return self._key_locks.setdefault(key, RLock())

    def _lock_file(self, key: str) -> Path:
        return self._directory / f"{require_session_id(key)}{LOCK_SUFFIX}"

    def _find(self, key: str) -> Container | None:
        name = self.name(key)
        try:
            with translate_docker_errors(f"{name}: inspecting it"):
                found = self.engine.api.inspect_container(name)
        except ContainerError as error:
            if error.problem == "missing":
                return None
            raise
        user = (found["Config"]["Labels"] or {}).get(USER_LABEL)
        return Container(self.engine, found["Id"], name, user=user)

    def _find_or_create(self, key: str, spec: ContainerSpec, lock: UsageLock) -> Container:
        """Find or create the container with this specification."""
        for _ in range(_TRIES):
            container = self._find(key)
            if container is not None and container.state().labels.get(_SPEC_LABEL) == spec.digest:
                return container
            if container is not None:
                self._remove_other(key, container, lock)
            try:
                return self._create(key, spec)
            except ContainerError as error:
                if error.problem != "conflict":
                    raise
        raise ContainerError(
            "conflict", f"container {key!r} is created and removed again and again; try again later"
        )

    def _remove_other(self, key: str, container: Container, lock: UsageLock) -> None:
        """Remove a container with another specification, unless someone else uses it."""
        if not lock.try_exclusive():
            raise ContainerError("in_use", f"container {key!r} is in use with other settings")
        try:
            container.remove()
        finally:
            lock.make_shared()

    def _create(self, key: str, spec: ContainerSpec) -> Container:
        name = self.name(key)
        labels = {
            "carrel": "1",
            _DIRECTORY_LABEL: self._directory_id,
            _KEY_LABEL: key,
            _SPEC_LABEL: spec.digest,
        }
        if spec.pull and not self.engine.has_image(spec.image):
            self.engine.pull(spec.image)
        try:
            config = spec.to_engine(labels, self.engine.image_volumes(spec.image))
            create_volume(self.engine, spec)
            with translate_docker_errors(f"{name}: creating it from {spec.image!r}"):
                created = self.engine.api.create_container_from_config(config, name)
        except ContainerError as error:
            if error.problem not in ("image", "missing"):
                raise
            problem = ContainerError(
                "image", f"the image {spec.image!r} is not on the engine, and may not be pulled"
            )
        else:
            return Container(self.engine, created["Id"], name, user=spec.user)
        raise problem


def _ensure_running(container: Container) -> None:
    """Start or unpause the container."""
    state = container.state()
    if state.paused:
        container.unpause()
    elif not state.running:
        container.start()


def _directory_id(directory: Path) -> str:
    """Return an id for one directory on one host, which is part of the names of its containers."""
    try:
        machine = Path("/etc/machine-id").read_text("ascii", "replace").strip()
    except OSError:
        machine = ""
    return hashlib.sha256(f"{machine}:{directory.resolve()}".encode()).hexdigest()[:12]
