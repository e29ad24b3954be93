"""`Principal`: an authenticated caller, its tenant, its role, and what it may choose."""

from __future__ import annotations

from dataclasses import dataclass, replace

from carrel.errors import RoleDeniedError, SessionMissingError
from carrel.policy.roles import METRICS_ROLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """An authenticated caller."""

    name: str
    """Name shown in journals and logs."""
    tenant: str | None = None
    """The tenant whose sessions it sees; `None` for the sessions directory itself."""
    role: str | None = None
    """The role it acts in; `None` for the operator, who is not limited by a role."""
    roles: tuple[str, ...] | None = None
    """The roles that a request may choose instead; `None` for any configured role."""
    session: str | None = None
    """The only session that the caller may use; `None` for all sessions of the tenant."""
    rate_per_minute: int | None = None
    """Maximum number of requests per minute; `None` for the configured rate."""

    def acting_as(self, role: str | None) -> Principal:
        """Return the same caller in the role that a request chooses.

        Raises:
            RoleDeniedError: The caller may not choose it.
        """
        if role is None or role == self.role:
            return self
        if self.roles is not None and role not in self.roles:
            allowed = ", ".join(dict.fromkeys((*((self.role,) if self.role else ()), *self.roles)))
            raise RoleDeniedError(f"you may not choose the role {role!r}; your roles are: {allowed}")
        return replace(self, role=role)

    def require_metrics(self) -> None:
        """Require that the caller may read the metrics of all tenants.

        Raises:
            RoleDeniedError: The caller is neither the operator nor has the metrics role.
        """
        if self.tenant is not None and self.role != METRICS_ROLE:
            raise RoleDeniedError(
                f"metrics are only for the operator and for keys with the role {METRICS_ROLE!r}"
            )

    def require_session(self, session_id: str) -> None:
        """Require that the caller may use the session.

        Raises:
            SessionMissingError: The caller is bound to another session; the message is that of a missing one.
        """
        if self.session is not None and session_id != self.session:
            raise SessionMissingError(f"no such session: {session_id!r}")
