"""`Client` and `AsyncClient`: sessions of a service, with the methods of `WorkspaceManager`."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypedDict, TypeVar, Unpack

from carrel.errors import ConfigError, SessionMissingError
from carrel.paths.session_id import require_session_id
from carrel.remote.async_workspace import AsyncRemoteWorkspace
from carrel.remote.json_codec import parse, render
from carrel.remote.run_sync import Coro, run_sync
from carrel.remote.session import RemoteSession, RemoteSessionPage
from carrel.remote.transport.api import Transport, read_ca
from carrel.remote.workspace import RemoteWorkspace
from carrel.sessions.manager import SessionStatus
from carrel.storage.session_record import SessionRecord
from carrel.values import UNSET, Limits, Unset

TIMEOUT_SECONDS = 60.0
RETRIES = 2
PAGE = 1000
"""Number of sessions requested at a time."""

Params = ParamSpec("Params")
Result = TypeVar("Result")


class ClientOptions(TypedDict, total=False):
    """Options of a client; all have defaults."""

    key: str | None
    """API key; the user who runs the service needs none on the same machine."""
    ca: str | os.PathLike[str] | None
    """PEM file with the certificate authorities to trust for TLS, instead of the system's."""
    role: str | None
    """Role to act as, one that the key allows; the key's own role by default."""
    timeout: float | None
    """Seconds to wait for data from the service; 60 by default, `None` for no limit."""
    retries: int
    """How often to retry when the service is busy; 2 by default."""


class AsyncClient:
    """Client of a service, with the methods of `WorkspaceManager` as coroutines.

    >>> async with AsyncClient("http://localhost:8080", key="...") as client:
    ...     workspace = await client.get_workspace("a")
    ...     await workspace.write("hello.txt", "hello")
    """

    def __init__(self, url: str, **options: Unpack[ClientOptions]) -> None:
        """Use the service at *url*; the client connects on the first request.

        Args:
            url: `http://host:port`, `https://host:port`, or `grpc://host:port`, `grpcs://host:port`.
            options: Key, timeout and so on; see `ClientOptions`.

        Raises:
            ConfigError: The address, the key or an option is invalid.
            ImportError: The package for HTTP or gRPC is not installed.
        """
        self._transport = _transport(url, options, blocking=False)

    @classmethod
    def over(cls, transport: Transport) -> AsyncClient:
        """A client that uses *transport*."""
        client = cls.__new__(cls)
        client._transport = transport
        return client

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._transport.address!r})"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; sessions are not affected."""
        await self._transport.close()

    # Creating and opening

    async def create(
        self,
        session_id: str | None = None,
        *,
        ttl_seconds: float | Unset | None = UNSET,
        limits: Limits | None = None,
        role: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncRemoteWorkspace:
        """Create a session and open its workspace.

        Raises:
            SessionIdError: The id is invalid.
            SessionExistsError: The name is taken.
            LimitError: The maximum number of sessions is reached.
        """
        if session_id is not None:
            # gRPC cannot tell an empty id from a missing one.
            require_session_id(session_id)
        given = {"session_id": session_id, "role": role, "limits": render(limits), "labels": labels}
        new = {name: value for name, value in given.items() if value is not None}
        if ttl_seconds is not UNSET:
            new["ttl_seconds"] = ttl_seconds
        return self._workspace(await self._transport.create(new))

    async def open(self, session_id: str) -> AsyncRemoteWorkspace:
        """Open the workspace of an existing session.

        Raises:
            SessionIdError: The id is invalid.
            SessionMissingError: There is no such session, or it has expired.
        """
        return self._workspace(await self._transport.session(require_session_id(session_id)))

    async def get_workspace(self, session_id: str) -> AsyncRemoteWorkspace:
        """Open the workspace of a session, creating it if it is missing; safe to call concurrently."""
        return self._workspace(await self._transport.ensure(require_session_id(session_id)))

    def _workspace(self, document: Any) -> AsyncRemoteWorkspace:  # Any: a JSON value
        return AsyncRemoteWorkspace(self._transport, parse(document, RemoteSession))

    # Listing

    async def list_workspaces(self) -> list[str]:
        """The ids of all sessions visible to the caller, sorted."""
        return [session.session_id for session in await self._sessions(None, None)]

    async def list_records(self, after: str | None = None, count: int = 100) -> list[SessionRecord]:
        """Up to *count* records, sorted by id, beginning after the id *after*."""
        if type(count) is not int or count < 1:
            raise ValueError(f"count must be a whole number of at least 1, not {count!r}")
        if after is not None:
            require_session_id(after)
        return [session.record() for session in await self._sessions(after, count)]

    async def _sessions(self, after: str | None, count: int | None) -> list[RemoteSession]:
        """Up to *count* sessions after the id *after*, requested in pages."""
        found: list[RemoteSession] = []
        while count is None or len(found) < count:
            most = PAGE if count is None else min(PAGE, count - len(found))
            page = parse(await self._transport.sessions(after, most), RemoteSessionPage)
            found += page.sessions
            after = page.next
            if after is None:
                break
        return found

    async def get_workspace_size(self, session_id: str) -> int:
        """Total size of the files of a session.

        Raises:
            SessionMissingError: There is no such session.
        """
        workspace = await self.open(session_id)
        return (await workspace.usage()).disk_bytes

    async def status(self, session_id: str) -> SessionStatus:
        """The status of a session; this does not count as use of the session.

        Raises:
            SessionMissingError: There is no such session.
        """
        return parse(await self._transport.session(require_session_id(session_id)), RemoteSession).status()

    # Lifetime

    async def extend(self, session_id: str, ttl_seconds: float | None) -> SessionRecord:
        """Set the TTL of a session, counted from now.

        Raises:
            SessionMissingError: There is no such session.
        """
        return parse(
            await self._transport.extend(require_session_id(session_id), ttl_seconds), RemoteSession
        ).record()

    async def reset_workspace(self, session_id: str) -> bool:
        """Remove all files of a session but keep the session; return whether it existed."""
        return await _existed(self._transport.reset(require_session_id(session_id)))

    async def delete_workspace(self, session_id: str) -> bool:
        """Delete a session with its files and records, even while it is in use; return whether it existed.

        Raises:
            SessionIdError: The id is invalid.
        """
        return await _existed(self._transport.delete(require_session_id(session_id)))


async def _existed(removal: Coro[None]) -> bool:
    try:
        await removal
    except SessionMissingError:
        return False
    return True


def _sync(
    method: Callable[Concatenate[AsyncClient, Params], Coro[Result]],
) -> Callable[Concatenate[Client, Params], Result]:
    """The blocking version of *method*."""

    @wraps(method)
    def call(self: Client, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        return run_sync(method(self._async_client, *args, **kwargs))

    return call


def _sync_open(
    method: Callable[Concatenate[AsyncClient, Params], Coro[AsyncRemoteWorkspace]],
) -> Callable[Concatenate[Client, Params], RemoteWorkspace]:
    """The blocking version of a method that opens a workspace."""

    @wraps(method)
    def call(self: Client, /, *args: Params.args, **kwargs: Params.kwargs) -> RemoteWorkspace:
        return RemoteWorkspace(run_sync(method(self._async_client, *args, **kwargs)))

    return call


class Client:
    """Client of a service, with the methods of `WorkspaceManager`. Threads may share it.

    >>> with Client("http://localhost:8080", key="...") as client:
    ...     client.get_workspace("a").write("hello.txt", "hello")
    """

    def __init__(self, url: str, **options: Unpack[ClientOptions]) -> None:
        """Use the service at *url*; the client connects on the first request.

        Args:
            url: `http://host:port`, `https://host:port`, or `grpc://host:port`, `grpcs://host:port`.
            options: Key, timeout and so on; see `ClientOptions`.

        Raises:
            ConfigError: The address, the key or an option is invalid.
            ImportError: The package for HTTP or gRPC is not installed.
        """
        self._async_client = AsyncClient.over(_transport(url, options, blocking=True))

    def __repr__(self) -> str:
        return repr(self._async_client).removeprefix("Async")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    close = _sync(AsyncClient.close)
    create = _sync_open(AsyncClient.create)
    delete_workspace = _sync(AsyncClient.delete_workspace)
    extend = _sync(AsyncClient.extend)
    get_workspace = _sync_open(AsyncClient.get_workspace)
    get_workspace_size = _sync(AsyncClient.get_workspace_size)
    list_records = _sync(AsyncClient.list_records)
    list_workspaces = _sync(AsyncClient.list_workspaces)
    open = _sync_open(AsyncClient.open)
    reset_workspace = _sync(AsyncClient.reset_workspace)
    status = _sync(AsyncClient.status)


def connect(url: str, **options: Unpack[ClientOptions]) -> Client:
    """A client of the service at *url*; the scheme selects HTTP or gRPC.

    >>> connect("grpc://localhost:50051", key="...").open("a").read_text("hello.txt")

    Raises:
        ConfigError: The address, the key or an option is invalid.
        ImportError: The package for HTTP or gRPC is not installed.
    """
    return Client(url, **options)


def _transport(url: str, options: ClientOptions, *, blocking: bool) -> Transport:
    for name in options:
        if name not in ClientOptions.__annotations__:
            raise TypeError(f"a client has no option {name!r}")
    timeout, retries = options.get("timeout", TIMEOUT_SECONDS), options.get("retries", RETRIES)
    if timeout is not None and not 0 < timeout < float("inf"):
        raise ConfigError(f"timeout must be a number of seconds above 0, or None, not {timeout!r}")
    if retries < 0:
        raise ConfigError(f"retries must be at least 0, not {retries!r}")
    make = _grpc if url.startswith(("grpc://", "grpcs://")) else _http
    try:
        return make(url, options, timeout, retries, blocking=blocking)
    except ModuleNotFoundError as error:
        raise ImportError(
            f"a client of a service needs {error.name}, which is not installed: pip install 'carrel[client]'",
            name=error.name,
        ) from None


def _http(
    url: str, options: ClientOptions, timeout: float | None, retries: int, *, blocking: bool
) -> Transport:
    from carrel.remote.transport.http import HttpTransport, caller_headers
    from carrel.remote.transport.http_connection import (
        AsyncHttpConnection,
        BlockingHttpConnection,
        HttpAddress,
    )

    address = HttpAddress.parse(url)
    headers = caller_headers(options.get("key"), options.get("role"))
    ca = read_ca(options.get("ca"), is_encrypted=address.url.startswith("https:"))
    kind = BlockingHttpConnection if blocking else AsyncHttpConnection
    connection = kind(address.url, headers, timeout=timeout, ca=ca)
    return HttpTransport(connection, address.url, retries=retries, timeout_seconds=timeout)


def _grpc(
    url: str, options: ClientOptions, timeout: float | None, retries: int, *, blocking: bool
) -> Transport:
    from carrel.remote.transport.grpc import GrpcTransport
    from carrel.remote.transport.grpc_channel import GrpcAddress
    from carrel.remote.transport.grpc_connection import AsyncGrpcConnection, BlockingGrpcConnection

    kind = BlockingGrpcConnection if blocking else AsyncGrpcConnection
    connection = kind(
        GrpcAddress.parse(url, ca=options.get("ca")),
        key=options.get("key"),
        role=options.get("role"),
        timeout_seconds=timeout,
    )
    return GrpcTransport(connection, retries=retries)
