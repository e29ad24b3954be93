"""`SessionAccess`: open a session for a caller in the role that the request chooses."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from types import TracebackType

from carrel.config.kind import Roles
from carrel.policy.roles import Role
from carrel.service.principal import Principal
from carrel.service.sessions.caller_session import CallerSession
from carrel.service.sessions.open_sessions import OpenSessions, SessionKey
from carrel.service.tenants import Tenants

_CACHED_ROLES = 64


class SessionAccess:
    """Opens sessions on behalf of callers."""

    def __init__(self, tenants: Tenants, open_sessions: OpenSessions, roles: Roles) -> None:
        self.tenants = tenants
        self.open_sessions = open_sessions
        self._find_role = lru_cache(_CACHED_ROLES)(lambda name: Role.find(name, roles))

    def open(
        self, caller: Principal, session_id: str, *, role: str | None = None, create: bool = False
    ) -> AbstractAsyncContextManager[CallerSession]:
        """Open a session for the caller in its role, or in the one that the request chooses.

        Raises:
            SessionMissingError: The caller has no such session, and *create* is off.
            RoleDeniedError: The caller may not choose the role.
        """
        acting = caller.acting_as(role)
        acting.require_session(session_id)
        return _SessionLease(self, acting, session_id, create=create)

    def get_if_open(self, caller: Principal, session_id: str) -> CallerSession | None:
        """Return the session if it is open already; valid only until the caller's next `await`.

        Raises:
            SessionMissingError: The caller is bound to another session.
        """
        caller.require_session(session_id)
        manager = self.tenants.get_if_open(caller.tenant)
        if manager is None:
            return None
        session = self.open_sessions.find(SessionKey(str(manager.root), session_id, caller.name))
        return None if session is None else session.for_role(self.role(caller))

    def role(self, caller: Principal) -> Role | None:
        """Return the caller's role; `None` for the operator, who is not limited."""
        return None if caller.role is None else self._find_role(caller.role)


class _SessionLease:
    """Keeps a session open while it is used; a class, as a generator would cost more than a small read."""

    def __init__(self, access: SessionAccess, caller: Principal, session_id: str, *, create: bool) -> None:
        self._access = access
        self._caller = caller
        self._session_id = session_id
        self._create = create
        self._role = access.role(caller)

    async def __aenter__(self) -> CallerSession:
        tenants, open_sessions = self._access.tenants, self._access.open_sessions
        tenant = self._caller.tenant
        manager = tenants.get_if_open(tenant) or await tenants.open(tenant)
        key = SessionKey(str(manager.root), self._session_id, self._caller.name)
        self._session = await open_sessions.acquire(manager, key, create=self._create)
        try:
            return self._session.for_role(self._role)
        except BaseException:
            open_sessions.release(self._session)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._access.open_sessions.release(self._session)
