"""`RpcCall`: one call of an authenticated caller, and what its handler may reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

from carrel.errors import RequestError, StoppingError
from carrel.service.principal import Principal
from carrel.service.service import Service
from carrel.service.sessions.caller_session import CallerSession


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcCall:
    """A call of an authenticated caller."""

    service: Service
    caller: Principal
    role: str | None
    """The role in the metadata, for requests that choose none."""
    is_stopping: Callable[[], bool]
    """Whether the service is stopping, so that endless streams must end."""

    @property
    def acting(self) -> Principal:
        """The caller in the role that the metadata choose, for requests without a context.

        Raises:
            RoleDeniedError: The caller may not choose the role.
        """
        return self.caller.acting_as(self.role)

    def role_of(self, request: Any) -> str | None:  # Any: a message with a context
        """Return the role that the request or the metadata choose."""
        return request.context.role or self.role

    def open_session(
        self, request: Any
    ) -> AbstractAsyncContextManager[CallerSession]:  # Any: a message with a session
        """Open the session of *request* for the caller."""
        return self.service.session_access.open(self.caller, request.session_id, role=self.role_of(request))


def request_path(request: Any, default: str = "") -> str:  # Any: a message with a path
    """Return the path in *request*, or *default*."""
    if request.HasField("path_bytes"):
        return bytes(request.path_bytes).decode("utf-8", "surrogateescape")
    return request.path or default


def stopping_error() -> StoppingError:
    """Return the error for calls that arrive or still run while the service stops."""
    return StoppingError("the service is stopping")


@contextmanager
def reject_invalid_values() -> Iterator[None]:
    """Turn a plain `ValueError` or `OverflowError` of the library into a `RequestError`."""
    try:
        yield
    except (ValueError, OverflowError) as error:
        if type(error) not in (ValueError, OverflowError):
            raise
        raise RequestError(str(error)) from None
