"""Blocking and async gRPC connections to a service."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import Any, Protocol, Self

import grpc
import grpc.aio

from carrel.remote.proto.carrel_v1_pb2_grpc import SandboxServiceStub, WorkspaceServiceStub
from carrel.remote.transport.api import require_open
from carrel.remote.transport.grpc_channel import CallerMetadata, GrpcAddress, open_async_channel, open_channel

Message = Any  # one of the many that the proto defines; each rpc has its own


class ServiceSilentError(Exception):
    """The service was silent for too long."""


class GrpcConnection(Protocol):
    """Calls rpcs by their names; what goes wrong is an error of grpc."""

    address: GrpcAddress
    timeout_seconds: float | None

    async def ask(self, rpc: str, request: Message) -> Message:
        """One answer to one request."""
        ...

    def stream(self, rpc: str, request: Message, *, seconds: float | None = None) -> AsyncGenerator[Message]:
        """Many answers to one request; none may take longer than so many *seconds*."""
        ...

    async def send(self, rpc: str, requests: Iterable[Message]) -> Message:
        """One answer to many requests; what iterating them raises comes out as it is.

        Raises:
            SilentError: The service took nothing, or gave no answer, for longer than `timeout_seconds`.
        """
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


class BlockingGrpcConnection:
    """A line that blocks; its coroutines never wait for an event loop. Threads may share it."""

    def __init__(
        self, address: GrpcAddress, *, key: str | None, role: str | None, timeout_seconds: float | None
    ) -> None:
        self.address = address
        self.timeout_seconds = timeout_seconds
        self._caller = CallerMetadata(address, key, role)
        self._stubs = _Stubs(open_channel(address))
        self._is_closed = False

    @property
    def _rpcs(self) -> _Stubs:
        require_open(is_closed=self._is_closed)
        return self._stubs

    async def ask(self, rpc: str, request: Message) -> Message:
        return self._rpcs[rpc](request, metadata=self._caller.metadata, timeout=self.timeout_seconds)

    async def stream(
        self, rpc: str, request: Message, *, seconds: float | None = None
    ) -> AsyncGenerator[Message]:
        call = self._rpcs[rpc](request, metadata=self._caller.metadata)
        with _Silence(call, seconds) as silence:
            for message in call:
                silence.end()
                yield message
                silence.begin()

    async def send(self, rpc: str, requests: Iterable[Message]) -> Message:
        watched = _WatchedRequests(requests)
        call = self._rpcs[rpc].future(iter(watched), metadata=self._caller.metadata)
        with watched.raised(), _Silence(call, self.timeout_seconds) as watched.silence:
            return call.result()

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    async def close(self) -> None:
        self._is_closed = True
        self._stubs.channel.close()


class AsyncGrpcConnection:
    """A line for the event loop in which it is first used."""

    def __init__(
        self, address: GrpcAddress, *, key: str | None, role: str | None, timeout_seconds: float | None
    ) -> None:
        self.address = address
        self.timeout_seconds = timeout_seconds
        self._caller = CallerMetadata(address, key, role)
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

    async def stream(
        self, rpc: str, request: Message, *, seconds: float | None = None
    ) -> AsyncGenerator[Message]:
        call = self._rpcs[rpc](request, metadata=self._caller.metadata)
        messages = aiter(call)
        try:
            while True:
                async with asyncio.timeout(seconds):
                    message = await anext(messages, None)
                if message is None:
                    return
                yield message
        except TimeoutError:
            raise ServiceSilentError from None
        finally:
            call.cancel()

    async def send(self, rpc: str, requests: Iterable[Message]) -> Message:
        watched = _WatchedRequests(requests)
        call = self._uploads[rpc].future(iter(watched), metadata=self._caller.metadata)
        with watched.raised(), _Silence(call, self.timeout_seconds) as watched.silence:
            await _ended(call)
            return call.result()

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


class _Silence:
    """Cancels a call at its end, or as soon as the service was silent for too long."""

    def __init__(self, call: Any, seconds: float | None) -> None:  # Any: the kinds have no type in common
        self._call = call
        self._seconds = seconds
        self._since: float | None = time.monotonic()
        """When it began; `None` while it is not the service that is waited for."""
        self._is_over = threading.Event()
        self._is_late = False

    def begin(self) -> None:
        """Wait for the service from now on."""
        self._since = time.monotonic()

    def end(self) -> None:
        """Wait for somebody else."""
        self._since = None

    def __enter__(self) -> Self:
        if self._seconds is not None:
            threading.Thread(target=self._watch, args=(self._seconds,), daemon=True).start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._is_over.set()
        self._call.cancel()
        if self._is_late and isinstance(error, grpc.RpcError | grpc.FutureCancelledError):
            raise ServiceSilentError from None

    def _watch(self, seconds: float) -> None:
        left = seconds
        while not self._is_over.wait(left):
            since = self._since
            left = seconds if since is None else since + seconds - time.monotonic()
            if left <= 0:
                self._is_late = True
                self._call.cancel()
                return


class _WatchedRequests:
    """Requests that another thread iterates, and the error that this ended with."""

    def __init__(self, requests: Iterable[Message]) -> None:
        self._requests = requests
        self.error: BaseException | None = None
        self.silence: _Silence | None = None
        """Does not last while the requests are made."""

    def __iter__(self) -> Iterator[Message]:
        try:
            for each in self._requests:
                self._begin()
                yield each
                if self.silence is not None:
                    self.silence.end()
        except Exception as error:
            self.error = error
            raise
        finally:
            self._begin()

    def _begin(self) -> None:
        if self.silence is not None:
            self.silence.begin()

    @contextmanager
    def raised(self) -> Iterator[None]:
        """Raise that error in place of what it led to."""
        try:
            yield
        except grpc.RpcError:
            if self.error is not None:
                raise self.error from None
            raise
