"""Kill everything that runs in a container, except the process that keeps it running.

The kernel kills all processes of the programs' user at once, so none can escape by forking. The process that
keeps the container running has another user, so no program can kill or replace it. If the kill cannot be
started, because there is no room for another process, or if a process of any other user is left, the
container is restarted.
"""

from __future__ import annotations

import time
from contextlib import suppress

from carrel.containers.container import Container, ContainerState
from carrel.containers.spec import WAITING_PROCESSES
from carrel.errors import ContainerError

_KILL = ("sh", "-c", "kill -9 -1")
_KILL_SECONDS = 2.0
"""Time limit for the kill in seconds; it takes 0.05, but far longer if processes use up all resources."""
_CHECKS = 3
_SCRIPT_SECONDS = 10.0
_LIST_USERS = (
    "for each in /proc/[0-9]*; do [ $each = /proc/$$ ] || while read -r name user rest;"
    " do [ $name != Uid: ] || echo $user; done <$each/status; done"
)
"""Script that prints the user of every process but its own, that of process 1 first."""


def kill_all(container: Container) -> None:
    """Kill everything in *container*.

    Raises:
        ContainerError: It cannot be restarted.
        EngineError: The engine does not respond.
    """
    with suppress(ContainerError):
        _kill(container)
    with suppress(ContainerError):
        if any(is_idle(container) for _ in range(_CHECKS)):
            return
    container.restart()


def kill_leftovers(container: Container) -> bool:
    """Kill what a program left running; returns whether there was anything."""
    if is_idle(container):
        return False
    kill_all(container)
    return True


def is_idle(container: Container) -> bool:
    """Whether nothing runs but the process that keeps the container running, whose user no program has."""
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
    """Return the user of every process as seen by the engine's host, that of the first process first."""
    found = container.processes()
    return [found.pop(state.first_pid, "none"), *found.values()]


def users_inside(container: Container, state: ContainerState) -> list[str]:
    """Return the users as seen in the container, for an engine host without `ps`; empty if that fails."""
    return run_script(container, _LIST_USERS, user=state.first_user).split()


def _kill(container: Container) -> None:
    """Kill all processes of the programs' user, which needs room for one more process."""
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
    """Run a short script as the programs' user or as *user*, and return its output."""
    stream = container.exec(("sh", "-c", script, *arguments), user=user, stdin=False)
    deadline = time.monotonic() + _SCRIPT_SECONDS
    output = b""
    try:
        while (chunk := stream.receive(deadline)) is not None:
            output += chunk[1]
    except EOFError:
        pass
    finally:
        stream.close()
    return output.decode("utf-8", "replace")
