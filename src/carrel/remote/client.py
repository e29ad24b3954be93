"""`Client` and `AsyncClient`: the sessions of a service, with the methods of `WorkspaceManager`."""

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

Params = ParamSpec("Params")
Result = TypeVar("Result")


class ClientOptions(TypedDict, total=False):
    """How a service is asked; what is left out has a default."""

    key: str | None
    """Tells the service who calls; the user who runs the service needs none on the same machine."""
    ca: str | os.PathLike[str] | None
    """A PEM file with the authorities that may vouch for the service, instead of the usual ones; for TLS."""
    role: str | None
    """What to act as, among what the key allows; the key's own role by default."""
    timeout: float | None
    """How many seconds the service may be silent; 60 by default, `None` for as long as it takes."""
    retries: int
    """How often to ask again when the service says that it is busy; 2 by default."""


class AsyncClient:
    """The sessions of a service, with the methods of `WorkspaceManager` to be awaited.

    >>> async with AsyncClient("http://localhost:8080", key="...") as client:
    ...     workspace = await client.get_workspace("a")
    ...     await workspace.write("hello.txt", "hello")
    """

    def __init__(self, url: str, **options: Unpack[ClientOptions]) -> None:
        """Use the service at *url*, once there is something to ask.

        Args:
            url: `http://host:port`, `https://host:port`, or `grpc://host:port`, `grpcs://host:port`.
            options: The key and so on; see `ClientOptions`.

        Raises:
            ConfigError: The address, the key or an option cannot be used.
            ImportError: What speaks HTTP or gRPC is not installed.
        """
        self._transport = _transport(url, options, blocking=False)

    @classmethod
    def over(cls, transport: Transport) -> AsyncClient:
        """A client that asks over *transport*."""
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
        """Let go of all connections; sessions stay."""
        await self._transport.close()

    # Making and opening

    async def create(
        self,
        session_id: str | None = None,
        *,
        ttl_seconds: float | Unset | None = UNSET,
        limits: Limits | None = None,
        role: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> AsyncRemoteWorkspace:
        """Make the workspace of a new session.

        Raises:
            SessionIdError: The id breaks the rule.
            SessionExistsError: There is something with that name.
            LimitError: There are as many sessions as there may be.
        """
        if session_id is not None:
            # Over gRPC an empty one would stand for none.
            require_session_id(session_id)
        given = {"session_id": session_id, "role": role, "limits": render(limits), "labels": labels}
        new = {name: value for name, value in given.items() if value is not None}
        if ttl_seconds is not UNSET:
            new["ttl_seconds"] = ttl_seconds
        return self._opened(await self._transport.create(new))

    async def open(self, session_id: str) -> AsyncRemoteWorkspace:
        """Open the workspace of a session that is there.

        Raises:
            SessionIdError: The id breaks the rule.
            SessionMissingError: There is no such session, or it has expired.
        """
        return self._opened(await self._transport.session(require_session_id(session_id)))

    async def get_workspace(self, session_id: str) -> AsyncRemoteWorkspace:
        """Open the workspace of a session, making it if it is missing; safe to call from many at once."""
        return self._opened(await self._transport.ensure(require_session_id(session_id)))

    def _opened(self, document: Any) -> AsyncRemoteWorkspace:  # Any: as JSON says it
        return AsyncRemoteWorkspace(self._transport, parse(document, RemoteSession))

    # What there is

    async def list_workspaces(self) -> list[str]:
        """The ids of all sessions that the caller may know of, sorted."""
        return [session.session_id for session in await self._sessions(None, None)]

    async def list_records(self, after: str | None = None, count: int = 100) -> list[SessionRecord]:
        """Up to *count* records in the order of their ids, beginning after the id *after*."""
        if type(count) is not int or count < 1:
            raise ValueError(f"count must be a whole number of at least 1, not {count!r}")
        if after is not None:
            require_session_id(after)
        return [session.record() for session in await self._sessions(after, count)]

    async def _sessions(self, after: str | None, count: int | None) -> list[RemoteSession]:
        """Up to *count* sessions after the id *after*, page by page."""
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
        """Sum of the sizes of the files of a session.

        Raises:
            SessionMissingError: There is no such session.
        """
        workspace = await self.open(session_id)
        return (await workspace.usage()).disk_bytes

    async def status(self, session_id: str) -> SessionStatus:
        """What is known about a session; looking is no use of it.

        Raises:
            SessionMissingError: There is no such session.
        """
        return parse(await self._transport.session(require_session_id(session_id)), RemoteSession).status()

    # Lifetime

    async def extend(self, session_id: str, ttl_seconds: float | None) -> SessionRecord:
        """Let a session be idle for *ttl_seconds* from now on.

        Raises:
            SessionMissingError: There is no such session.
        """
        return parse(
            await self._transport.extend(require_session_id(session_id), ttl_seconds), RemoteSession
        ).record()

    async def reset_workspace(self, session_id: str) -> bool:
        """Remove all files of a session, and keep the session; whether there was one."""
        return await _was_there(self._transport.reset(require_session_id(session_id)))

    async def delete_workspace(self, session_id: str) -> bool:
        """Remove a session with its files and its records, also while it is used; whether there was one.

        Raises:
            SessionIdError: The id breaks the rule.
        """
        return await _was_there(self._transport.delete(require_session_id(session_id)))


async def _was_there(removal: Coro[None]) -> bool:
    try:
        await removal
    except SessionMissingError:
        return False
    return True


def _sync(
    method: Callable[Concatenate[AsyncClient, Params], Coro[Result]],
) -> Callable[Concatenate[Client, Params], Result]:
    """The same, over a line that blocks."""

    @wraps(method)
    def call(self: Client, /, *args: Params.args, **kwargs: Params.kwargs) -> Result:
        return run_sync(method(self._far, *args, **kwargs))

    return call


def _opened(
    method: Callable[Concatenate[AsyncClient, Params], Coro[AsyncRemoteWorkspace]],
) -> Callable[Concatenate[Client, Params], RemoteWorkspace]:
    """The same for what opens a workspace."""

    @wraps(method)
    def call(self: Client, /, *args: Params.args, **kwargs: Params.kwargs) -> RemoteWorkspace:
        return RemoteWorkspace(run_sync(method(self._far, *args, **kwargs)))

    return call


class Client:
    """The sessions of a service, with the methods of `WorkspaceManager`. Threads may share it.

    >>> with Client("http://localhost:8080", key="...") as client:
    ...     client.get_workspace("a").write("hello.txt", "hello")
    """

    def __init__(self, url: str, **options: Unpack[ClientOptions]) -> None:
        """Use the service at *url*, once there is something to ask.

        Args:
            url: `http://host:port`, `https://host:port`, or `grpc://host:port`, `grpcs://host:port`.
            options: The key and so on; see `ClientOptions`.

        Raises:
            ConfigError: The address, the key or an option cannot be used.
            ImportError: What speaks HTTP or gRPC is not installed.
        """
        self._far = AsyncClient.over(_transport(url, options, blocking=True))

    def __repr__(self) -> str:
        return repr(self._far).removeprefix("Async")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    close = _sync(AsyncClient.close)
    create = _opened(AsyncClient.create)
    delete_workspace = _sync(AsyncClient.delete_workspace)
    extend = _sync(AsyncClient.extend)
    get_workspace = _opened(AsyncClient.get_workspace)
    get_workspace_size = _sync(AsyncClient.get_workspace_size)
    list_records = _sync(AsyncClient.list_records)
    list_workspaces = _sync(AsyncClient.list_workspaces)
    open = _opened(AsyncClient.open)
    reset_workspace = _sync(AsyncClient.reset_workspace)
    status = _sync(AsyncClient.status)


def connect(url: str, **options: Unpack[ClientOptions]) -> Client:
    """A client of the service at *url*, over the protocol that it names: HTTP or gRPC.

    >>> connect("grpc://localhost:50051", key="...").open("a").read_text("hello.txt")

    Raises:
        ConfigError: The address, the key or an option cannot be used.
        ImportError: What speaks HTTP or gRPC is not installed.
    """
    return Client(url, **options)


def _transport(url: str, options: ClientOptions, *, blocking: bool) -> Transport:
    for name in options:
        if name not in ClientOptions.__annotations__:
            raise TypeError(f"a client has no option {name!r}")
    timeout, retries = options.get("timeout", TIMEOUT_SECONDS), options.get("retries", RETRIES)
    if timeout is not None and not 0 < timeout < float("inf"):
        raise ConfigError(f"timeout must be a number of seconds above 0 or None, not {timeout!r}")
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
    line = kind(address.url, headers, timeout=timeout, ca=ca)
    return HttpTransport(line, address.url, retries=retries, timeout_seconds=timeout)


def _grpc(
    url: str, options: ClientOptions, timeout: float | None, retries: int, *, blocking: bool
) -> Transport:
    from carrel.remote.transport.grpc import GrpcTransport
    from carrel.remote.transport.grpc_channel import GrpcAddress
    from carrel.remote.transport.grpc_connection import AsyncGrpcConnection, BlockingGrpcConnection

    kind = BlockingGrpcConnection if blocking else AsyncGrpcConnection
    line = kind(
        GrpcAddress.parse(url, ca=options.get("ca")),
        key=options.get("key"),
        role=options.get("role"),
        timeout_seconds=timeout,
    )
    return GrpcTransport(line, retries=retries)
