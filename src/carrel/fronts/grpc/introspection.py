"""The health and reflection services of gRPC.

Anyone may check the health, as load balancers do; few requests are read at a time, so that messages that
never end take little memory. Calls that stay open need a key, because others could use up all connections
with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
from grpc_health.v1 import health, health_pb2
from grpc_reflection.v1alpha import reflection

from carrel.fronts.grpc.dispatcher import Dispatcher, RpcContext
from carrel.fronts.grpc.streams import next_message

READERS = 8
"""Most health requests read at one time; the one that takes longest is dropped for the next."""


class Health(health.aio.HealthServicer):  # type: ignore[misc]  # ships no type hints
    """Report whether the service accepts calls."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        super().__init__()
        self._dispatcher = dispatcher
        self._reading: list[asyncio.Task[Any]] = []

    def handlers(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        """Return the handler of each method; it reads the messages itself."""
        kinds = {
            "request_deserializer": health_pb2.HealthCheckRequest.FromString,
            "response_serializer": health_pb2.HealthCheckResponse.SerializeToString,
        }
        return {
            "Check": grpc.stream_unary_rpc_method_handler(self._check, **kinds),
            "Watch": grpc.stream_stream_rpc_method_handler(self._watch, **kinds),
        }

    async def _check(self, requests: Any, context: RpcContext) -> Any:
        """Report the health once."""
        if len(self._reading) == READERS:
            self._reading.pop(0).cancel()
        reading = asyncio.ensure_future(next_message(aiter(requests)))
        self._reading.append(reading)
        try:
            await asyncio.wait([reading])
        finally:
            reading.cancel()
            if reading in self._reading:
                self._reading.remove(reading)
        if reading.cancelled() or reading.exception() is not None or reading.result() is None:
            return await context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED, "the request did not arrive in time"
            )
        return await self.Check(reading.result(), context)

    async def _watch(self, requests: Any, context: RpcContext) -> None:
        """Report the health, and every change of it."""
        await self._dispatcher.require_authenticated("/grpc.health.v1.Health/Watch", context)
        request = await next_message(aiter(requests))
        await self.Watch(request or health_pb2.HealthCheckRequest(), context)


class Reflection(reflection.aio.ReflectionServicer):  # type: ignore[misc]  # ships no type hints
    """Describe the services and their messages."""

    def __init__(self, dispatcher: Dispatcher, services: tuple[str, ...]) -> None:
        super().__init__(services)
        self._dispatcher = dispatcher

    async def ServerReflectionInfo(self, requests: Any, context: RpcContext) -> AsyncIterator[Any]:
        """Answer the requests of a stream."""
        await self._dispatcher.require_authenticated(
            f"/{reflection.SERVICE_NAME}/ServerReflectionInfo", context
        )
        async for answer in super().ServerReflectionInfo(requests, context):
            yield answer
