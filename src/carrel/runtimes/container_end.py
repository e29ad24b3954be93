"""End everything that runs in a container, but for what keeps it waiting.

The kernel ends all processes of the user at once, so none can fork away; only the first process of the
container is spared. Where that cannot be asked for, because there is no room for another process, or where
something is left, the container is restarted.
"""

from __future__ import annotations

import time
from contextlib import suppress

from carrel.containers.container import Container
from carrel.containers.spec import WAITING_PROCESSES
from carrel.errors import ContainerError

_KILL = ("sh", "-c", "kill -9 -1")
_KILL_SECONDS = 2.0
"""It takes a twentieth of a second; not so among processes that take all there is."""
_LOOKS = 3


def end_all(container: Container) -> None:
    """End everything in *container*.

    Raises:
        ContainerError: It is gone, or cannot be restarted.
        EngineError: The engine does not answer.
    """
    with suppress(ContainerError):
        if _kill(container) and any(is_calm(container) for _ in range(_LOOKS)):
            return
    container.restart()


def end_left(container: Container) -> bool:
    """End what a program left running; whether there was anything."""
    if is_calm(container):
        return False
    end_all(container)
    return True


def is_calm(container: Container) -> bool:
    """Whether nothing runs but what keeps the container waiting."""
    return container.processes() <= WAITING_PROCESSES


def _kill(container: Container) -> bool:
    """Ask the kernel to end all; whether it could be asked."""
    stream = container.exec(_KILL, stdin=False)
    deadline = time.monotonic() + _KILL_SECONDS
    try:
        while stream.receive(deadline) is not None:
            continue
    except EOFError:
        return stream.wait(deadline) == 0 and stream.has_begun()
    finally:
        stream.close()
    return False
