"""`Tenants`: a sessions directory for the operator, and one beneath it for each tenant.

    <sessions directory>/.carrel/tenants/<tenant>/    a sessions directory like any other

Session ids are looked up in the tenant's own directory, so no tenant can name a session of another.
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
MAX_OPEN = 64
"""Maximum number of managers kept open; the least recently used is dropped, and its last user closes it."""


class Tenants:
    """The session managers of the operator and of all tenants."""

    def __init__(self, own: WorkspaceManager) -> None:
        """Use *own* for the operator's sessions, and open those of tenants beneath it."""
        self.own = own
        self._lock = Lock()
        self._open: OrderedDict[str, WorkspaceManager] = OrderedDict()

    def manager(self, tenant: str | None) -> WorkspaceManager:
        """Return the sessions of *tenant*; `None` for the operator's own.

        Raises:
            SessionIdError: The tenant is not a valid directory name.
            UnavailableError: The directory cannot be used.
        """
        if tenant is None:
            return self.own
        return self.get_if_open(tenant) or self._open_blocking(require_session_id(tenant))

    def get_if_open(self, tenant: str | None) -> WorkspaceManager | None:
        """Return what `manager` returns if it is open already; does not touch the disk."""
        if tenant is None:
            return self.own
        with self._lock:
            found = self._open.get(tenant)
            if found is not None:
                self._open.move_to_end(tenant)
            return found

    async def open(self, tenant: str | None) -> WorkspaceManager:
        """Return what `manager` returns, opened in a thread if needed.

        Raises:
            SessionIdError: The tenant is not a valid directory name.
            UnavailableError: The directory cannot be used.
        """
        found = self.get_if_open(tenant)
        return await asyncio.to_thread(self.manager, tenant) if found is None else found

    def _open_blocking(self, name: str) -> WorkspaceManager:
        # Without the lock, since it may take long; another thread may open the same one first.
        opened = self.own.elsewhere(self._create_directory() / name)
        with self._lock:
            found = self._open.setdefault(name, opened)
            while len(self._open) > MAX_OPEN:
                self._open.popitem(last=False)
            return found

    def all(self) -> Iterator[WorkspaceManager]:
        """Yield the managers of the operator and of every tenant on disk."""
        yield self.own
        with suppress(FileNotFoundError):
            for each in sorted(self._directory().iterdir()):
                with suppress(ValueError):
                    yield self.manager(each.name)

    def close(self) -> None:
        """Close all managers."""
        with self._lock:
            for each in self._open.values():
                each.close()
            self._open.clear()
        self.own.close()

    def _directory(self) -> Path:
        return self.own.root / STATE / DIRECTORY

    def _create_directory(self) -> Path:
        """Create the directory of all tenants, private to this user as the session store requires."""
        directory = self._directory()
        for each in (directory.parent, directory):
            each.mkdir(0o700, exist_ok=True)
        return directory
