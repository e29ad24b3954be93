"""The health and reflection services of gRPC.

Anybody may ask for the health, as those do who look after machines; a few at one time, so that messages
that never end take little memory. The calls that stay open are for callers who are known, since anybody else
could take up all the room with them.
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
"""So many questions of anybody are read at one time; the one that takes longest gives way to the next."""


class Health(health.aio.HealthServicer):  # type: ignore[misc]  # ships no type hints
    """Tells whether the service takes calls."""

    def __init__(self, door: Dispatcher) -> None:
        super().__init__()
        self._door = door
        self._reading: list[asyncio.Task[Any]] = []

    def handlers(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        """What answers each method; the messages are read by it, not before."""
        kinds = {
            "request_deserializer": health_pb2.HealthCheckRequest.FromString,
            "response_serializer": health_pb2.HealthCheckResponse.SerializeToString,
        }
        return {
            "Check": grpc.stream_unary_rpc_method_handler(self._checked, **kinds),
            "Watch": grpc.stream_stream_rpc_method_handler(self._watched, **kinds),
        }

    async def _checked(self, requests: Any, context: RpcContext) -> Any:
        """Tell it now."""
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
                grpc.StatusCode.RESOURCE_EXHAUSTED, "the question did not come in time"
            )
        return await self.Check(reading.result(), context)

    async def _watched(self, requests: Any, context: RpcContext) -> None:
        """Tell it now, and whenever it changes."""
        await self._door.require_known("/grpc.health.v1.Health/Watch", context)
        request = await next_message(aiter(requests))
        await self.Watch(request or health_pb2.HealthCheckRequest(), context)


class Reflection(reflection.aio.ReflectionServicer):  # type: ignore[misc]  # ships no type hints
    """Tells what can be called, and how."""

    def __init__(self, door: Dispatcher, services: tuple[str, ...]) -> None:
        super().__init__(services)
        self._door = door

    async def ServerReflectionInfo(self, requests: Any, context: RpcContext) -> AsyncIterator[Any]:
        """Answer one question after another."""
        await self._door.require_known(f"/{reflection.SERVICE_NAME}/ServerReflectionInfo", context)
        async for answer in super().ServerReflectionInfo(requests, context):
            yield answer
