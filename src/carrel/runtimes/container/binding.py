"""`ContainerBinding`: which container a workspace has, where its locks are, and its specification."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from carrel.config.settings import ContainerSettings
from carrel.containers.files import ContainerFiles
from carrel.containers.spec import NOBODY, WORKSPACE, Bind, ContainerSpec, Volume
from carrel.errors import UnavailableError
from carrel.fs.api import Files
from carrel.sessions.containers import TURN, locks_of
from carrel.values import Limits
from carrel.workspace.workspace import Workspace

_NOWHERE = "a container needs files on the host's disk, or in a volume at /workspace"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerBinding:
    """The container of one workspace."""

    directory: Path
    """Where it is noted who uses it."""
    key: str
    spec: ContainerSpec

    @property
    def name(self) -> tuple[Path, str]:
        """Tells it from all others."""
        return self.directory, self.key

    @property
    def turn(self) -> Path:
        """The lock of whoever runs something in it."""
        return self.directory / f"{self.key}{TURN}"

    @property
    def owner(self) -> tuple[int, int]:
        """Who programs run as: the numbers of a user and a group."""
        user, _, group = self.spec.user.partition(":")
        return int(user), int(group or user)


def find_binding(
    workspace: Workspace, files: Files, settings: ContainerSettings, state: Callable[[], Path]
) -> ContainerBinding:
    """The home of *workspace*; that of one that is no session is noted in the directory *state* gives.

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
        raise UnavailableError(_NOWHERE) from None
    spec = make_spec(settings, _user(settings), Bind(source=str(path)), workspace.limits)
    locks = locks_of(path.parent)
    if workspace.session_id == path.name and locks.parent.is_dir():
        return ContainerBinding(directory=locks, key=path.name, spec=spec)
    return ContainerBinding(directory=state(), key=_key("d", str(path)), spec=spec)


def _volume(files: ContainerFiles) -> Volume:
    """The volume in which *files* live, for another container: in theirs, their attendant would be ended."""
    volume = files.container.volume() if files.root == WORKSPACE else None
    if volume is None:
        raise UnavailableError(_NOWHERE)
    return volume


def make_spec(
    settings: ContainerSettings, user: str, mount: Bind | Volume | None, limits: Limits
) -> ContainerSpec:
    """What a container with these *settings* is made of.

    Raises:
        RuntimeMissingError: No image is configured.
    """
    # One file alone cannot be larger than all may be together.
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
    """Who programs run as: never root, unless the operator says so."""
    if settings.user is not None:
        return settings.user
    return NOBODY if os.geteuid() == 0 else f"{os.geteuid()}:{os.getegid()}"


def _key(kind: str, name: str) -> str:
    return f"{kind}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:40]}"
