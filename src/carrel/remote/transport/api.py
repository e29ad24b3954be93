"""`Transport`: the requests that a client makes to a service, and the errors of making them."""

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
"""Content on its way to the service; what it raises comes to the caller."""


_DISTRUST = ("CERTIFICATE_VERIFY_FAILED", "Hostname Verification Check failed")
"""What OpenSSL and gRPC say of a certificate that is not trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionStarted:
    """A command or code has begun to run."""

    execution_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOutput:
    """It printed something."""

    stream: str
    """`stdout` or `stderr`."""
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionEnded:
    """It has ended."""

    result: Any
    """Its result, as JSON says it."""


ExecutionEvent = ExecutionStarted | ExecutionOutput | ExecutionEnded
"""What a running command or code tells, in this order."""


def require_key(key: str | None) -> None:
    """Refuse a key that is none; most likely a variable is empty.

    Raises:
        ConfigError: It is empty.
    """
    if key is not None and not key.strip():
        raise ConfigError("the key is empty: give one, or `None` to call without")


def read_ca(file: str | os.PathLike[str] | None, *, is_encrypted: bool) -> str | None:
    """The certificates of the authorities in *file*; `None` for the usual ones.

    Raises:
        ConfigError: They cannot be read, or nothing is encrypted.
    """
    if file is None:
        return None
    if not is_encrypted:
        raise ConfigError(
            "ca is for an encrypted connection: the address must begin with https:// or grpcs://"
        )
    try:
        # Names in comments need not be ASCII.
        text = Path(file).read_bytes().decode("ascii", "ignore")
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        problem = "it has no certificate in PEM"
    except OSError as error:
        problem = os.strerror(error.errno or 0)
    else:
        return text
    raise ConfigError(f"the file {os.fspath(file)} cannot be used as ca: {problem}")


def unreachable_error(address: object, reason: str) -> UnreachableError:
    """What is told of a service that no connection can be made to, for a *reason* in the words of TLS."""
    if any(words in reason for words in _DISTRUST):
        return UnreachableError(
            f"what answers at {address} has no certificate that is trusted for that name: check the address,"
            " and give the file of the authority that vouches for the service as ca"
        )
    return UnreachableError(
        f"no service answers at {address}: check that `carrel serve` runs there, that the address is right,"
        " and that nothing in between stops it"
    )


def with_address(error: CarrelError, address: object) -> CarrelError:
    """The same error, and of one that is about the caller, at which service and what to look at."""
    if not isinstance(error, UnauthenticatedError):
        return error
    return UnauthenticatedError(
        f"the service at {address} does not know this caller: check that the key is given, is one of this"
        " service, and was not revoked and has not expired"
    )


def require_open(*, is_closed: bool) -> None:
    """Refuse to use a line that was closed.

    Raises:
        ClosedError: It was.
    """
    if is_closed:
        raise ClosedError("the client is closed")


class Transport(Protocol):
    """Requests to one service; every method raises the errors that the library would raise.

    Besides those, `UnreachableError` means that no service answered, and `LimitError` with the code
    `limit.time` that it took too long to.
    """

    address: str

    async def create(self, new: Mapping[str, Any]) -> Any:
        """Make a session; the answer tells of it, as do those of the next four."""
        ...

    async def ensure(self, session_id: str) -> Any:
        """Make a session unless it is there."""
        ...

    async def session(self, session_id: str) -> Any:
        """What is known about a session."""
        ...

    async def extend(self, session_id: str, ttl_seconds: float | None) -> Any:
        """Let a session be idle for so long."""
        ...

    async def sessions(self, after: str | None, count: int) -> Any:
        """One page of sessions: `sessions`, and `next` if there are more."""
        ...

    async def delete(self, session_id: str) -> None:
        """Remove a session."""
        ...

    async def reset(self, session_id: str) -> None:
        """Remove all files of a session."""
        ...

    async def call(self, session_id: str, operation: str, arguments: Mapping[str, Any]) -> Any:
        """Do one operation of the table; the answer is what JSON says for its result."""
        ...

    async def read(
        self, session_id: str, path: str, *, offset: int, length: int | None, limit: int | None
    ) -> tuple[FileInfo, bytes]:
        """A part of a file of no more than *limit* bytes, and what the file was when it was opened."""
        ...

    def read_chunks(self, session_id: str, path: str) -> AsyncGenerator[bytes]:
        """A file in pieces of any size."""
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
        """Store a file."""
        ...

    def archive(
        self, session_id: str, path: str, format: str, left_out: Callable[[LeftOut], None] | None
    ) -> AsyncGenerator[bytes]:
        """A directory or a file as the pieces of an archive; *left_out* is told what is not in it."""
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
        """The journal after *since*; with *follow* it goes on as things happen."""
        ...

    def execute(self, session_id: str, work: Mapping[str, Any]) -> AsyncGenerator[ExecutionEvent]:
        """Run a command or code."""
        ...

    async def cancel(self, session_id: str, execution_id: str) -> None:
        """Stop what runs; nothing if it has ended."""
        ...

    async def tools(self, session_id: str, *, role: str | None, profile: str, format: str) -> Any:
        """The tools that a role has, as a model is told of them."""
        ...

    async def call_tool(
        self, session_id: str, name: str, arguments: Any, *, role: str | None, profile: str
    ) -> Any:
        """Call a tool; the answer is its envelope."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait a while."""
        ...

    async def close(self) -> None:
        """Let go of all connections."""
        ...
