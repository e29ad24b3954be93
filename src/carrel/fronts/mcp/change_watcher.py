"""`ChangeWatcher`: notify subscribers of changes to the files of a session, by any process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from carrel.audit.event import Event
from carrel.errors import CarrelError, LimitError, RotatedError
from carrel.fronts.mcp.resource_uri import ResourceUri
from carrel.service.journal_stream import PAGE
from carrel.service.principal import Principal
from carrel.service.service import Service

MAX_WATCHES = 4096
"""Maximum number of watches."""
MAX_WATCHES_PER_CALLER = 1024
"""Maximum number of watches of one caller."""
LATEST = 2**62
"""Greater than any sequence number."""
RETRY_SECONDS = 1.0
"""Interval at which a missing session is looked for again."""

OnChange = Callable[[Event | None], object]
"""Called with a change, or with `None` if changes may have been missed."""
Key = tuple[str | None, str, str | None]
"""A tenant, one of its sessions, and a role, which limits the changes that are visible."""


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """A watched path."""

    caller: Principal
    path: str
    notify: OnChange

    def matches(self, event: Event) -> bool:
        """Whether the path, a directory above it or something beneath it was changed."""
        paths = (event.path,) if event.other_path is None else (event.path, event.other_path)
        return event.error is None and any(_touches(path, self.path) for path in paths)


@dataclass(slots=True, eq=False)
class _Followed:
    """A session whose journal is followed while it has watches."""

    caller: Principal
    """The caller of the first watch; all callers have the same sessions and the same role."""
    watches: set[Watch] = field(default_factory=set)
    caught_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the records from before the first watch are read."""
    task: asyncio.Task[None] | None = None


class ChangeWatcher:
    """Follows the journals of sessions with watches."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._followed: dict[Key, _Followed] = {}

    async def watch(self, caller: Principal, address: ResourceUri, notify: OnChange) -> Callable[[], None]:
        """Call *notify* for each change at *address* from now on; the returned function ends that.

        Raises:
            CarrelError: The session does not exist, the caller may not read it, or it has too many watches.
        """
        self._require_room(caller)
        # Also if the session is followed already: this caller may have fewer permissions.
        await self._service.changes(caller, address.session, LATEST)
        key = caller.tenant, address.session, caller.role
        followed = self._followed.get(key)
        if followed is None:
            followed = self._followed[key] = _Followed(caller)
            followed.task = asyncio.create_task(self._follow(key, followed))
        watch = Watch(caller, address.path, notify)
        followed.watches.add(watch)
        try:
            await followed.caught_up.wait()
        except asyncio.CancelledError:
            self._end(key, followed, watch)
            raise
        return lambda: self._end(key, followed, watch)

    def _require_room(self, caller: Principal) -> None:
        """Require that there are few enough watches, in total and of the caller.

        Raises:
            LimitError: There are too many.
        """
        callers = [watch.caller for each in self._followed.values() for watch in each.watches]
        of_caller = sum((each.tenant, each.name) == (caller.tenant, caller.name) for each in callers)
        for count, limit, whose in (
            (of_caller, MAX_WATCHES_PER_CALLER, "of yours "),
            (len(callers), MAX_WATCHES, ""),
        ):
            if count >= limit:
                message = f"{count} subscriptions {whose}are active, and no more may be; end some of them"
                raise LimitError("watches", limit=limit, asked=count + 1, message=message)

    def close(self) -> None:
        """End all watches."""
        for key, followed in tuple(self._followed.items()):
            for watch in tuple(followed.watches):
                self._end(key, followed, watch)

    def _end(self, key: Key, followed: _Followed, watch: Watch) -> None:
        followed.watches.discard(watch)
        if not followed.watches and self._followed.get(key) is followed:
            del self._followed[key]
            if followed.task is not None:
                followed.task.cancel()

    async def _follow(self, key: Key, followed: _Followed) -> None:
        """Notify of changes while there are watches, even if the session is deleted and re-created."""
        _, session, _ = key
        try:
            while True:
                try:
                    await self._notify_changes(session, followed)
                except RotatedError:
                    # Some records are lost; the notification below makes clients read again.
                    followed.caught_up.clear()
                except CarrelError:
                    followed.caught_up.set()
                    await asyncio.sleep(RETRY_SECONDS)
                    continue
                _notify_all(followed.watches, None)
        finally:
            followed.caught_up.set()

    async def _notify_changes(self, session: str, followed: _Followed) -> None:
        """Notify of changes until the session is deleted."""
        async for page in self._service.follow(followed.caller, session):
            if followed.caught_up.is_set():
                for event in page.events:
                    _notify_all(followed.watches, event)
            elif len(page.events) < PAGE:
                followed.caught_up.set()


def _notify_all(watches: Iterable[Watch], event: Event | None) -> None:
    for watch in tuple(watches):
        if event is None or watch.matches(event):
            watch.notify(event)


def _touches(changed: str, watched: str) -> bool:
    if watched == "." or changed in (watched, "."):
        return True
    return changed.startswith(f"{watched}/") or watched.startswith(f"{changed}/")
