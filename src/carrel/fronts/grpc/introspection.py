"""Health and reflection: that there is a service, and what it offers.

Anybody may ask for the health, as those do who look after machines. The calls that stay open are for callers
who are known, since anybody else could take up all the room with them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from grpc_health.v1 import health
from grpc_reflection.v1alpha import reflection

from carrel.fronts.grpc.door import Context, Door


class Health(health.aio.HealthServicer):  # type: ignore[misc]  # ships no type hints
    """Tells whether the service takes calls."""

    def __init__(self, door: Door) -> None:
        super().__init__()
        self._door = door

    async def Watch(self, request: Any, context: Context) -> None:
        """Tell it now, and whenever it changes."""
        await self._door.require_known("/grpc.health.v1.Health/Watch", context)
        await super().Watch(request, context)


class Reflection(reflection.aio.ReflectionServicer):  # type: ignore[misc]  # ships no type hints
    """Tells what can be called, and how."""

    def __init__(self, door: Door, services: tuple[str, ...]) -> None:
        super().__init__(services)
        self._door = door

    async def ServerReflectionInfo(self, requests: Any, context: Context) -> AsyncIterator[Any]:
        """Answer one question after another."""
        await self._door.require_known(f"/{reflection.SERVICE_NAME}/ServerReflectionInfo", context)
        async for answer in super().ServerReflectionInfo(requests, context):
            yield answer
