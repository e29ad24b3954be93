"""`ChangeWatcher`: notify subscribers that a file of a session changed, whoever changed it."""

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
"""So many may listen at once."""
MAX_WATCHES_PER_CALLER = 1024
"""Of those, so that nobody takes up the room of all others."""
LATEST = 2**62
"""Greater than the number of any record."""
RETRY_SECONDS = 1.0
"""So often a session that is gone is looked for."""

OnChange = Callable[[Event | None], object]
"""Is given a change; nothing if it is not known what was changed."""
Key = tuple[str | None, str, str | None]
"""A tenant, one of its sessions, and the role of those who listen, which limits what they are shown."""


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """What somebody listens for."""

    caller: Principal
    path: str
    tell: OnChange

    def concerns(self, event: Event) -> bool:
        """Whether the file, something above it or something in it was changed."""
        paths = (event.path,) if event.other_path is None else (event.path, event.other_path)
        return event.error is None and any(_touches(path, self.path) for path in paths)


@dataclass(slots=True, eq=False)
class _Followed:
    """A session whose journal is read while anybody listens."""

    caller: Principal
    """Whoever came first; all have the same sessions and the same role."""
    watches: set[Watch] = field(default_factory=set)
    caught_up: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when all that was before is read."""
    task: asyncio.Task[None] | None = None


class ChangeWatcher:
    """Reads the journals of the sessions in which somebody is interested."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._followed: dict[Key, _Followed] = {}

    async def watch(self, caller: Principal, address: ResourceUri, tell: OnChange) -> Callable[[], None]:
        """Call *tell* whenever something at *address* is changed from now on; gives what ends that.

        Raises:
            CarrelError: There is no such session, or the caller may not read in it, or too many listen.
        """
        self._require_room(caller)
        # Also for a session that is followed: this caller may not be allowed what another one is.
        await self._service.changes(caller, address.session, LATEST)
        key = caller.tenant, address.session, caller.role
        followed = self._followed.get(key)
        if followed is None:
            followed = self._followed[key] = _Followed(caller)
            followed.task = asyncio.create_task(self._follow(key, followed))
        watch = Watch(caller, address.path, tell)
        followed.watches.add(watch)
        try:
            await followed.caught_up.wait()
        except asyncio.CancelledError:
            self._end(key, followed, watch)
            raise
        return lambda: self._end(key, followed, watch)

    def _require_room(self, caller: Principal) -> None:
        """Refuse one that listens too many, of all or of one caller.

        Raises:
            LimitError: There are so many.
        """
        listening = [watch.caller for each in self._followed.values() for watch in each.watches]
        mine = sum((each.tenant, each.name) == (caller.tenant, caller.name) for each in listening)
        for count, most, whose in (
            (mine, MAX_WATCHES_PER_CALLER, "of yours "),
            (len(listening), MAX_WATCHES, ""),
        ):
            if count >= most:
                message = f"{count} {whose}are listening already, and no more may"
                raise LimitError("watches", limit=most, asked=count + 1, message=message)

    def close(self) -> None:
        """End all listening."""
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
        """Tell of changes as long as anybody listens, also if the session is deleted and made anew."""
        _, session, _ = key
        try:
            while True:
                try:
                    await self._tell_changes(session, followed)
                except RotatedError:
                    # Nobody knows what was between; whoever looks now sees it.
                    followed.caught_up.clear()
                except CarrelError:
                    followed.caught_up.set()
                    await asyncio.sleep(RETRY_SECONDS)
                    continue
                _tell_all(followed.watches, None)
        finally:
            followed.caught_up.set()

    async def _tell_changes(self, session: str, followed: _Followed) -> None:
        """Tell of them until the session is deleted."""
        async for page in self._service.follow(followed.caller, session):
            if followed.caught_up.is_set():
                for event in page.events:
                    _tell_all(followed.watches, event)
            elif len(page.events) < PAGE:
                followed.caught_up.set()


def _tell_all(watches: Iterable[Watch], event: Event | None) -> None:
    for watch in tuple(watches):
        if event is None or watch.concerns(event):
            watch.tell(event)


def _touches(changed: str, watched: str) -> bool:
    if watched == "." or changed in (watched, "."):
        return True
    return changed.startswith(f"{watched}/") or watched.startswith(f"{changed}/")
