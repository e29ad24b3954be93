"""`OpenSessions`: sessions that stay open between calls, because opening one is slow.

All of this belongs to one event loop. A session that is deleted or made anew by another process is noticed
at the next call, because another directory is in its place then, or none.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from types import TracebackType
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
"""What one open session takes at most."""
OTHER_DESCRIPTORS = 256
"""What is kept free for connections and everything else."""
IDLE_SHARE = 10
"""A session is closed when it was idle for this part of its lifetime, since it cannot expire before."""

Monotonic = Callable[[], float]


class SessionKey(NamedTuple):
    """Tells one open session from another."""

    sessions_dir: str
    session_id: str
    actor: str
    """Whom the journal names."""


class OpenSession:
    """One session, open for one caller."""

    def __init__(
        self,
        workspace: Workspace,
        record: SessionRecord,
        place: str,
        settings: Settings,
        engine: FindEngine | None,
        runner: Runner | None = None,
    ) -> None:
        """Take over *workspace*, which lies at *place* on the host."""
        self.record = record
        self.users = 0
        self.used = 0.0
        self._workspace = workspace
        self._place = place
        self._identity = _identity(place)
        self._settings = settings
        self._engine = engine
        self._runner = runner
        self._desks: dict[Role | None, CallerSession] = {}
        ttl = record.ttl_seconds
        idle = settings.serve.idle_seconds
        self.idle_seconds = idle if ttl is None else min(idle, ttl / IDLE_SHARE)

    @property
    def is_there(self) -> bool:
        """Whether the session is still the one that was opened."""
        return _identity(self._place) == self._identity

    def desk(self, role: Role | None) -> CallerSession:
        """What the caller may do in that role."""
        found = self._desks.get(role)
        if found is None:
            found = CallerSession(
                self._workspace, self.record, role, self._settings, engine=self._engine, runner=self._runner
            )
            self._desks[role] = found
        return found

    def close(self) -> None:
        """Stop what runs, and let go of the session."""
        for desk in self._desks.values():
            desk.close()
        self._workspace.close()


class OpenSessions:
    """The sessions that are open now; the one that was not used for longest is closed first."""

    def __init__(
        self,
        settings: Settings,
        *,
        engine: FindEngine | None = None,
        shell_workers: ShellWorkers | None = None,
        clock: Monotonic = time.monotonic,
    ) -> None:
        self._settings = settings
        self._most = min(
            settings.serve.open_sessions, max_open_sessions(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
        )
        self._engine = engine
        self._shell_workers = shell_workers
        self._clock = clock
        self._open: OrderedDict[SessionKey, OpenSession] = OrderedDict()
        self._opening: dict[SessionKey, asyncio.Task[None]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def use(self, manager: WorkspaceManager, session_id: str, actor: str, *, make: bool) -> SessionLease:
        """The session, to be used in `async with`; it is made if it is missing and *make* says so."""
        return SessionLease(self, manager, SessionKey(str(manager.root), session_id, actor), make=make)

    def get_if_open(self, manager: WorkspaceManager, session_id: str, actor: str) -> OpenSession | None:
        """The session if it is open, for a use that ends before anything else gets a turn."""
        return self.found(SessionKey(str(manager.root), session_id, actor))

    def found(self, name: SessionKey) -> OpenSession | None:
        """The session if it is open, and still there."""
        session = self._open.get(name)
        if session is None:
            return None
        if not session.is_there:
            del self._open[name]
            self._let_go([session])
            return None
        self._open.move_to_end(name)
        session.used = self._clock()
        return session

    async def open(self, manager: WorkspaceManager, name: SessionKey, *, make: bool) -> None:
        """Open the session, once however many ask for it; then it is `found`, if nobody closed it again.

        Raises:
            SessionMissingError: It is not there, and *make* is off.
        """
        opening = self._opening.get(name)
        is_by_another = opening is not None
        if opening is None:
            opening = self._opening[name] = asyncio.create_task(self._open_once(manager, name, make))
        try:
            await asyncio.shield(opening)
        except SessionMissingError:
            # Whoever asked first may not have wanted it to be made.
            if not (make and is_by_another):
                raise

    async def _open_once(self, manager: WorkspaceManager, name: SessionKey, make: bool) -> None:
        try:
            session = await asyncio.to_thread(self._opened, manager, name, make)
        finally:
            del self._opening[name]
        self._open[name] = session
        session.used = self._clock()
        idle = [each for each, one in self._open.items() if not one.users and one is not session]
        self._close(idle[: max(0, len(self._open) - self._most)])

    def _opened(self, manager: WorkspaceManager, name: SessionKey, make: bool) -> OpenSession:
        try:
            workspace = manager.open(name.session_id, actor=name.actor)
        except SessionMissingError:
            if not make:
                raise
            manager.get_workspace(name.session_id).close()
            workspace = manager.open(name.session_id, actor=name.actor)
        try:
            record = manager.status(name.session_id).record
            # Counted once, be it after a crash, so that it is known from then on.
            workspace.usage()
            place = os.path.join(manager.root, name.session_id)
            session = (place, workspace.created_ns) if self._settings.serve.isolate_sessions else None
            engine = owned_engine(Owner(str(manager.root), session), self._engine)
            return OpenSession(workspace, record, place, self._settings, engine, self._runner(manager, name))
        except BaseException:
            workspace.close()
            raise

    def _runner(self, manager: WorkspaceManager, name: SessionKey) -> Runner | None:
        """What runs the command lines of a session; `None` for this process."""
        workers = self._shell_workers
        return None if workers is None else SessionRunner(workers, manager, name.session_id, name.actor)

    def close_idle(self) -> None:
        """Close what was not used for so long that it may as well be opened again."""
        now = self._clock()
        self._close(
            name
            for name, session in list(self._open.items())
            if not session.users and now - session.used >= session.idle_seconds
        )

    def close_session(self, manager: WorkspaceManager, session_id: str) -> None:
        """Close one session for all callers, whatever runs in it."""
        place = str(manager.root)
        self._close(name for name in list(self._open) if name[:2] == (place, session_id))

    async def close(self) -> None:
        """Close all of them."""
        for opening in list(self._opening.values()):
            await asyncio.wait([opening])
        sessions = list(self._open.values())
        self._open.clear()
        await asyncio.to_thread(_close_all, sessions)

    def _close(self, names: Iterable[SessionKey]) -> None:
        self._let_go([self._open.pop(name) for name in names])

    def _let_go(self, sessions: list[OpenSession]) -> None:
        """Close in a thread, as a change that is being made is waited for."""
        if sessions:
            asyncio.get_running_loop().run_in_executor(None, _close_all, sessions)


class SessionLease:
    """One use of a session."""

    def __init__(
        self, sessions: OpenSessions, manager: WorkspaceManager, name: SessionKey, *, make: bool
    ) -> None:
        self._sessions = sessions
        self._manager = manager
        self._name = name
        self._make = make
        self._session: OpenSession | None = None

    async def __aenter__(self) -> OpenSession:
        # One that was opened may be closed again for another before it is used.
        while (session := self._sessions.found(self._name)) is None:
            await self._sessions.open(self._manager, self._name, make=self._make)
        session.users += 1
        self._session = session
        return session

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        session = self._session
        if session is not None:
            session.users -= 1
            session.used = self._sessions._clock()


def max_open_sessions(descriptors: int) -> int:
    """How many sessions can be open in a process that may have so many *descriptors*."""
    if descriptors == resource.RLIM_INFINITY:
        return sys.maxsize
    return max(1, (descriptors - OTHER_DESCRIPTORS) // SESSION_DESCRIPTORS)


def _close_all(sessions: Iterable[OpenSession]) -> None:
    for session in sessions:
        session.close()


def _identity(place: str) -> tuple[int, int] | None:
    """Tells a directory from another that has its name later; `None` if there is none."""
    try:
        found = os.lstat(place)
    except OSError:
        return None
    return found.st_dev, found.st_ino
