"""`ClientContext`: the caller of an MCP client, its session, and the tool profiles that it chose."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from carrel.errors import ToolError
from carrel.service.principal import Principal
from carrel.tools.core.schema import describe_value

SESSION_PROFILE = "sessions"
"""Name of the profile with the session tools."""
DEFAULT_PROFILES = ("agent", SESSION_PROFILE)
SESSION_ARGUMENT = "session"
"""Argument with the session id, for callers that are not bound to a session."""


class SessionArguments(NamedTuple):
    """The session of a call, and its other arguments."""

    session: str
    arguments: dict[str, Any]  # Any: any JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientContext:
    """The caller, and its tool profiles; if several have a tool of one name, the first one counts."""

    caller: Principal
    profiles: tuple[str, ...] = DEFAULT_PROFILES

    @property
    def is_bound(self) -> bool:
        """Whether the caller is bound to one session, so that calls need not name it."""
        return self.caller.session is not None

    def split_session(self, arguments: Mapping[str, Any]) -> SessionArguments:
        """Separate the session from the other arguments of a call; the service checks access to it.

        Raises:
            ToolError: The session is missing, or not a string.
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
"""Returns the client of a request context of the SDK; `Any`, as the SDK is not imported here."""
