"""`ProcessResources`: what the module-level functions reuse between calls, owned by one object.

A program that calls `create_sandbox` or `write_session_file` has no application object that could own
runtimes, session managers and threads. They are owned here: created on first use, closed in reverse order
when the interpreter exits, and reset in a forked child, because they belong to the parent. Whatever is given
its own runtime or manager, such as a service, does not need this.
"""

from __future__ import annotations

import atexit
import os
from contextlib import ExitStack
from threading import RLock
from typing import Final, Protocol, TypeVar, cast


class ProcessResource(Protocol):
    """A resource that lives as long as the process."""

    def close(self) -> None:
        """Release everything; the resource may be used again afterwards."""
        ...

    def abandon(self) -> None:
        """Start empty in a forked child, without touching what the parent still uses."""
        ...


T = TypeVar("T", bound=ProcessResource)


class ProcessResources:
    """Owns at most one resource of each kind."""

    def __init__(self) -> None:
        # Reentrant: a signal handler may need a resource that its own thread is creating.
        self._lock = RLock()
        self._owned: dict[type[ProcessResource], ProcessResource] = {}

    def get(self, kind: type[T]) -> T:
        """Return the resource of this *kind*, created on first use."""
        found = self._owned.get(kind)
        if found is None:
            with self._lock:
                found = self._owned.get(kind)
                if found is None:
                    found = self._owned.setdefault(kind, kind())
        return cast(T, found)  # stored under its own class

    def close(self) -> None:
        """Close all resources, the one created last first."""
        with self._lock:
            owned = [*self._owned.values()]
        with ExitStack() as stack:  # an error in one does not leave the others open
            for resource in owned:
                stack.callback(resource.close)

    def abandon(self) -> None:
        """Reset all resources in a forked child."""
        self._lock = RLock()
        for resource in self._owned.values():
            resource.abandon()


PROCESS: Final = ProcessResources()
"""The resources of this process."""

os.register_at_fork(after_in_child=PROCESS.abandon)
atexit.register(PROCESS.close)
