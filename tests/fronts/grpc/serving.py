"""A service that really listens, in a thread of its own, and what a test calls it with."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from carrel.errors import CarrelError
from carrel.fronts.grpc.server import GrpcServer, serve_grpc
from carrel.fronts.listener import listen
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.remote.proto.carrel_v1_pb2_grpc import SandboxServiceStub, WorkspaceServiceStub
from carrel.remote.transport.grpc_channel import GrpcAddress, caller_metadata, open_channel, translate_error
from carrel.service.authentication.authenticator import Authenticator
from carrel.service.authentication.key_store import KeyStore, NewKey
from carrel.service.rate_limit import RateLimiter
from carrel.service.service import Service

SECONDS = 60
"""Nothing takes so long; a test that hangs ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A service, and a caller of it."""

    server: GrpcServer
    service: Service
    loop: asyncio.AbstractEventLoop
    keys: KeyStore
    sessions: Path
    channel: grpc.Channel
    metadata: tuple[tuple[str, str], ...] = ()

    @property
    def address(self) -> GrpcAddress:
        return GrpcAddress.parse(self.server.address)

    def by(self, key: str | None = None, role: str | None = None) -> Served:
        """The same service, called by somebody else."""
        return Served(
            server=self.server,
            service=self.service,
            loop=self.loop,
            keys=self.keys,
            sessions=self.sessions,
            channel=self.channel,
            metadata=caller_metadata(key, role),
        )

    def key(self, name: str, role: str = "developer", **more: Any) -> str:  # Any: fields of a key
        return self.keys.create(NewKey(name=name, role=role, **more))[1]

    def stub(self, method: str) -> Any:  # Any: the stubs have no types
        kind = WorkspaceServiceStub if method in _WORKSPACE else SandboxServiceStub
        return getattr(kind(self.channel), method)

    def call(self, method: str, request: Any) -> Any:  # Any: messages
        """The answer; or the list of answers, if the method streams them.

        Raises:
            CarrelError: What the service says went wrong.
        """
        try:
            answer = self.stub(method)(request, metadata=self.metadata, timeout=SECONDS)
            return list(answer) if hasattr(answer, "__next__") else answer
        except grpc.RpcError as failure:
            raise translate_error(failure, self.address) from None

    def refusal(self, method: str, request: Any) -> tuple[grpc.StatusCode, CarrelError]:
        """How a call fails."""
        try:
            answer = self.stub(method)(request, metadata=self.metadata, timeout=SECONDS)
            list(answer) if hasattr(answer, "__next__") else answer
        except grpc.RpcError as failure:
            call: Any = failure  # every failure of a call is one too, which no type says
            return call.code(), translate_error(failure, self.address)
        raise AssertionError(f"{method} did not fail")

    def path(self, session_id: str, name: str = "", tenant: str | None = None) -> Path:
        """Where something lies on the host."""
        root = self.sessions if tenant is None else self.sessions / ".carrel/tenants" / tenant
        return root / session_id / name

    def drafts(self) -> list[str]:
        """Unfinished files that were left behind."""
        return [path.name for path in self.sessions.rglob(".carrel-draft-*")]


_WORKSPACE = {method.name for method in messages.DESCRIPTOR.services_by_name["WorkspaceService"].methods}


@contextmanager
def serving(sessions: Path, **variables: str) -> Iterator[Served]:
    """Serve *sessions* meanwhile, with some settings that are not the usual ones."""
    usual = {"CARREL_SESSIONS_DIR": str(sessions), "CARREL_SERVE_REQUIRE_KEY": "0"}
    environ = {**os.environ, **usual, **variables}
    started: Future[tuple[GrpcServer, Service, KeyStore, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        stop = asyncio.Event()
        service = Service.from_env(environ)
        keys = KeyStore(sessions)
        rates = RateLimiter(service.settings.serve.rate_per_minute)
        async with service:
            server = await serve_grpc(
                service, Authenticator(service.settings, keys), rates, listen("127.0.0.1", 0)
            )
            started.set_result((server, service, keys, asyncio.get_running_loop(), stop))
            await stop.wait()
            await server.stop(0)
        keys.close()

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:
            if not started.done():
                started.set_exception(error)
            raise

    thread = threading.Thread(target=run)
    thread.start()
    try:
        server, service, keys, loop, stop = started.result(timeout=SECONDS)
        with open_channel(GrpcAddress.parse(server.address)) as channel:
            yield Served(
                server=server, service=service, loop=loop, keys=keys, sessions=sessions, channel=channel
            )
        loop.call_soon_threadsafe(stop.set)
    finally:
        thread.join(timeout=SECONDS)
        assert not thread.is_alive()
