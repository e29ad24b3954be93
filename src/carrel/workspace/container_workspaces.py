"""`ContainerWorkspaces`: workspaces whose files live only in containers, in a volume each.

A container of its own does the work on the files of a workspace, and nothing else runs in it. Programs run in
another one that has the same volume, so they cannot see, stop or deceive what counts and checks.

Not covered: what programs write is counted when the workspace is opened and after each run. Two processes
that open the same workspace each keep a count of their own; a volume in memory holds its size among all.
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
FILES_PIDS = 64


class ContainerWorkspaces:
    """All workspaces of one directory of this host, on one engine; those who name the same share them."""

    def __init__(
        self, engine: Engine, directory: str | os.PathLike[str], *, image: str, in_memory: bool = False
    ) -> None:
        """Keep files in volumes of *engine*, worked on by what *image* has.

        With *in_memory* a volume is in memory: it holds no more than the quota, whoever writes, and is gone
        when nothing uses it any more. Otherwise it is on the engine's disk until it is deleted.
        """
        self.engine = engine
        self._keeper = Containers(engine, Path(directory))
        self._in_memory = in_memory
        # Nothing of the image's own runs in it, so it needs little.
        self._spec = ContainerSpec(image=image, memory_bytes=FILES_MEMORY_BYTES, pids=FILES_PIDS)

    def __enter__(self) -> ContainerWorkspaces:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def open(
        self, key: str, *, policy: SandboxPolicy | None = None, **options: Unpack[GateOptions]
    ) -> Workspace:
        """Open the workspace *key*, which is made if it is missing.

        Its limits are those of `Limits()`, unless *options* give others; see `GateOptions`.

        Raises:
            SessionIdError: A key is spelled like the id of a session, and this is not.
            ContainerError: Its container cannot be made or started.
            EngineError: The engine does not answer.
            ValueError: It is to be in memory, and its limits set no size.
        """
        limits = options.get("limits") or Limits()
        volume = self._volume(key, limits)
        self._keeper.register(key, self._specified(volume))
        files = ContainerFiles(self._keeper.ensure(key))
        options = {"session_id": key, **options, "limits": limits}
        return Workspace(files, policy=policy or SandboxPolicy.for_workspace(WORKSPACE), **options)

    def container(self, key: str) -> Container:
        """The container that does the work on the files of *key*, which was opened."""
        return self._keeper.ensure(key)

    def delete(self, key: str) -> bool:
        """Take a workspace away with all its files and all that runs on them; whether there was one.

        Raises:
            ContainerError: A container that is not ours uses its volume.
        """
        self._keeper.remove(key)
        return remove_volume(self.engine, self._keeper.name(key))

    def close(self) -> None:
        """Let go of all; files on the engine's disk stay."""
        self._keeper.close()

    def _specified(self, volume: Volume) -> ContainerSpec:
        spec = replace(self._spec, mount=volume)
        if volume.memory_bytes is None:
            return spec
        # The kernel counts the files to the container that wrote them.
        return replace(spec, memory_bytes=spec.memory_bytes + volume.memory_bytes)

    def _volume(self, key: str, limits: Limits) -> Volume:
        name = self._keeper.name(key)
        if not self._in_memory:
            return Volume(name=name)
        if limits.disk_bytes is None:
            raise ValueError("a workspace in memory needs a quota: limits.disk_bytes")
        return Volume(name=name, memory_bytes=limits.disk_bytes, entries=limits.entries)
