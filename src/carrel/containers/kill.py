"""Kill everything that runs in a container, except the process that keeps it running.

The kernel ends all processes of the programs' user at once, so none can fork away. What keeps the container
waiting has another user, so no program can stop it or take its place. Where that cannot be asked for, because
there is no room for another process, or where one of any other user is left, the container is restarted.
"""

from __future__ import annotations

import time
from contextlib import suppress

from carrel.containers.container import Container, ContainerState
from carrel.containers.spec import WAITING_PROCESSES
from carrel.errors import ContainerError

_KILL = ("sh", "-c", "kill -9 -1")
_KILL_SECONDS = 2.0
"""It takes a twentieth of a second; not so among processes that take all there is."""
_LOOKS = 3
_SAY_SECONDS = 10.0
_USERS = (
    "for each in /proc/[0-9]*; do [ $each = /proc/$$ ] || while read -r name user rest;"
    " do [ $name != Uid: ] || echo $user; done <$each/status; done"
)
"""Names the user of every process but its own, that of process 1 first."""


def kill_all(container: Container) -> None:
    """End everything in *container*.

    Raises:
        ContainerError: It cannot be restarted.
        EngineError: The engine does not answer.
    """
    with suppress(ContainerError):
        _kill(container)
    with suppress(ContainerError):
        if any(is_idle(container) for _ in range(_LOOKS)):
            return
    container.restart()


def kill_leftovers(container: Container) -> bool:
    """End what a program left running; whether there was anything."""
    if is_idle(container):
        return False
    kill_all(container)
    return True


def is_idle(container: Container) -> bool:
    """Whether nothing runs but what keeps the container waiting, whose user no program has."""
    try:
        state = container.state()
    except ContainerError as error:
        if error.problem != "missing":
            raise
        return True
    if not state.running:
        return True
    try:
        users = users_listed(container, state)
    except ContainerError as error:
        if error.problem != "failed":
            raise
        users = users_inside(container, state)
    return len(users) <= WAITING_PROCESSES and len(set(users)) == 1


def users_listed(container: Container, state: ContainerState) -> list[str]:
    """The user of every process, as the engine's host has them, that of what waits first."""
    found = container.processes()
    return [found.pop(state.first_pid, "none"), *found.values()]


def users_inside(container: Container, state: ContainerState) -> list[str]:
    """The same as the container sees it, for an engine whose host has no `ps`; none if that fails."""
    return run_script(container, _USERS, user=state.first_user).split()


def _kill(container: Container) -> None:
    """Ask the kernel to end all of the programs' user, which works if there is room for one more process."""
    stream = container.exec(_KILL, stdin=False)
    deadline = time.monotonic() + _KILL_SECONDS
    try:
        while stream.receive(deadline) is not None:
            continue
    except EOFError:
        stream.wait(deadline)
    finally:
        stream.close()


def run_script(container: Container, script: str, *arguments: str, user: str | None = None) -> str:
    """What a short script of ours says, run by the programs' user or by *user*."""
    stream = container.exec(("sh", "-c", script, *arguments), user=user, stdin=False)
    deadline = time.monotonic() + _SAY_SECONDS
    told = b""
    try:
        while (piece := stream.receive(deadline)) is not None:
            told += piece[1]
    except EOFError:
        pass
    finally:
        stream.close()
    return told.decode("utf-8", "replace")
