"""`Container`: one container of an engine; operations that end something can be repeated."""

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
"""The statuses that the engine notes if the first program is not in the image, or cannot be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """How a container is."""

    running: bool
    paused: bool
    exit_code: int
    oom_killed: bool
    """Whether the kernel ended it because it had too much memory."""
    first_pid: int
    """Of the process that keeps it running, on the engine's host; 0 if it does not run."""
    first_user: str
    """Whose that is."""
    started_at: str
    """As the engine writes it; another text after it was started again."""
    labels: Mapping[str, str]
    memory_bytes: int
    """Its ceiling for memory; 0 for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathStat:
    """What the engine says about a path in a container."""

    name: str
    size: int
    mode: int
    """As Go has it: permissions in the lowest nine bits, the kind in the highest."""
    modified: str
    """As the engine writes it, in ISO 8601 with nanoseconds."""
    target: str
    """Where a link leads, as an absolute path; empty for what is no link."""


class Container:
    """One container, by its id."""

    def __init__(self, engine: Engine, container_id: str, name: str, *, user: str | None = None) -> None:
        """Use a container whose programs run as *user*, or as the engine says."""
        self.engine = engine
        self.id = container_id
        self.name = name
        self._user = user

    def state(self) -> ContainerState:
        """How it is now.

        Raises:
            ContainerError: It is gone.
        """
        with self._translated("looking at it"):
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
        """The volume at its `/workspace`, which its user owns; `None` if there is something else."""
        with self._translated("looking at it"):
            found = self.engine.api.inspect_container(self.id)
        for mount in found["Mounts"]:
            if mount["Destination"] == WORKSPACE and mount["Type"] == "volume":
                return Volume(name=mount["Name"], owner=found["Config"]["Labels"].get(USER_LABEL, "0:0"))
        return None

    # Life

    def start(self) -> None:
        """Let it run, if it does not.

        Raises:
            ContainerError: It is gone, cannot be started, or its image has not what keeps it running.
        """
        try:
            with self._translated("starting it"):
                self.engine.api.start(self.id)
            return
        except ContainerError as error:
            problem = error
        if self.state().exit_code in _NOT_STARTED:
            problem = ContainerError(
                "program", f"{self.name}: the image has no such program", detail=problem.detail
            )
        raise problem

    def stop(self, seconds: int = STOP_SECONDS) -> None:
        """Ask it to end, and end it after *seconds*."""
        with _unless("missing"), self._translated("stopping it"):
            self.engine.api.stop(self.id, timeout=seconds)

    def kill(self) -> None:
        """End everything in it at once."""
        with _unless("missing", "conflict"), self._translated("killing it"):
            self.engine.api.kill(self.id)

    def restart(self) -> None:
        """End everything in it at once, and let it run again; its `/tmp` is empty then."""
        with self._translated("restarting it"):
            self.engine.api.restart(self.id, timeout=0)

    def pause(self) -> bool:
        """Freeze everything in it; whether it ran until now."""
        return self._changed("pausing it", self.engine.api.pause, "conflict")

    def unpause(self) -> bool:
        """Let it go on; whether it was frozen until now."""
        return self._changed("unpausing it", self.engine.api.unpause, "conflict", "failed")

    def remove(self) -> None:
        """End it and take it away; volumes stay."""
        with _unless("missing", "conflict"), self._translated("removing it"):
            self.engine.api.remove_container(self.id, force=True, v=True)

    def processes(self) -> dict[int, str]:
        """The users of all its processes, as the engine's host sees them; also of those that have ended.

        Raises:
            ContainerError: It does not run, or the engine's host has no `ps`.
        """
        with self._translated("listing its processes"):
            rows = self.engine.api.top(self.id, ps_args="-eo pid,uid")["Processes"] or ()
        return {int(pid): user for pid, user in rows}

    def limit_memory(self, memory_bytes: int) -> None:
        """Give it another ceiling for memory, none of which is swapped; it stays when it is restarted."""
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
        """Run a program in it.

        Raises:
            ContainerError: It is not running.
            EngineError: The engine does not answer.
        """
        order = {
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
            answer = self.engine.api._post_json(path, data=order)
            exec_id = str(self.engine.api._result(answer, json=True)["Id"])
        line = self.engine.hijack(f"/exec/{exec_id}/start", {"Detach": False, "Tty": False})
        return ExecStream(self.engine, exec_id, line)

    # Archives

    def get_archive(self, path: str) -> Iterator[bytes]:
        """A tar stream of what is at *path*."""
        return self.engine.stream(f"/containers/{self.id}/archive", {"path": path})

    def put_archive(self, path: str, tar: Iterable[bytes] | bytes) -> None:
        """Unpack a tar stream into the directory *path*, with the owners that it names."""
        url = self.engine.api._url("/containers/{0}/archive", self.id)
        parameters = {"path": path, "noOverwriteDirNonDir": "true"}
        with self._translated("storing in it"):
            self.engine.api._raise_for_status(self.engine.api._put(url, params=parameters, data=tar))

    def look(self, path: str) -> PathStat | None:
        """What the engine says about *path*, a link at its end kept; `None` if nothing is there."""
        url = self.engine.api._url("/containers/{0}/archive", self.id) + f"?path={quote(path, safe='/')}"
        with self._translated("looking into it"):
            answer = self.engine.api.head(url, timeout=self.engine.timeout_seconds)
            if answer.status_code == 404 and "X-Docker-Container-Path-Stat" not in answer.headers:
                self.state()
                return None
            self.engine.api._raise_for_status(answer)
        return _path_stat(answer.headers["X-Docker-Container-Path-Stat"])

    def _changed(self, doing: str, act: Callable[[str], object], *problems: str) -> bool:
        """Whether *act* changed anything; errors that say that it is so already are passed over."""
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
    """Pass over errors that say that it is so already."""
    try:
        yield
    except ContainerError as error:
        if error.problem not in problems:
            raise
