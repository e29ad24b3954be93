"""`Transport`: the requests of a client to a service, and their connection errors."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from carrel.audit.event import Event
from carrel.errors import CarrelError, ClosedError, ConfigError, UnauthenticatedError, UnreachableError
from carrel.values import FileInfo

if TYPE_CHECKING:
    from carrel.workspace.archive.create import LeftOut
    from carrel.workspace.extract_limits import ExtractLimits

ByteSource = Iterable[bytes]
"""Content to upload; exceptions raised while iterating it reach the caller."""


_UNTRUSTED = ("CERTIFICATE_VERIFY_FAILED", "Hostname Verification Check failed")
"""Messages of OpenSSL and gRPC about an untrusted certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionStarted:
    """The execution has begun."""

    execution_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOutput:
    """The execution wrote output."""

    stream: str
    """`stdout` or `stderr`."""
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionEnded:
    """The execution has ended."""

    result: Any
    """The result as JSON."""


ExecutionEvent = ExecutionStarted | ExecutionOutput | ExecutionEnded
"""Events of an execution, in this order."""
ToolEvent = ExecutionOutput | ExecutionEnded
"""Events of a tool call, in this order."""


def require_key(key: str | None) -> None:
    """Reject an empty key, which most likely comes from an empty variable.

    Raises:
        ConfigError: The key is empty.
    """
    if key is not None and not key.strip():
        raise ConfigError("the key is empty: pass a key, or `None` to call without one")


def read_ca(file: str | os.PathLike[str] | None, *, is_encrypted: bool) -> str | None:
    """Read the certificates of the authorities in *file*; `None` for those of the system.

    Raises:
        ConfigError: The file cannot be read, or the connection is not encrypted.
    """
    if file is None:
        return None
    if not is_encrypted:
        raise ConfigError(
            "ca is for an encrypted connection: the address must begin with https:// or grpcs://"
        )
    try:
        # Comments in the file may hold other characters than ASCII.
        text = Path(file).read_bytes().decode("ascii", "ignore")
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        problem = "it holds no PEM certificate"
    except OSError as error:
        problem = os.strerror(error.errno or 0)
    else:
        return text
    raise ConfigError(f"cannot use the file {os.fspath(file)} as ca: {problem}")


def unreachable_error(address: object, reason: str) -> UnreachableError:
    """The error for a failed connection; *reason* is the message of the TLS library."""
    if any(message in reason for message in _UNTRUSTED):
        return UnreachableError(
            f"the certificate of the server at {address} is not trusted: check the address, and pass the file"
            " of the certificate authority as ca"
        )
    return UnreachableError(
        f"no service answers at {address}: check the address, that `carrel serve` is running there, and that"
        " no firewall or proxy blocks the connection"
    )


def with_address(error: CarrelError, address: object) -> CarrelError:
    """Add the address and advice to an error about the caller; return other errors unchanged."""
    if not isinstance(error, UnauthenticatedError):
        return error
    return UnauthenticatedError(
        f"the service at {address} does not accept this caller: check that a key is given, that it belongs to"
        " this service, and that it has not been revoked or expired"
    )


def require_open(*, is_closed: bool) -> None:
    """Require an open connection.

    Raises:
        ClosedError: It was closed.
    """
    if is_closed:
        raise ClosedError("the client is closed")


class Transport(Protocol):
    """Requests to one service; every method raises the errors of the library.

    In addition, `UnreachableError` means that no service answered, and `LimitError` with the code
    `limit.time` that it did not answer in time.
    """

    address: str

    async def create(self, new: Mapping[str, Any]) -> Any:
        """Create a session; the response describes it, as for the next three methods."""
        ...

    async def ensure(self, session_id: str) -> Any:
        """Create a session unless it exists."""
        ...

    async def session(self, session_id: str) -> Any:
        """The status of a session."""
        ...

    async def extend(self, session_id: str, ttl_seconds: float | None) -> Any:
        """Set the TTL of a session, counted from now."""
        ...

    async def sessions(self, after: str | None, count: int) -> Any:
        """One page of sessions: `sessions`, and `next` if there are more."""
        ...

    async def delete(self, session_id: str) -> None:
        """Delete a session."""
        ...

    async def reset(self, session_id: str) -> None:
        """Remove all files of a session."""
        ...

    async def call(self, session_id: str, operation: str, arguments: Mapping[str, Any]) -> Any:
        """Call one operation of the service's table; the response is its result as JSON."""
        ...

    async def read(
        self, session_id: str, path: str, *, offset: int, length: int | None, limit: int | None
    ) -> tuple[FileInfo, bytes]:
        """A part of a file, at most *limit* bytes, and the file's info from when it was opened."""
        ...

    def read_chunks(self, session_id: str, path: str) -> AsyncGenerator[bytes]:
        """A file in chunks of any size."""
        ...

    async def write(
        self,
        session_id: str,
        path: str,
        content: ByteSource | bytes,
        *,
        overwrite: bool,
        parents: bool,
        if_version: str | None,
    ) -> FileInfo:
        """Write a file."""
        ...

    def archive(
        self, session_id: str, path: str, format: str, left_out: Callable[[LeftOut], None] | None
    ) -> AsyncGenerator[bytes]:
        """A directory or file as an archive in chunks; *left_out* is called for entries left out."""
        ...

    async def extract(
        self,
        session_id: str,
        path: str,
        content: ByteSource | bytes,
        *,
        format: str | None,
        overwrite: bool,
        limits: ExtractLimits | None,
    ) -> Any:
        """Extract an archive."""
        ...

    def changes(self, session_id: str, since: int, *, follow: bool) -> AsyncGenerator[Event]:
        """The journal after *since*; with *follow*, also new records as they are written."""
        ...

    def execute(self, session_id: str, work: Mapping[str, Any]) -> AsyncGenerator[ExecutionEvent]:
        """Run a command line or code."""
        ...

    async def cancel(self, session_id: str, execution_id: str) -> None:
        """Stop an execution; do nothing if it has ended."""
        ...

    async def tools(self, session_id: str, *, role: str | None, profile: str, format: str) -> Any:
        """The tool definitions of a role, for a model."""
        ...

    async def call_tool(
        self, session_id: str, name: str, arguments: Any, *, role: str | None, profile: str
    ) -> Any:
        """Call a tool; the response is its result."""
        ...

    def stream_tool(
        self, session_id: str, name: str, arguments: Any, *, role: str | None, profile: str
    ) -> AsyncGenerator[ToolEvent]:
        """Call a tool, and yield the output of commands and code as it arrives, then the result."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait before a retry."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
