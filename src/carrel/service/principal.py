"""`Principal`: an authenticated caller, its tenant, its role, and what it may choose."""

from __future__ import annotations

from dataclasses import dataclass, replace

from carrel.errors import RoleDeniedError, SessionMissingError
from carrel.policy.roles import METRICS_ROLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A caller, once it is known who that is."""

    name: str
    """Named in journals and logs."""
    tenant: str | None = None
    """Whose sessions; `None` stands for those of the sessions directory itself."""
    role: str | None = None
    """What the caller acts as; `None` is the operator, whom no role limits."""
    roles: tuple[str, ...] | None = None
    """The roles that a request may choose instead; `None` for any that is configured."""
    session: str | None = None
    """The one session that the caller may use; `None` for any of the tenant's."""
    rate_per_minute: int | None = None
    """Most calls, where that differs from what is configured."""

    def acting_as(self, role: str | None) -> Principal:
        """The same caller in the role that a request chooses.

        Raises:
            RoleDeniedError: The caller may not choose it.
        """
        if role is None or role == self.role:
            return self
        if self.roles is not None and role not in self.roles:
            mine = ", ".join(dict.fromkeys((*((self.role,) if self.role else ()), *self.roles)))
            raise RoleDeniedError(f"the role {role!r} is not yours to choose; you may be: {mine}")
        return replace(self, role=role)

    def require_metrics(self) -> None:
        """Do nothing if the caller may know what all tenants do together.

        Raises:
            RoleDeniedError: It is neither the operator nor has a key for that.
        """
        if self.tenant is not None and self.role != METRICS_ROLE:
            raise RoleDeniedError(
                f"metrics are for the operator, and for keys with the role {METRICS_ROLE!r}"
            )

    def require_session(self, session_id: str) -> None:
        """Do nothing if the caller may use that session.

        Raises:
            SessionMissingError: It is bound to another one; said as if there were none.
        """
        if self.session is not None and session_id != self.session:
            raise SessionMissingError(f"no such session: {session_id!r}")
