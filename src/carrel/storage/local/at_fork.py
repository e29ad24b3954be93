"""Close what a child process must not inherit before this process forks."""

from __future__ import annotations

import os
from functools import cache
from threading import Lock, local
from typing import Protocol
from weakref import WeakValueDictionary


class Closable(Protocol):
    """Something that no child may inherit open."""

    def hold(self) -> bool:
        """Wait for the running call to end, close, and let no call in; whether that was possible."""
        ...

    def release(self) -> None:
        """Let calls in again."""
        ...

    def disown(self) -> None:
        """Belong to a process that was forked, also without `hold`."""
        ...


class ForkGuard:
    """Closes what it watches before every fork of this process.

    SQLite notes for each file which locks its process has. A child inherits the notes and not the locks: its
    new connections would read and write without any. And a thread that is within SQLite during a fork leaves
    it locked for ever in the child; so what is new waits until the fork is over.
    """

    def __init__(self) -> None:
        self._watched: WeakValueDictionary[int, Closable] = WeakValueDictionary()
        self._gate = Lock()
        """Kept by who forks."""
        self._mine = local()
        self._left: list[object] = []
        os.register_at_fork(before=self._hold, after_in_parent=self._release, after_in_child=self._disown)

    def watch(self, one: Closable) -> None:
        """Close that one too; to be called before its first use."""
        if self._watched.get(id(one)) is one:
            # A fork may be waiting for just this one, which must not wait for the fork.
            return
        with self._gate:
            self._watched[id(one)] = one

    def leave(self, inherited: object) -> None:
        """Keep for ever what the parent was using; closing it in the child would disturb the parent."""
        self._left.append(inherited)

    def _all(self) -> list[Closable]:
        """Those that are still in use, copied in one step while other threads add theirs."""
        return [one for seen in self._watched.valuerefs() if (one := seen()) is not None]

    def _hold(self) -> None:
        self._gate.acquire()
        held: list[Closable] = []
        self._mine.held = held
        held.extend(one for one in self._all() if one.hold())

    def _release(self) -> None:
        held: list[Closable] | None = getattr(self._mine, "held", None)
        if held is None:
            # Registered when this fork had begun.
            return
        self._mine.held = None
        for one in held:
            one.release()
        self._gate.release()

    def _disown(self) -> None:
        self._release()
        for one in self._all():
            one.disown()


@cache
def fork_guard() -> ForkGuard:
    """The one of this process, made when it is first needed: what is registered for forks stays for ever."""
    return ForkGuard()
