"""`Container`: one Docker container; operations that stop or remove something can be repeated."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from carrel.containers.docker_errors import translate_docker_errors
from carrel.containers.spec import USER_LABEL, WORKSPACE, Volume
from carrel.containers.stream import ExecStream
from carrel.errors import ContainerError

if TYPE_CHECKING:
    from carrel.containers.engine import Engine

STOP_SECONDS = 2
_NOT_STARTED = (126, 127)
"""Exit codes that Docker reports if the first program is not in the image or cannot be executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """State of a container."""

    running: bool
    paused: bool
    exit_code: int
    oom_killed: bool
    """Whether the kernel killed it for using too much memory."""
    first_pid: int
    """PID on the engine's host of the process that keeps it running; 0 if it is not running."""
    first_user: str
    """User of that process."""
    started_at: str
    """Start time as Docker reports it; changes with every start."""
    labels: Mapping[str, str]
    memory_bytes: int
    """Memory limit in bytes; 0 for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStat:
    """What Docker reports about a path in a container."""

    name: str
    size: int
    mode: int
    """Go's `FileMode`: permissions in the lowest nine bits, the kind in the highest."""
    modified: str
    """Modification time as Docker reports it, in ISO 8601 with nanoseconds."""
    target: str
    """Where a link leads, as an absolute path; empty if it is not a link."""


class Container:
    """One container, by its id."""

    def __init__(self, engine: Engine, container_id: str, name: str, *, user: str | None = None) -> None:
        """Use a container whose programs run as *user*, or as the container's own user."""
        self.engine = engine
        self.id = container_id
        self.name = name
        self._user = user

    def state(self) -> ContainerState:
        """Return the current state.

        Raises:
            ContainerError: The container does not exist.
        """
        with self._translated("inspecting it"):
            found = self.engine.api.inspect_container(self.id)
        state = found["State"]
        return ContainerState(
            running=bool(state["Running"]),
            paused=bool(state["Paused"]),
            exit_code=int(state["ExitCode"]),
            oom_killed=bool(state["OOMKilled"]),
            first_pid=int(state["Pid"]),
            first_user=str(found["Config"]["User"]),
            started_at=str(state["StartedAt"]),
            labels=found["Config"]["Labels"] or {},
            memory_bytes=int(found["HostConfig"].get("Memory") or 0),
        )

    def volume(self) -> Volume | None:
        """Return the volume at `/workspace`, which its user owns; `None` if it is not a volume."""
        with self._translated("inspecting it"):
            found = self.engine.api.inspect_container(self.id)
        for mount in found["Mounts"]:
            if mount["Destination"] == WORKSPACE and mount["Type"] == "volume":
                return Volume(name=mount["Name"], owner=found["Config"]["Labels"].get(USER_LABEL, "0:0"))
        return None

    # Lifecycle

    def start(self) -> None:
        """Start it, unless it is running.

        Raises:
            ContainerError: It does not exist, cannot be started, or its image lacks the first program.
        """
        try:
            with self._translated("starting it"):
                self.engine.api.start(self.id)
            return
        except ContainerError as error:
            problem = error
        if self.state().exit_code in _NOT_STARTED:
            problem = ContainerError(
                "program",
                f"{self.name}: the image does not have the program that keeps it running",
                detail=problem.detail,
            )
        raise problem

    def stop(self, seconds: int = STOP_SECONDS) -> None:
        """Stop it: SIGTERM, then SIGKILL after *seconds*."""
        with _unless("missing"), self._translated("stopping it"):
            self.engine.api.stop(self.id, timeout=seconds)

    def kill(self) -> None:
        """Kill everything in it at once."""
        with _unless("missing", "conflict"), self._translated("killing it"):
            self.engine.api.kill(self.id)

    def restart(self) -> None:
        """Kill everything in it at once and start it again, with an empty `/tmp`."""
        with self._translated("restarting it"):
            self.engine.api.restart(self.id, timeout=0)

    def pause(self) -> bool:
        """Pause everything in it; returns false if it was not running or already paused."""
        return self._changed("pausing it", self.engine.api.pause, "conflict")

    def unpause(self) -> bool:
        """Unpause it; returns whether it was paused."""
        return self._changed("unpausing it", self.engine.api.unpause, "conflict", "failed")

    def remove(self) -> None:
        """Kill and remove it; volumes stay."""
        with _unless("missing", "conflict"), self._translated("removing it"):
            self.engine.api.remove_container(self.id, force=True, v=True)

    def processes(self) -> dict[int, str]:
        """Return the user of each process by its PID on the engine's host, zombies included.

        Raises:
            ContainerError: It is not running, or the engine's host has no `ps`.
        """
        with self._translated("listing its processes"):
            rows = self.engine.api.top(self.id, ps_args="-eo pid,uid")["Processes"] or ()
        return {int(pid): user for pid, user in rows}

    def limit_memory(self, memory_bytes: int) -> None:
        """Change its memory limit, without swap; the limit survives a restart."""
        with self._translated("limiting its memory"):
            self.engine.api.update_container(self.id, mem_limit=memory_bytes, memswap_limit=memory_bytes)

    # Programs

    def exec(
        self,
        argv: Sequence[str],
        *,
        user: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bool = True,
    ) -> ExecStream:
        """Start a program in it.

        Raises:
            ContainerError: It is not running.
            EngineError: The engine does not respond.
        """
        body = {
            "AttachStdin": stdin,
            "AttachStdout": True,
            "AttachStderr": True,
            "Tty": False,
            "Cmd": list(argv),
            "Env": [f"{name}={value}" for name, value in (env or {}).items()],
            "WorkingDir": cwd or "",
            "User": user or self._user or "",
        }
        with self._translated("running a program in it"):
            path = self.engine.api._url("/containers/{0}/exec", self.id)
            response = self.engine.api._post_json(path, data=body)
            exec_id = str(self.engine.api._result(response, json=True)["Id"])
        connection = self.engine.hijack(f"/exec/{exec_id}/start", {"Detach": False, "Tty": False})
        return ExecStream(self.engine, exec_id, connection)

    # Archives

    def get_archive(self, path: str) -> Iterator[bytes]:
        """Yield a tar stream of everything at *path*."""
        return self.engine.stream(f"/containers/{self.id}/archive", {"path": path})

    def put_archive(self, path: str, tar: Iterable[bytes] | bytes) -> None:
        """Extract a tar stream into the directory *path*, with the owners in the archive."""
        url = self.engine.api._url("/containers/{0}/archive", self.id)
        parameters = {"path": path, "noOverwriteDirNonDir": "true"}
        with self._translated("extracting an archive into it"):
            self.engine.api._raise_for_status(self.engine.api._put(url, params=parameters, data=tar))

    def stat(self, path: str) -> PathStat | None:
        """Return what Docker reports about *path*, without following a link; `None` if it does not exist."""
        url = self.engine.api._url("/containers/{0}/archive", self.id) + f"?path={quote(path, safe='/')}"
        with self._translated("inspecting a path in it"):
            response = self.engine.api.head(url, timeout=self.engine.timeout_seconds)
            if response.status_code == 404 and "X-Docker-Container-Path-Stat" not in response.headers:
                self.state()
                return None
            self.engine.api._raise_for_status(response)
        return _path_stat(response.headers["X-Docker-Container-Path-Stat"])

    def _changed(self, doing: str, act: Callable[[str], object], *problems: str) -> bool:
        """Run *act* and return whether it changed anything; errors in *problems* mean that it did not."""
        try:
            with self._translated(doing):
                act(self.id)
        except ContainerError as error:
            if error.problem not in problems:
                raise
            return False
        return True

    def _translated(self, doing: str) -> AbstractContextManager[None]:
        return translate_docker_errors(f"{self.name}: {doing}")


def _path_stat(header: str) -> PathStat:
    found = json.loads(base64.b64decode(header))
    return PathStat(
        name=found["name"],
        size=found["size"],
        mode=found["mode"],
        modified=found["mtime"],
        target=found["linkTarget"],
    )


@contextmanager
def _unless(*problems: str) -> Iterator[None]:
    """Ignore errors with one of these problems."""
    try:
        yield
    except ContainerError as error:
        if error.problem not in problems:
            raise
