"""Create and remove Docker volumes owned by the user who will write to them."""

from __future__ import annotations

import io
import tarfile
from dataclasses import replace

from carrel.containers.container import Container
from carrel.containers.docker_errors import translate_docker_errors
from carrel.containers.engine import Engine
from carrel.containers.spec import WORKSPACE, ContainerSpec, Volume
from carrel.errors import ContainerError


def create_volume(engine: Engine, spec: ContainerSpec) -> None:
    """Create the volume of *spec*, if it has one that does not exist yet.

    A new volume belongs to root, and only root could change that. The engine runs as root: it extracts an
    archive with the right owner into a container that is never started.
    """
    volume = spec.mount
    if not isinstance(volume, Volume) or volume.memory_bytes is not None or _exists(engine, volume.name):
        return
    with translate_docker_errors(f"creating the volume {volume.name!r}"):
        unlocked = replace(spec, command=None, read_only=False).to_engine({"carrel": "1"})
        created = engine.api.create_container_from_config(unlocked)
    container = Container(engine, created["Id"], f"the container that creates {volume.name}")
    try:
        container.put_archive("/", _owned_directory(volume.owner))
    finally:
        container.remove()


def remove_volume(engine: Engine, name: str) -> bool:
    """Remove a volume, its content and our containers that use it; returns whether it existed.

    Raises:
        ContainerError: A container that is not ours uses it.
    """
    for found in engine.listed({"carrel": "1"}, volume=name):
        Container(engine, found["Id"], f"a user of {name}").remove()
    try:
        with translate_docker_errors(f"removing the volume {name!r}"):
            engine.api.remove_volume(name)
    except ContainerError as error:
        if error.problem == "missing":
            return False
        raise
    return True


def _exists(engine: Engine, name: str) -> bool:
    try:
        with translate_docker_errors(f"inspecting the volume {name!r}"):
            engine.api.inspect_volume(name)
    except ContainerError as error:
        if error.problem == "missing":
            return False
        raise
    return True


def _owned_directory(owner: str) -> bytes:
    """Return an archive that contains only `/workspace`, with its owner."""
    user, _, group = owner.partition(":")
    info = tarfile.TarInfo(f"{WORKSPACE[1:]}/")
    info.type, info.mode = tarfile.DIRTYPE, 0o755
    info.uid, info.gid = int(user), int(group or user)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(info)
    return archive.getvalue()
