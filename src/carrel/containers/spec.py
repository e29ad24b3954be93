"""`ContainerSpec`: the configuration of a container, locked down by default."""

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
"""Mount point of the workspace in a container."""
NOBODY = "65532:65532"
"""A user and group that own nothing in any image."""
WAIT = ("sh", "-c", "trap 'exit 0' TERM; while :; do sleep 2147483647 & wait $!; done")
"""Keeps a container running and reaps orphaned processes."""
WAITING_PROCESSES = 2
"""Number of processes of `WAIT`: the shell and its `sleep`."""
_WAITING_USERS = ("65533:65533", "65531:65531")
"""Users for `WAIT`, never that of the programs, which could kill or replace it and so outlive their run."""
USER_LABEL = "carrel.user"
"""Label with the user that programs run as; Docker's own field has the user of `WAIT`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """A directory of the engine's host at `/workspace`."""

    source: str

    def to_engine(self) -> dict[str, Any]:
        """Return the mount for Docker; other mounts inside the directory are not visible in the container."""
        options = {"Propagation": "rprivate", "NonRecursive": True}
        return {"Type": "bind", "Source": self.source, "Target": WORKSPACE, "BindOptions": options}


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """A Docker volume at `/workspace`; it outlives the container."""

    name: str
    memory_bytes: int | None = None
    """Keep it in memory, with this size enforced by the kernel; it is lost with its last container."""
    entries: int | None = None
    """Most files and directories, for a volume in memory."""
    owner: str = NOBODY

    def to_engine(self) -> dict[str, Any]:
        """Return the mount for Docker, which creates the volume if it is missing."""
        options: dict[str, Any] = {"NoCopy": True, "Labels": {"carrel": "1"}}
        if self.memory_bytes is not None:
            user, _, group = self.owner.partition(":")
            inodes = "" if self.entries is None else f",nr_inodes={self.entries + 1}"
            mount_options = (
                f"size={self.memory_bytes}{inodes},mode=0755,uid={user},gid={group or user},nosuid,nodev"
            )
            options["DriverConfig"] = {
                "Name": "local",
                "Options": {"type": "tmpfs", "device": "tmpfs", "o": mount_options},
            }
        return {"Type": "volume", "Source": self.name, "Target": WORKSPACE, "VolumeOptions": options}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """Configuration of a container.

    The defaults lock it down: no network, no capabilities, no new privileges, a read-only root file system,
    a user other than root, and Docker's default seccomp profile.
    """

    image: str
    user: str = NOBODY
    mount: Bind | Volume | None = None
    """What is mounted at `/workspace`."""
    command: tuple[str, ...] | None = WAIT
    """The command that keeps it running; with `None` it is created and never started."""
    memory_bytes: int = 512 * MIB
    """Memory limit of all its processes and of its `/tmp`, without swap."""
    cpus: float = 1.0
    pids: int = 128
    open_files: int = 1024
    file_bytes: int | None = None
    """Largest size of one file (RLIMIT_FSIZE)."""
    tmp_bytes: int = 64 * MIB
    """Size of its `/tmp`, which is in memory."""
    network: str = "none"
    """Name of its Docker network."""
    read_only: bool = True
    """Whether its root file system is read-only."""
    capabilities: tuple[str, ...] = ()
    """Linux capabilities that it keeps."""
    new_privileges: bool = False
    seccomp: str | None = None
    """A seccomp profile instead of Docker's default: `unconfined`, or JSON text."""
    env: Mapping[str, str] = field(default_factory=dict)
    pull: bool = False
    """Whether a missing image is pulled from its registry."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "env", MappingProxyType(dict(self.env)))
        for name in ("memory_bytes", "cpus", "pids", "open_files"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be more than 0, not {getattr(self, name)!r}")
        if not self.image:
            raise ValueError("image must name an image")

    @property
    def digest(self) -> str:
        """A hash that is equal for containers created from the same configuration."""
        text = json.dumps(self.to_engine({}), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def to_engine(self, labels: Mapping[str, str], volumes: Iterable[str] = ()) -> dict[str, Any]:
        """Return the configuration for Docker; *volumes* declared by the image are in memory, as `/tmp` is.

        Raises:
            ContainerError: One of them would hide files of the workspace.
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
        # Docker would create a volume on disk for each declared path where nothing is mounted.
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
