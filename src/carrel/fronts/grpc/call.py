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
    """A call by somebody who is known."""

    service: Service
    caller: Principal
    role: str | None
    """What the metadata choose, where the request does not."""
    is_stopping: Callable[[], bool]
    """Whether the service is about to end, so that what has no end of its own must."""

    @property
    def acting(self) -> Principal:
        """The caller in the role that the metadata choose, for requests that cannot.

        Raises:
            RoleDeniedError: The caller may not choose it.
        """
        return self.caller.acting_as(self.role)

    def role_of(self, request: Any) -> str | None:  # Any: a message with a context
        """The role that is chosen, if any is."""
        return request.context.role or self.role

    def open_session(
        self, request: Any
    ) -> AbstractAsyncContextManager[CallerSession]:  # Any: a message with a session
        """The session of *request*, open for the caller."""
        return self.service.session_access.open(self.caller, request.session_id, role=self.role_of(request))


def request_path(request: Any, default: str = "") -> str:  # Any: a message with a path
    """The path in *request*, or *default* if there is none."""
    if request.HasField("path_bytes"):
        return bytes(request.path_bytes).decode("utf-8", "surrogateescape")
    return request.path or default


def stopping_error() -> StoppingError:
    """What is told to those who come or stay while the service ends."""
    return StoppingError("the service is about to end")


@contextmanager
def reject_invalid_values() -> Iterator[None]:
    """Tell of a value that makes no sense to the library as a mistake of the request."""
    try:
        yield
    except (ValueError, OverflowError) as error:
        if type(error) not in (ValueError, OverflowError):
            raise
        raise RequestError(str(error)) from None
