"""`SessionAccess`: open a session for a caller in the role that the request chooses."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from types import TracebackType

from carrel.config.kind import Roles
from carrel.policy.roles import Role
from carrel.service.principal import Principal
from carrel.service.sessions.caller_session import CallerSession
from carrel.service.sessions.open_sessions import OpenSessions, SessionLease
from carrel.service.tenants import Tenants


class SessionAccess:
    """All desks of a service."""

    def __init__(self, tenants: Tenants, open_sessions: OpenSessions, roles: Roles) -> None:
        self._tenants = tenants
        self._open = open_sessions
        self._roles = roles

    def open(
        self, caller: Principal, session_id: str, *, role: str | None = None, make: bool = False
    ) -> AbstractAsyncContextManager[CallerSession]:
        """A session, open for the caller in its role, or in the one that the request chooses.

        Raises:
            SessionMissingError: There is no such session of the caller, and *make* is off.
            RoleDeniedError: The caller may not choose that role.
        """
        acting = caller.acting_as(role)
        acting.require_session(session_id)
        return _CallerSessionContext(self, acting, session_id, make=make)

    async def use(self, caller: Principal, session_id: str, *, make: bool) -> SessionLease:
        """The session, to be used in `async with`."""
        return self._open.use(await self._tenants.open(caller.tenant), session_id, caller.name, make=make)

    def get_if_open(self, caller: Principal, session_id: str) -> CallerSession | None:
        """The same, for a use that ends before anything else gets a turn; `None` if it is not open.

        Raises:
            SessionMissingError: There is no such session of the caller.
        """
        caller.require_session(session_id)
        manager = self._tenants.get_if_open(caller.tenant)
        session = None if manager is None else self._open.get_if_open(manager, session_id, caller.name)
        return None if session is None else session.desk(self.role(caller))

    def role(self, caller: Principal) -> Role | None:
        """What the caller may do; `None` for everything."""
        return None if caller.role is None else Role.find(caller.role, self._roles)


class _CallerSessionContext:
    """A desk while it is used; no generator, as that would take longer than reading a small file."""

    def __init__(
        self, session_access: SessionAccess, caller: Principal, session_id: str, *, make: bool
    ) -> None:
        self._desks = session_access
        self._caller = caller
        self._session_id = session_id
        self._make = make
        self._role = session_access.role(caller)

    async def __aenter__(self) -> CallerSession:
        self._use = await self._desks.use(self._caller, self._session_id, make=self._make)
        session = await self._use.__aenter__()
        try:
            return session.desk(self._role)
        except BaseException:
            await self._use.__aexit__(None, None, None)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._use.__aexit__(kind, error, trace)
