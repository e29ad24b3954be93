"""`ContainerWorkspaces`: workspaces whose files are only in containers, in one volume per workspace.

A dedicated container carries out the file operations of a workspace, and nothing else runs in it. Programs
run in another container with the same volume, so they cannot see, stop or deceive the one that counts and
checks.

Not covered: what programs write is counted when the workspace is opened and after each run. Two processes
that open the same workspace each keep their own count; the size of a volume in memory is enforced for all.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from carrel.containers.container import Container
from carrel.containers.engine import Engine
from carrel.containers.files import ContainerFiles
from carrel.containers.manager import Containers
from carrel.containers.spec import WORKSPACE, ContainerSpec, Volume
from carrel.containers.volume import remove_volume
from carrel.policy.rules import SandboxPolicy
from carrel.values import Limits
from carrel.workspace.gate import GateOptions
from carrel.workspace.workspace import Workspace

FILES_MEMORY_BYTES = 128 * 2**20
"""Memory limit of the container that carries out file operations, in bytes."""
FILES_PIDS = 64
"""Process limit of that container."""


class ContainerWorkspaces:
    """The workspaces recorded in one directory of this host, on one engine; processes may share them."""

    def __init__(
        self, engine: Engine, directory: str | os.PathLike[str], *, image: str, in_memory: bool = False
    ) -> None:
        """Keep files in volumes of *engine*, with containers of *image*.

        With *in_memory*, a volume is in memory: its size is limited to the quota for all writers, and it is
        lost when its last user is gone. Otherwise it is on the engine's disk until it is deleted.
        """
        self.engine = engine
        self._containers = Containers(engine, Path(directory))
        self._in_memory = in_memory
        # No program of the image runs in it, so it needs little.
        self._spec = ContainerSpec(image=image, memory_bytes=FILES_MEMORY_BYTES, pids=FILES_PIDS)

    def __enter__(self) -> ContainerWorkspaces:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def open(
        self, key: str, *, policy: SandboxPolicy | None = None, **options: Unpack[GateOptions]
    ) -> Workspace:
        """Open the workspace *key*, which is created if it is missing.

        Its limits are `Limits()`, unless *options* give others; see `GateOptions`.

        Raises:
            SessionIdError: The key is not a valid session id.
            ContainerError: Its container cannot be created or started.
            EngineError: The engine does not answer.
            ValueError: It is to be in memory, and its limits set no size.
        """
        limits = options.get("limits") or Limits()
        volume = self._volume(key, limits)
        self._containers.register(key, self._spec_with(volume))
        files = ContainerFiles(self._containers.ensure(key))
        options = {"session_id": key, **options, "limits": limits}
        return Workspace(files, policy=policy or SandboxPolicy.for_workspace(WORKSPACE), **options)

    def container(self, key: str) -> Container:
        """Return the container that carries out the file operations of *key*, which must be open."""
        return self._containers.ensure(key)

    def delete(self, key: str) -> bool:
        """Remove a workspace with its files and containers; return whether it existed.

        Raises:
            ContainerError: A foreign container uses its volume.
        """
        self._containers.remove(key)
        return remove_volume(self.engine, self._containers.name(key))

    def close(self) -> None:
        """Release all containers; files on the engine's disk stay."""
        self._containers.close()

    def _spec_with(self, volume: Volume) -> ContainerSpec:
        spec = replace(self._spec, mount=volume)
        if volume.memory_bytes is None:
            return spec
        # The kernel counts the files to the container that wrote them.
        return replace(spec, memory_bytes=spec.memory_bytes + volume.memory_bytes)

    def _volume(self, key: str, limits: Limits) -> Volume:
        name = self._containers.name(key)
        if not self._in_memory:
            return Volume(name=name)
        if limits.disk_bytes is None:
            raise ValueError("a workspace in memory needs a quota: limits.disk_bytes")
        return Volume(name=name, memory_bytes=limits.disk_bytes, entries=limits.entries)
