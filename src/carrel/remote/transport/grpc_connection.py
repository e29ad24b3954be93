"""Blocking and async gRPC connections to a service."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Protocol, Self

import grpc
import grpc.aio

from carrel.remote.proto.carrel_v1_pb2_grpc import SandboxServiceStub, WorkspaceServiceStub
from carrel.remote.transport.api import require_open
from carrel.remote.transport.grpc_channel import (
    CallerMetadata,
    GrpcAddress,
    open_async_channel,
    open_channel,
    wait_until_done,
)

Message = Any  # one of the many that the proto defines; each rpc has its own


class ServiceSilentError(Exception):
    """The service did not send or receive anything in time."""


class GrpcConnection(Protocol):
    """Calls RPCs by name; failures are errors of grpc."""

    address: GrpcAddress
    timeout_seconds: float | None

    async def call(self, rpc: str, request: Message) -> Message:
        """Send one request and receive one response."""
        ...

    def stream(self, rpc: str, request: Message, *, seconds: float | None = None) -> AsyncGenerator[Message]:
        """Send one request and receive a stream, with at most *seconds* between responses."""
        ...

    async def send(self, rpc: str, requests: Iterable[Message]) -> Message:
        """Send a stream and receive one response; errors of *requests* are raised unchanged.

        Raises:
            ServiceSilentError: The service received nothing, or did not respond, within `timeout_seconds`.
        """
        ...

    async def pause(self, seconds: float) -> None:
        """Wait before a retry."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


class _Stubs:
    """The RPCs of both gRPC services by name."""

    def __init__(self, channel: grpc.Channel | grpc.aio.Channel) -> None:
        self.channel: Any = channel  # Any: both kinds have no common type
        self._stubs = SandboxServiceStub(self.channel), WorkspaceServiceStub(self.channel)

    def __getitem__(self, rpc: str) -> Any:  # Any: each takes its own messages
        sandbox, workspace = self._stubs
        return getattr(sandbox, rpc, None) or getattr(workspace, rpc)


class BlockingGrpcConnection:
    """A blocking connection; its coroutines never suspend. Threads may share it."""

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

    async def call(self, rpc: str, request: Message) -> Message:
        return self._rpcs[rpc](request, metadata=self._caller.metadata, timeout=self.timeout_seconds)

    async def stream(
        self, rpc: str, request: Message, *, seconds: float | None = None
    ) -> AsyncGenerator[Message]:
        call = self._rpcs[rpc](request, metadata=self._caller.metadata)
        with _Watchdog(call, seconds) as watchdog:
            for message in call:
                watchdog.suspend()
                yield message
                watchdog.resume()

    async def send(self, rpc: str, requests: Iterable[Message]) -> Message:
        upload = _Upload(requests)
        call = self._rpcs[rpc].future(iter(upload), metadata=self._caller.metadata)
        with upload.own_errors(), _Watchdog(call, self.timeout_seconds) as upload.watchdog:
            return call.result()

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)

    async def close(self) -> None:
        self._is_closed = True
        self._stubs.channel.close()


class AsyncGrpcConnection:
    """A connection for the event loop in which it is first used."""

    def __init__(
        self, address: GrpcAddress, *, key: str | None, role: str | None, timeout_seconds: float | None
    ) -> None:
        self.address = address
        self.timeout_seconds = timeout_seconds
        self._caller = CallerMetadata(address, key, role)
        self._is_closed = False

    @cached_property
    def _async_stubs(self) -> _Stubs:
        # Created late, because a channel belongs to the event loop that is running.
        return _Stubs(open_async_channel(self.address))

    @cached_property
    def _upload_stubs(self) -> _Stubs:
        # A blocking channel: if a service responds before the end of an upload, an async channel reports an
        # unspecific failure. The content is iterated in a thread anyway.
        return _Stubs(open_channel(self.address))

    @property
    def _rpcs(self) -> _Stubs:
        require_open(is_closed=self._is_closed)
        return self._async_stubs

    @property
    def _uploads(self) -> _Stubs:
        require_open(is_closed=self._is_closed)
        return self._upload_stubs

    async def call(self, rpc: str, request: Message) -> Message:
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
        upload = _Upload(requests)
        call = self._uploads[rpc].future(iter(upload), metadata=self._caller.metadata)
        with upload.own_errors(), _Watchdog(call, self.timeout_seconds) as upload.watchdog:
            await wait_until_done(call)
            return call.result()

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        self._is_closed = True
        if "_async_stubs" in self.__dict__:
            await self._async_stubs.channel.close()
        if "_upload_stubs" in self.__dict__:
            self._upload_stubs.channel.close()


class _Watchdog:
    """Cancels a call on exit, or as soon as the service is silent for too long."""

    def __init__(self, call: Any, seconds: float | None) -> None:  # Any: the kinds have no common type
        self._call = call
        self._seconds = seconds
        self._since: float | None = time.monotonic()
        """Start of the silence; `None` while suspended."""
        self._has_exited = threading.Event()
        self._has_expired = False

    def resume(self) -> None:
        """Restart the timeout."""
        self._since = time.monotonic()

    def suspend(self) -> None:
        """Stop the timeout while the service is not expected to act."""
        self._since = None

    def __enter__(self) -> Self:
        if self._seconds is not None:
            threading.Thread(target=self._watch, args=(self._seconds,), daemon=True).start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self._has_exited.set()
        self._call.cancel()
        if self._has_expired and isinstance(error, grpc.RpcError | grpc.FutureCancelledError):
            raise ServiceSilentError from None

    def _watch(self, seconds: float) -> None:
        left = seconds
        while not self._has_exited.wait(left):
            since = self._since
            left = seconds if since is None else since + seconds - time.monotonic()
            if left <= 0:
                self._has_expired = True
                self._call.cancel()
                return


class _Upload:
    """Requests that a thread of gRPC iterates; keeps the error that iterating them raised."""

    def __init__(self, requests: Iterable[Message]) -> None:
        self._requests = requests
        self.error: BaseException | None = None
        self.watchdog: _Watchdog | None = None
        """Suspended while requests are produced."""

    def __iter__(self) -> Iterator[Message]:
        try:
            for each in self._requests:
                self._resume()
                yield each
                if self.watchdog is not None:
                    self.watchdog.suspend()
        except Exception as error:
            self.error = error
            raise
        finally:
            self._resume()

    def _resume(self) -> None:
        if self.watchdog is not None:
            self.watchdog.resume()

    @contextmanager
    def own_errors(self) -> Iterator[None]:
        """Raise the error of the requests instead of the gRPC error that it caused."""
        try:
            yield
        except grpc.RpcError:
            if self.error is not None:
                raise self.error from None
            raise
