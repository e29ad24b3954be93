"""Two lines to a service that speaks gRPC: one that blocks, and one for an event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import suppress
from functools import cached_property
from typing import Any, Protocol

import grpc
import grpc.aio

from carrel.remote.api import require_open
from carrel.remote.grpc_channel import Caller, GrpcAddress, open_async_channel, open_channel
from carrel.remote.proto.carrel_v1_pb2_grpc import SandboxServiceStub, WorkspaceServiceStub

Message = Any  # one of the many that the proto defines; each rpc has its own


class GrpcLine(Protocol):
    """Calls rpcs by their names; what goes wrong is an error of grpc."""

    address: GrpcAddress
    timeout_seconds: float | None

    async def ask(self, rpc: str, request: Message) -> Message:
        """One answer to one request."""
        ...

    def stream(self, rpc: str, request: Message) -> AsyncGenerator[Message]:
        """Many answers to one request."""
        ...

    async def send(self, rpc: str, requests: Iterable[Message]) -> Message:
        """One answer to many requests; what iterating them raises comes out as it is."""
        ...

    async def pause(self, seconds: float) -> None:
        """Wait a while."""
        ...

    async def close(self) -> None:
        """Let go of the connection."""
        ...


class _Stubs:
    """The rpcs of both services by their names."""

    def __init__(self, channel: grpc.Channel | grpc.aio.Channel) -> None:
        self.channel: Any = channel  # Any: the two kinds have no type in common
        self._stubs = SandboxServiceStub(self.channel), WorkspaceServiceStub(self.channel)

    def __getitem__(self, rpc: str) -> Any:  # Any: each is called with messages of its own
        sandbox, workspace = self._stubs
        return getattr(sandbox, rpc, None) or getattr(workspace, rpc)


class BlockingGrpcLine:
    """A line that blocks; its coroutines never wait for an event loop. Threads may share it."""

    def __init__(
        self, address: GrpcAddress, *, key: str | None, role: str | None, timeout_seconds: float | None
    ) -> None:
        self.address = address
        self.timeout_seconds = timeout_seconds
        self._caller = Caller(address, key, role)
        self._stubs = _Stubs(open_channel(address))
        self._is_closed = False

    @property
    def _rpcs(self) -> _Stubs:
        require_open(is_closed=self._is_closed)
        return self._stubs

    async def ask(self, rpc: str, request: Message) -> Message:
        return self._rpcs[rpc](request, metadata=self._caller.metadata, timeout=self.timeout_seconds)

    async def stream(self, rpc: str, request: Message) -> AsyncGenerator[Message]:
        call = self._rpcs[rpc](request, metadata=self._caller.metadata)
        try:
            for message in call:
                yield message
        finally:
            call.cancel()

    async def send(self, rpc: str, requests: Iterable[Message]) -> Message:
        watched = _Watched(requests)
        try:
            return self._rpcs[rpc](iter(watched), metadata=self._caller.metadata)
        except grpc.RpcError:
            if watched.error is not None:
                raise watched.error from None
            raise

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    async def close(self) -> None:
        self._is_closed = True
        self._stubs.channel.close()


class AwaitingGrpcLine:
    """A line for the event loop in which it is first used."""

    def __init__(
        self, address: GrpcAddress, *, key: str | None, role: str | None, timeout_seconds: float | None
    ) -> None:
        self.address = address
        self.timeout_seconds = timeout_seconds
        self._caller = Caller(address, key, role)
        self._is_closed = False

    @cached_property
    def _asking(self) -> _Stubs:
        # Late, because a channel belongs to the loop that runs when it is made.
        return _Stubs(open_async_channel(self.address))

    @cached_property
    def _sending(self) -> _Stubs:
        # Not that of the loop: where a service answers before it has heard all, that one knows only that
        # something failed. And what is sent is iterated in a thread anyway.
        return _Stubs(open_channel(self.address))

    @property
    def _rpcs(self) -> _Stubs:
        require_open(is_closed=self._is_closed)
        return self._asking

    @property
    def _uploads(self) -> _Stubs:
        require_open(is_closed=self._is_closed)
        return self._sending

    async def ask(self, rpc: str, request: Message) -> Message:
        return await self._rpcs[rpc](request, metadata=self._caller.metadata, timeout=self.timeout_seconds)

    async def stream(self, rpc: str, request: Message) -> AsyncGenerator[Message]:
        call = self._rpcs[rpc](request, metadata=self._caller.metadata)
        try:
            async for message in call:
                yield message
        finally:
            call.cancel()

    async def send(self, rpc: str, requests: Iterable[Message]) -> Message:
        watched = _Watched(requests)
        call = self._uploads[rpc].future(iter(watched), metadata=self._caller.metadata)
        try:
            await _ended(call)
            return call.result()
        except grpc.RpcError:
            if watched.error is not None:
                raise watched.error from None
            raise
        finally:
            call.cancel()

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        self._is_closed = True
        if "_asking" in self.__dict__:
            await self._asking.channel.close()
        if "_sending" in self.__dict__:
            self._sending.channel.close()


async def _ended(call: grpc.Future[Message]) -> None:
    """Wait for the end of a call that other threads work for."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def tell(_: object) -> None:
        # A loop that is closed has nobody left who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)

    call.add_done_callback(tell)
    await ended.wait()


class _Watched:
    """Requests that another thread iterates, and the error that this ended with."""

    def __init__(self, requests: Iterable[Message]) -> None:
        self._requests = requests
        self.error: BaseException | None = None

    def __iter__(self) -> Iterator[Message]:
        try:
            yield from self._requests
        except Exception as error:
            self.error = error
            raise
