"""`ContainerBinding`: the container of a workspace, its locks and its specification."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from carrel.config.settings import ContainerSettings
from carrel.containers.files import ContainerFiles
from carrel.containers.spec import NOBODY, WORKSPACE, Bind, ContainerSpec, Volume
from carrel.containers.usage_lock import exclusive_usage_lock
from carrel.errors import UnavailableError
from carrel.fs.api import Files
from carrel.runtimes.call import CancellableCall
from carrel.sessions.containers import RUN_SUFFIX, locks_dir
from carrel.values import Limits
from carrel.workspace.workspace import Workspace

_SLICE_SECONDS = 0.05
_UNREACHABLE = "a container needs files on the host's disk, or in a volume at /workspace"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerBinding:
    """The container of one workspace."""

    directory: Path
    """Directory of the usage locks."""
    key: str
    spec: ContainerSpec

    @property
    def name(self) -> tuple[Path, str]:
        """Identifies the container among all bindings."""
        return self.directory, self.key

    @property
    def run_lock(self) -> Path:
        """Lock file of the process that runs a program in the container."""
        return self.directory / f"{self.key}{RUN_SUFFIX}"

    @property
    def owner(self) -> tuple[int, int]:
        """User and group id of programs."""
        user, _, group = self.spec.user.partition(":")
        return int(user), int(group or user)


def find_binding(
    workspace: Workspace, files: Files, settings: ContainerSettings, state: Callable[[], Path]
) -> ContainerBinding:
    """Return the binding of *workspace*; *state* gives the lock directory if it is not a session.

    Raises:
        RuntimeMissingError: No image is configured.
        UnavailableError: The files are neither on the host's disk nor in a volume.
    """
    if isinstance(files, ContainerFiles):
        volume = _volume(files)
        spec = make_spec(settings, volume.owner, volume, workspace.limits)
        return ContainerBinding(directory=state(), key=_key("v", volume.name), spec=spec)
    try:
        path = workspace.host_path(".")
    except UnavailableError:
        raise UnavailableError(_UNREACHABLE) from None
    spec = make_spec(settings, _user(settings), Bind(source=str(path)), workspace.limits)
    locks = locks_dir(path.parent)
    if workspace.session_id == path.name and locks.parent.is_dir():
        return ContainerBinding(directory=locks, key=path.name, spec=spec)
    return ContainerBinding(directory=state(), key=_key("d", str(path)), spec=spec)


def _volume(files: ContainerFiles) -> Volume:
    """Return the volume of *files*, for another container: in theirs, the file agent would be killed."""
    volume = files.container.volume() if files.root == WORKSPACE else None
    if volume is None:
        raise UnavailableError(_UNREACHABLE)
    return volume


def make_spec(
    settings: ContainerSettings, user: str, mount: Bind | Volume | None, limits: Limits
) -> ContainerSpec:
    """Build the specification of a container with these *settings*.

    Raises:
        RuntimeMissingError: No image is configured.
    """
    # One file cannot be larger than the quota of all files.
    sizes = [size for size in (limits.file_bytes, limits.disk_bytes) if size is not None]
    return ContainerSpec(
        image=settings.require_image(),
        user=user,
        mount=mount,
        memory_bytes=settings.memory_bytes,
        cpus=settings.cpus,
        pids=settings.pids,
        file_bytes=min(sizes, default=None),
        tmp_bytes=settings.tmp_bytes,
        network=settings.network,
        read_only=settings.read_only,
        capabilities=settings.capabilities,
        new_privileges=settings.new_privileges,
        seccomp=settings.seccomp,
        pull=settings.pull,
    )


def _user(settings: ContainerSettings) -> str:
    """Return the user of programs: never root, unless the settings say so."""
    if settings.user is not None:
        return settings.user
    return NOBODY if os.geteuid() == 0 else f"{os.geteuid()}:{os.getegid()}"


def _key(kind: str, name: str) -> str:
    return f"{kind}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:40]}"


@contextmanager
def cross_process_lock(path: Path, call: CancellableCall, until: float) -> Iterator[bool]:
    """Wait for the lock file *path*; yield whether it was acquired before a cancellation and *until*.

    The kernel releases the lock of a process that dies.
    """
    while True:
        with exclusive_usage_lock(path) as lock:
            if lock is not None:
                yield True
                return
        if call.is_cancelled or time.monotonic() >= until:
            yield False
            return
        time.sleep(_SLICE_SECONDS)
