"""`Tenants`: one sessions directory for the operator, and one beneath it for each tenant.

    <sessions directory>/.carrel/tenants/<tenant>/    a sessions directory like any other

So no tenant can name a session of another: it is not in the directory in which its names are looked up.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Lock

from carrel.paths.session_id import require_session_id
from carrel.sessions.manager import WorkspaceManager
from carrel.storage.local.store import STATE

DIRECTORY = "tenants"
KEPT = 64
"""So many directories are kept open; the one not used for longest goes first, closed by its last user."""


class Tenants:
    """Finds the sessions of each caller."""

    def __init__(self, own: WorkspaceManager) -> None:
        """Begin with the operator's own sessions."""
        self.own = own
        self._lock = Lock()
        self._found: OrderedDict[str, WorkspaceManager] = OrderedDict()

    def sessions_of(self, tenant: str | None) -> WorkspaceManager:
        """The sessions of *tenant*; of the operator if that is `None`.

        Raises:
            SessionIdError: It is no name that a directory can have.
            UnavailableError: The directory cannot be used.
        """
        if tenant is None:
            return self.own
        return self.get_if_open(tenant) or self._opened(require_session_id(tenant))

    def get_if_open(self, tenant: str | None) -> WorkspaceManager | None:
        """The same, if it is known without looking at the disk; else `None`."""
        if tenant is None:
            return self.own
        with self._lock:
            found = self._found.get(tenant)
            if found is not None:
                self._found.move_to_end(tenant)
            return found

    async def open(self, tenant: str | None) -> WorkspaceManager:
        """What `sessions_of` gives, looked for in a thread where that is needed.

        Raises:
            SessionIdError: It is no name that a directory can have.
            UnavailableError: The directory cannot be used.
        """
        found = self.get_if_open(tenant)
        return await asyncio.to_thread(self.sessions_of, tenant) if found is None else found

    def _opened(self, name: str) -> WorkspaceManager:
        # Without the lock, since it may take long; whoever comes at the same time may be first.
        opened = self.own.elsewhere(self._made_directory() / name)
        with self._lock:
            found = self._found.setdefault(name, opened)
            while len(self._found) > KEPT:
                self._found.popitem(last=False)
            return found

    def all(self) -> Iterator[WorkspaceManager]:
        """The sessions of everybody, also of those who have not called yet."""
        yield self.own
        with suppress(FileNotFoundError):
            for each in sorted(self._directory().iterdir()):
                with suppress(ValueError):
                    yield self.sessions_of(each.name)

    def close(self) -> None:
        """Let go of all of them."""
        with self._lock:
            for each in self._found.values():
                each.close()
            self._found.clear()
        self.own.close()

    def _directory(self) -> Path:
        return self.own.root / STATE / DIRECTORY

    def _made_directory(self) -> Path:
        """The same, made for us alone if it is missing; a store takes no other."""
        directory = self._directory()
        for each in (directory.parent, directory):
            each.mkdir(0o700, exist_ok=True)
        return directory
