"""Release what a child process must not inherit before this process forks."""

from __future__ import annotations

import os
from functools import cache
from threading import Lock, local
from typing import Protocol
from weakref import WeakValueDictionary


class ForkAware(Protocol):
    """An object that must not be inherited open or in the middle of a call."""

    def before_fork(self) -> bool:
        """Wait for the running call, release what is open and keep calls out; return whether that worked."""
        ...

    def after_fork_in_parent(self) -> None:
        """Let calls in again; also called in the child, where `before_fork` returned true."""
        ...

    def after_fork_in_child(self) -> None:
        """Reset in the child, whether or not `before_fork` returned true."""
        ...


class ForkGuard:
    """Calls the objects that it watches before and after every fork of this process.

    SQLite remembers which locks its process holds on each file. A child inherits that memory but not the
    locks, so its new connections would read and write without any. And a thread that is inside SQLite during
    a fork leaves it locked forever in the child. So everything is released first, and new objects wait until
    the fork is over.
    """

    def __init__(self) -> None:
        self._watched: WeakValueDictionary[int, ForkAware] = WeakValueDictionary()
        self._forking = Lock()
        """Held during a fork."""
        self._thread = local()
        """The objects that the forking thread has released."""
        self._leaked: list[object] = []
        os.register_at_fork(
            before=self._before, after_in_parent=self._in_parent, after_in_child=self._in_child
        )

    def watch(self, one: ForkAware) -> None:
        """Watch *one*; must be called before its first use."""
        if self._watched.get(id(one)) is one:
            # A fork may be waiting for this object, which must not wait for the fork.
            return
        with self._forking:
            self._watched[id(one)] = one

    def leak(self, inherited: object) -> None:
        """Keep *inherited* forever: closing it in the child would disturb the parent, which is using it."""
        self._leaked.append(inherited)

    def _alive(self) -> list[ForkAware]:
        """Return the objects that are still in use, copied in one step while other threads add theirs."""
        return [one for seen in self._watched.valuerefs() if (one := seen()) is not None]

    def _before(self) -> None:
        self._forking.acquire()
        released: list[ForkAware] = []
        self._thread.released = released
        released.extend(one for one in self._alive() if one.before_fork())

    def _in_parent(self) -> None:
        released: list[ForkAware] | None = getattr(self._thread, "released", None)
        if released is None:
            # This guard was registered after the fork had begun.
            return
        self._thread.released = None
        for one in released:
            one.after_fork_in_parent()
        self._forking.release()

    def _in_child(self) -> None:
        self._in_parent()
        for one in self._alive():
            one.after_fork_in_child()


@cache
def fork_guard() -> ForkGuard:
    """Return the guard of this process.

    There is one per process because forks are: functions given to `os.register_at_fork` cannot be removed, so
    a guard per object would never be freed. It is created on first use and holds its objects weakly.
    """
    return ForkGuard()
