"""`ClientContext`: who calls, which session it is bound to, and which tool profiles it chose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from carrel.errors import ToolError
from carrel.service.principal import Principal
from carrel.tools.core.schema import describe_value

SESSION_PROFILE = "sessions"
"""The name under which the tools about sessions are chosen, as a profile is."""
DEFAULT_PROFILES = ("agent", SESSION_PROFILE)
SESSION_ARGUMENT = "session"
"""What the argument is called that names the session, where the caller is bound to none."""


class SessionArguments(NamedTuple):
    """The arguments of a call, with the session apart."""

    session: str
    arguments: dict[str, Any]  # Any: whatever JSON can say


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientContext:
    """Who calls, and which sets of tools it chose; of two tools with one name the first set's counts."""

    caller: Principal
    profiles: tuple[str, ...] = DEFAULT_PROFILES

    @property
    def is_bound(self) -> bool:
        """Whether the caller has one session, which no call needs to name."""
        return self.caller.session is not None

    def asked(self, arguments: Mapping[str, Any]) -> SessionArguments:
        """Take the session out of the arguments of a call; whether the caller may use it, the service knows.

        Raises:
            ToolError: None is named, and the caller is bound to none.
        """
        rest = dict(arguments)
        session = rest.pop(SESSION_ARGUMENT, None)
        if session is None:
            session = self.caller.session
        if session is None:
            raise ToolError("arguments", f"Wrong arguments: {SESSION_ARGUMENT!r} is missing")
        if not isinstance(session, str):
            raise ToolError(
                "arguments",
                f"Wrong arguments: {SESSION_ARGUMENT!r} must be a text, not {describe_value(session)}",
            )
        return SessionArguments(session, rest)


FindClientContext = Callable[[Any], ClientContext]
"""Says who sent a request, given what the SDK knows of it; `Any`, as the SDK is not imported here."""
