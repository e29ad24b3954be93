"""`OpenSessions`: keep sessions open between calls, because opening one is slow.

Used from one event loop only. A session that another process has deleted or re-created is noticed at the next
call, because the directory at its path is then another one, or missing.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from carrel.config.settings import Settings
from carrel.errors import SessionMissingError
from carrel.policy.roles import Role
from carrel.runtimes.wasm.pool import Owner
from carrel.sandbox.engines import FindEngine, owned_engine
from carrel.sandbox.workers.pool import ShellWorkers
from carrel.sandbox.workers.runner import SessionRunner
from carrel.service.sessions.caller_session import CallerSession
from carrel.sessions.manager import WorkspaceManager
from carrel.shell.runtime.runner import Runner
from carrel.storage.session_record import SessionRecord
from carrel.workspace.workspace import Workspace

SESSION_DESCRIPTORS = 8
"""File descriptors that one open session needs at most."""
OTHER_DESCRIPTORS = 256
"""File descriptors reserved for connections and everything else."""
IDLE_SHARE = 10
"""A session is closed after one part in this many of its lifetime without use: it expires much later."""

Monotonic = Callable[[], float]


class SessionKey(NamedTuple):
    """Identifies an open session."""

    sessions_dir: str
    session_id: str
    actor: str
    """Name of the caller in the journal."""


class OpenSession:
    """One session, open for one caller."""

    def __init__(
        self,
        workspace: Workspace,
        record: SessionRecord,
        path: str,
        settings: Settings,
        engine: FindEngine | None,
        runner: Runner | None = None,
    ) -> None:
        """Take ownership of *workspace*, whose directory on the host is *path*."""
        self.record = record
        self.users = 0
        self.used = 0.0
        """Monotonic time of the last use."""
        self._workspace = workspace
        self._path = path
        self._identity = _identity(path)
        self._settings = settings
        self._engine = engine
        self._runner = runner
        self._by_role: dict[Role | None, CallerSession] = {}
        ttl = record.ttl_seconds
        idle = settings.serve.idle_seconds
        self.idle_seconds = idle if ttl is None else min(idle, ttl / IDLE_SHARE)

    @property
    def is_current(self) -> bool:
        """Whether the directory is still the one that was opened."""
        return _identity(self._path) == self._identity

    def for_role(self, role: Role | None) -> CallerSession:
        """Return the session limited to *role*."""
        found = self._by_role.get(role)
        if found is None:
            found = CallerSession(
                self._workspace, self.record, role, self._settings, engine=self._engine, runner=self._runner
            )
            self._by_role[role] = found
        return found

    def close(self) -> None:
        """Stop everything that runs in the session, and close it."""
        for session in self._by_role.values():
            session.close()
        self._workspace.close()


class OpenSessions:
    """The sessions that are open now; the least recently used one is closed first."""

    def __init__(
        self,
        settings: Settings,
        *,
        engine: FindEngine | None = None,
        shell_workers: ShellWorkers | None = None,
        clock: Monotonic = time.monotonic,
    ) -> None:
        self._settings = settings
        self._max_open = min(
            settings.serve.open_sessions, max_open_sessions(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        )
        self._engine = engine
        self._shell_workers = shell_workers
        self._clock = clock
        self._open: OrderedDict[SessionKey, OpenSession] = OrderedDict()
        self._opening: dict[SessionKey, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def find(self, key: SessionKey) -> OpenSession | None:
        """Return the session if it is open and still exists."""
        session = self._open.get(key)
        if session is None:
            return None
        if not session.is_current:
            del self._open[key]
            self._close_in_thread([session])
            return None
        self._open.move_to_end(key)
        session.used = self._clock()
        return session

    async def acquire(self, manager: WorkspaceManager, key: SessionKey, *, create: bool) -> OpenSession:
        """Return the session, opened if needed, and keep it open until `release`.

        Raises:
            SessionMissingError: The session does not exist, and *create* is off.
        """
        # A session can be closed to make room for another one before it is first used.
        while (session := self.find(key)) is None:
            await self._open_shared(manager, key, create=create)
        session.users += 1
        return session

    def release(self, session: OpenSession) -> None:
        """End a use that `acquire` began."""
        session.users -= 1
        session.used = self._clock()

    async def _open_shared(self, manager: WorkspaceManager, key: SessionKey, *, create: bool) -> None:
        """Open the session once for all callers that wait for it."""
        opening = self._opening.get(key)
        is_by_another = opening is not None
        if opening is None:
            opening = self._opening[key] = asyncio.create_task(self._open_once(manager, key, create))
        try:
            await asyncio.shield(opening)
        except SessionMissingError:
            # The caller that began to open the session may not have requested to create it.
            if not (create and is_by_another):
                raise

    async def _open_once(self, manager: WorkspaceManager, key: SessionKey, create: bool) -> None:
        try:
            session = await asyncio.to_thread(self._open_blocking, manager, key, create)
        finally:
            del self._opening[key]
        self._open[key] = session
        session.used = self._clock()
        idle = [each for each, one in self._open.items() if not one.users and one is not session]
        self._close(idle[: max(0, len(self._open) - self._max_open)])

    def _open_blocking(self, manager: WorkspaceManager, key: SessionKey, create: bool) -> OpenSession:
        try:
            workspace = manager.open(key.session_id, actor=key.actor)
        except SessionMissingError:
            if not create:
                raise
            manager.get_workspace(key.session_id).close()
            workspace = manager.open(key.session_id, actor=key.actor)
        try:
            record = manager.status(key.session_id).record
            # Count the usage now, which is slow after a crash, so that later calls find it known.
            workspace.usage()
            path = os.path.join(manager.root, key.session_id)
            session = (path, workspace.created_ns) if self._settings.serve.isolate_sessions else None
            engine = owned_engine(Owner(str(manager.root), session), self._engine)
            return OpenSession(workspace, record, path, self._settings, engine, self._runner(manager, key))
        except BaseException:
            workspace.close()
            raise

    def _runner(self, manager: WorkspaceManager, key: SessionKey) -> Runner | None:
        """Return the runner of the session's command lines; `None` to run them in this process."""
        workers = self._shell_workers
        return None if workers is None else SessionRunner(workers, manager, key.session_id, key.actor)

    def close_idle(self) -> None:
        """Close the sessions that have been idle for longer than their idle time."""
        now = self._clock()
        self._close(
            key
            for key, session in list(self._open.items())
            if not session.users and now - session.used >= session.idle_seconds
        )

    def close_session(self, manager: WorkspaceManager, session_id: str) -> None:
        """Close one session for all callers, whatever runs in it."""
        root = str(manager.root)
        self._close(key for key in list(self._open) if key[:2] == (root, session_id))

    async def close(self) -> None:
        """Close all sessions."""
        for opening in list(self._opening.values()):
            await asyncio.wait([opening])
        sessions = list(self._open.values())
        self._open.clear()
        await asyncio.to_thread(_close_all, sessions)

    def _close(self, keys: Iterable[SessionKey]) -> None:
        self._close_in_thread([self._open.pop(key) for key in keys])

    def _close_in_thread(self, sessions: list[OpenSession]) -> None:
        """Close sessions in a thread, because closing waits for a change in progress."""
        if sessions:
            asyncio.get_running_loop().run_in_executor(None, _close_all, sessions)


def max_open_sessions(descriptors: int) -> int:
    """Return how many sessions a process with a limit of *descriptors* can keep open."""
    if descriptors == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(1, (descriptors - OTHER_DESCRIPTORS) // SESSION_DESCRIPTORS)


def _close_all(sessions: Iterable[OpenSession]) -> None:
    for session in sessions:
        session.close()


def _identity(path: str) -> tuple[int, int] | None:
    """Return the device and inode of a directory, or `None` if it does not exist."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino
