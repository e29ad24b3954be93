"""`SessionLifecycle`: create, list, inspect, extend, reset and delete a caller's sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from carrel.errors import CarrelError, RequestError, SessionMissingError
from carrel.paths.session_id import require_session_id
from carrel.policy.roles import WRITING
from carrel.service.executions import Executions
from carrel.service.principal import Principal
from carrel.service.sessions.access import SessionAccess
from carrel.service.sessions.info import NewSession, SessionInfo, SessionPage, require_lifetime
from carrel.service.sessions.open_sessions import OpenSessions
from carrel.service.tenants import Tenants
from carrel.sessions.manager import WorkspaceManager

MAX_PAGE_SESSIONS = 1000
"""Of one page."""

T = TypeVar("T")


class SessionLifecycle:
    """The sessions of a service, to each caller its own."""

    def __init__(
        self,
        tenants: Tenants,
        session_access: SessionAccess,
        open_sessions: OpenSessions,
        executions: Executions,
    ) -> None:
        self._tenants = tenants
        self._desks = session_access
        self._open = open_sessions
        self._executions = executions

    async def create(self, caller: Principal, new: NewSession) -> SessionInfo:
        """Make a session.

        Raises:
            SessionIdError: The id breaks the rule.
            SessionExistsError: The caller has one of that name.
            RequestError: A ceiling is higher than the caller may ask for, or another value makes no sense.
            LimitError: There are as many sessions as there may be.
        """
        manager = await self._tenants.open(caller.tenant)
        if new.session_id is not None:
            caller.require_session(new.session_id)
        if caller.role is not None:
            new.require_within(manager.limits, manager.ttl_seconds)
        session_id = await _value(
            lambda: _created(
                manager.create(
                    caller.session if new.session_id is None else new.session_id,
                    ttl_seconds=new.ttl_seconds,
                    limits=new.limits,
                    role=new.role,
                    labels=new.labels,
                )
            )
        )
        return await self.status(caller, session_id)

    async def ensure(self, caller: Principal, session_id: str) -> SessionInfo:
        """A session, made if it is missing."""
        caller.require_session(session_id)
        manager = await self._tenants.open(caller.tenant)
        await asyncio.to_thread(lambda: manager.get_workspace(session_id).close())
        return await self.status(caller, session_id)

    async def list(self, caller: Principal, *, after: str | None = None, count: int = 100) -> SessionPage:
        """The caller's sessions in the order of their ids, up to *count* of them after the id *after*.

        Raises:
            RequestError: *count* makes no sense.
            SessionIdError: *after* is no id.
        """
        if not 1 <= count <= MAX_PAGE_SESSIONS:
            raise RequestError(f"count must be 1 to {MAX_PAGE_SESSIONS}, not {count}")
        if caller.session is not None:
            return await self._page_of_one(caller, caller.session, after)
        manager = await self._tenants.open(caller.tenant)
        records = await asyncio.to_thread(manager.list_records, after, count + 1)
        more = records[count - 1].session_id if len(records) > count else None
        sessions = tuple(SessionInfo.of_record(one, manager.limits) for one in records[:count])
        return SessionPage(sessions=sessions, next=more)

    async def _page_of_one(self, caller: Principal, session_id: str, after: str | None) -> SessionPage:
        """All that somebody sees who is bound to one session."""
        sessions: tuple[SessionInfo, ...] = ()
        if after is None or require_session_id(after) < session_id:
            with suppress(SessionMissingError):
                sessions = (await self.status(caller, session_id),)
        return SessionPage(sessions=sessions, next=None)

    async def status(self, caller: Principal, session_id: str) -> SessionInfo:
        """What is known about a session; looking is no use of it.

        Raises:
            SessionMissingError: There is no such session of the caller.
        """
        caller.require_session(session_id)
        manager = await self._tenants.open(caller.tenant)
        return SessionInfo.of(await asyncio.to_thread(manager.status, session_id), manager.limits)

    async def extend(self, caller: Principal, session_id: str, ttl_seconds: float | None) -> SessionInfo:
        """Let a session be idle for *ttl_seconds* from now on.

        Raises:
            SessionMissingError: There is no such session of the caller.
            RequestError: That is no time, or longer than configured and the caller is not the operator.
            RoleDeniedError: The caller may change nothing; what expires soon is as good as removed.
        """
        manager = await self._to_change(caller, session_id)
        if caller.role is not None:
            require_lifetime(ttl_seconds, manager.ttl_seconds)
        await _value(lambda: manager.extend(session_id, ttl_seconds))
        return await self.status(caller, session_id)

    async def delete(self, caller: Principal, session_id: str) -> None:
        """Remove a session with its files, whatever runs in it.

        Raises:
            SessionMissingError: There is no such session of the caller.
            RoleDeniedError: The caller may change nothing.
        """
        manager = await self._to_change(caller, session_id)
        for execution in self._executions.of_session(session_id, caller.tenant):
            execution.cancel()
        self._open.close_session(manager, session_id)
        if not await asyncio.to_thread(manager.delete_workspace, session_id):
            raise SessionMissingError(f"no such session: {session_id!r}")

    async def reset(self, caller: Principal, session_id: str) -> None:
        """Remove all files of a session, and keep the session.

        Raises:
            SessionMissingError: There is no such session of the caller.
            RoleDeniedError: The caller may change nothing.
        """
        manager = await self._to_change(caller, session_id)
        if not await asyncio.to_thread(manager.reset_workspace, session_id):
            raise SessionMissingError(f"no such session: {session_id!r}")

    async def _to_change(self, caller: Principal, session_id: str) -> WorkspaceManager:
        """The sessions of the caller, among which is one that it may change as a whole."""
        caller.require_session(session_id)
        manager = await self._tenants.open(caller.tenant)
        async with self._desks.open(caller, session_id) as desk:
            desk.require(WRITING)
        return manager


def _created(workspace: Any) -> str:  # Any: a workspace of a session
    with workspace:
        return str(workspace.session_id)


async def _value(work: Callable[[], T]) -> T:
    """What *work* gives, done in a thread; a value that makes no sense is a mistake of the request."""
    try:
        return await asyncio.to_thread(work)
    except ValueError as error:
        if isinstance(error, CarrelError):
            raise
        raise RequestError(str(error)) from None
