"""`ContainerSpec`: what a container is created from, locked down unless the operator loosens it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from posixpath import normpath
from types import MappingProxyType
from typing import Any

from carrel.errors import ContainerError
from carrel.values import MIB

WORKSPACE = "/workspace"
"""Where a container finds its files."""
NOBODY = "65532:65532"
"""A user and a group that no image gives anything to."""
WAIT = ("sh", "-c", "trap 'exit 0' TERM; while :; do sleep 2147483647 & wait $!; done")
"""Keeps a container running, and takes in the processes that lose their parents."""
WAITING_PROCESSES = 2
"""How many that is: the shell and its `sleep`."""
_WAITING_USERS = ("65533:65533", "65531:65531")
"""Who that is: never the user of the programs, who could stop or replace it and so outlive their run."""
USER_LABEL = "carrel.user"
"""Tells who programs run as; the engine's own field has the user of what waits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """A directory of the engine's host at `/workspace`."""

    source: str

    def to_engine(self) -> dict[str, Any]:
        """As the engine wants it: what is mounted in it later, or was before, is not seen inside."""
        options = {"Propagation": "rprivate", "NonRecursive": True}
        return {"Type": "bind", "Source": self.source, "Target": WORKSPACE, "BindOptions": options}


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A volume of the engine at `/workspace`; it stays when the container goes."""

    name: str
    memory_bytes: int | None = None
    """Keep it in memory, with this as its size, which the kernel holds to; gone with its last container."""
    entries: int | None = None
    """Of a volume in memory: most files and directories."""
    owner: str = NOBODY

    def to_engine(self) -> dict[str, Any]:
        """As the engine wants it, which makes it if it is missing."""
        options: dict[str, Any] = {"NoCopy": True, "Labels": {"carrel": "1"}}
        if self.memory_bytes is not None:
            user, _, group = self.owner.partition(":")
            inodes = "" if self.entries is None else f",nr_inodes={self.entries + 1}"
            told = f"size={self.memory_bytes}{inodes},mode=0755,uid={user},gid={group or user},nosuid,nodev"
            options["DriverConfig"] = {
                "Name": "local",
                "Options": {"type": "tmpfs", "device": "tmpfs", "o": told},
            }
        return {"Type": "volume", "Source": self.name, "Target": WORKSPACE, "VolumeOptions": options}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """What a container is made of.

    The defaults lock it down: no network, no capabilities, no new privileges, a root that cannot be written,
    a user that is not root, and the engine's own filter of system calls.
    """

    image: str
    user: str = NOBODY
    mount: Bind | Volume | None = None
    """What is at `/workspace`."""
    command: tuple[str, ...] | None = WAIT
    """What keeps it running; with `None` it is made and never started."""
    memory_bytes: int = 512 * MIB
    """Of all its processes and of its `/tmp`; none of it is swapped."""
    cpus: float = 1.0
    pids: int = 128
    open_files: int = 1024
    file_bytes: int | None = None
    """The size that one file may reach."""
    tmp_bytes: int = 64 * MIB
    """What its `/tmp` may hold, in memory."""
    network: str = "none"
    """The engine's network that it is in."""
    read_only: bool = True
    """Whether its root cannot be written."""
    capabilities: tuple[str, ...] = ()
    """Those that it keeps."""
    new_privileges: bool = False
    seccomp: str | None = None
    """Another filter of system calls than the engine's own: `unconfined`, or its text as JSON."""
    env: Mapping[str, str] = field(default_factory=dict)
    pull: bool = False
    """Whether a missing image is fetched from its registry."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "env", MappingProxyType(dict(self.env)))
        for name in ("memory_bytes", "cpus", "pids", "open_files"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be more than 0, not {getattr(self, name)!r}")
        if not self.image:
            raise ValueError("image must name an image")

    @property
    def digest(self) -> str:
        """Tells whether a container was made in the same way."""
        text = json.dumps(self.to_engine({}), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_engine(self, labels: Mapping[str, str], volumes: Iterable[str] = ()) -> dict[str, Any]:
        """As the engine wants it, for an image that declares *volumes*, which are in memory as `/tmp` is.

        Raises:
            ContainerError: One of them would hide a part of what is mounted at `/workspace`.
        """
        return {
            "Image": self.image,
            "Entrypoint": [],
            "Cmd": list(self.command or ("-",)),
            "User": next(user for user in _WAITING_USERS if _number(user) != _number(self.user)),
            "Env": [f"{name}={value}" for name, value in self.env.items()],
            "WorkingDir": "/",
            "Labels": {**labels, USER_LABEL: self.user},
            "NetworkDisabled": self.network == "none",
            "StopSignal": "SIGTERM",
            "Healthcheck": {"Test": ["NONE"]},
            "HostConfig": self._host(volumes),
        }

    def _host(self, volumes: Iterable[str]) -> dict[str, Any]:
        limits = [{"Name": "nofile", "Soft": self.open_files, "Hard": self.open_files}]
        limits.append({"Name": "core", "Soft": 0, "Hard": 0})
        if self.file_bytes is not None:
            limits.append({"Name": "fsize", "Soft": self.file_bytes, "Hard": self.file_bytes})
        # The engine would make a volume of its own, on its disk, for what nothing is mounted at.
        in_memory = {"/tmp", *map(normpath, volumes)} - ({WORKSPACE} if self.mount else set())  # noqa: S108
        if self.mount and any(each.startswith(f"{WORKSPACE}/") for each in in_memory):
            raise ContainerError(
                "volumes",
                f"the image {self.image!r} declares a volume inside {WORKSPACE}, and would hide files",
            )
        security = [] if self.new_privileges else ["no-new-privileges:true"]
        if self.seccomp is not None:
            security.append(f"seccomp={self.seccomp}")
        return {
            "NetworkMode": self.network,
            "CapDrop": ["ALL"],
            "CapAdd": list(self.capabilities),
            "SecurityOpt": security,
            "ReadonlyRootfs": self.read_only,
            "Tmpfs": dict.fromkeys(in_memory, f"rw,exec,nosuid,nodev,mode=1777,size={self.tmp_bytes}"),
            "Memory": self.memory_bytes,
            "MemorySwap": self.memory_bytes,
            "NanoCpus": int(self.cpus * 1e9),
            "PidsLimit": self.pids,
            "Ulimits": limits,
            "IpcMode": "private",
            "ShmSize": min(self.tmp_bytes, self.memory_bytes),
            "CgroupnsMode": "private",
            "OomScoreAdj": 500,
            "Privileged": False,
            "Mounts": [self.mount.to_engine()] if self.mount else [],
            "LogConfig": {"Type": "none"},
            "RestartPolicy": {"Name": "no"},
        }


def _number(user: str) -> str:
    return user.partition(":")[0]
