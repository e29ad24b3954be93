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
"""Maximum size of a page."""

T = TypeVar("T")


class SessionLifecycle:
    """Manages the sessions of callers."""

    def __init__(
        self,
        tenants: Tenants,
        session_access: SessionAccess,
        open_sessions: OpenSessions,
        executions: Executions,
    ) -> None:
        self._tenants = tenants
        self._session_access = session_access
        self._open = open_sessions
        self._executions = executions

    async def create(self, caller: Principal, new: NewSession) -> SessionInfo:
        """Create a session.

        Raises:
            SessionIdError: The id is not valid.
            SessionExistsError: The caller has a session with this id.
            RequestError: A limit is higher than the caller may set, or another value is invalid.
            LimitError: The maximum number of sessions is reached.
        """
        manager = await self._tenants.open(caller.tenant)
        if new.session_id is not None:
            caller.require_session(new.session_id)
        if caller.role is not None:
            new.require_within(manager.limits, manager.ttl_seconds)
        session_id = await _run_in_thread(
            lambda: _close_new(
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
        """Return a session, created if it is missing."""
        caller.require_session(session_id)
        manager = await self._tenants.open(caller.tenant)
        await asyncio.to_thread(lambda: manager.get_workspace(session_id).close())
        return await self.status(caller, session_id)

    async def list(self, caller: Principal, *, after: str | None = None, count: int = 100) -> SessionPage:
        """Return up to *count* of the caller's sessions after the id *after*, ordered by id.

        Raises:
            RequestError: *count* is out of range.
            SessionIdError: *after* is not a valid id.
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
        """Return the page for a caller that is bound to one session."""
        sessions: tuple[SessionInfo, ...] = ()
        if after is None or require_session_id(after) < session_id:
            with suppress(SessionMissingError):
                sessions = (await self.status(caller, session_id),)
        return SessionPage(sessions=sessions, next=None)

    async def status(self, caller: Principal, session_id: str) -> SessionInfo:
        """Return the properties and usage of a session; does not refresh `used_ns`.

        Raises:
            SessionMissingError: The caller has no such session.
        """
        caller.require_session(session_id)
        manager = await self._tenants.open(caller.tenant)
        return SessionInfo.of(await asyncio.to_thread(manager.status, session_id), manager.limits)

    async def extend(self, caller: Principal, session_id: str, ttl_seconds: float | None) -> SessionInfo:
        """Set the idle lifetime of a session to *ttl_seconds*, beginning now.

        Raises:
            SessionMissingError: The caller has no such session.
            RequestError: The lifetime is invalid, or longer than a caller other than the operator may set.
            RoleDeniedError: The role may not write: a short lifetime amounts to a deletion.
        """
        manager = await self._require_writable(caller, session_id)
        if caller.role is not None:
            require_lifetime(ttl_seconds, manager.ttl_seconds)
        await _run_in_thread(lambda: manager.extend(session_id, ttl_seconds))
        return await self.status(caller, session_id)

    async def delete(self, caller: Principal, session_id: str) -> None:
        """Delete a session with its files, whatever runs in it.

        Raises:
            SessionMissingError: The caller has no such session.
            RoleDeniedError: The role may not write.
        """
        manager = await self._require_writable(caller, session_id)
        for execution in self._executions.in_session(session_id, caller.tenant):
            execution.cancel()
        self._open.close_session(manager, session_id)
        if not await asyncio.to_thread(manager.delete_workspace, session_id):
            raise SessionMissingError(f"no such session: {session_id!r}")

    async def reset(self, caller: Principal, session_id: str) -> None:
        """Delete all files of a session, and keep the session.

        Raises:
            SessionMissingError: The caller has no such session.
            RoleDeniedError: The role may not write.
        """
        manager = await self._require_writable(caller, session_id)
        if not await asyncio.to_thread(manager.reset_workspace, session_id):
            raise SessionMissingError(f"no such session: {session_id!r}")

    async def _require_writable(self, caller: Principal, session_id: str) -> WorkspaceManager:
        """Require that the caller may write to the session, and return the manager of its tenant."""
        caller.require_session(session_id)
        manager = await self._tenants.open(caller.tenant)
        async with self._session_access.open(caller, session_id) as session:
            session.require(WRITING)
        return manager


def _close_new(workspace: Any) -> str:  # Any: a workspace of a session
    """Close the workspace of a new session, and return the id."""
    with workspace:
        return str(workspace.session_id)


async def _run_in_thread(work: Callable[[], T]) -> T:
    """Return the result of *work*, run in a thread; a `ValueError` becomes a `RequestError`."""
    try:
        return await asyncio.to_thread(work)
    except ValueError as error:
        if isinstance(error, CarrelError):
            raise
        raise RequestError(str(error)) from None
