"""`RemoteToolbox` and `AsyncRemoteToolbox`: the tools of a service on one of its sessions."""

from __future__ import annotations

import asyncio
from typing import Any, Self

from carrel.errors import CarrelError, ToolError
from carrel.remote.json_codec import parse
from carrel.remote.run_sync import run_sync
from carrel.remote.transport.api import Transport
from carrel.values import ToolResult


class AsyncRemoteToolbox:
    """The tools of one role on a session that a service keeps; calls are awaited."""

    def __init__(self, transport: Transport, session_id: str, role: str | None, *, profile: str) -> None:
        """Call tools as *role*; most callers want `AsyncRemoteWorkspace.toolbox`."""
        self.role = role
        self.profile = profile
        self._transport = transport
        self._session_id = session_id

    async def names(self) -> tuple[str, ...]:
        """The tools that may be called."""
        return tuple(each["title"] for each in await self.schemas())

    async def schemas(self, format: str = "json") -> list[dict[str, Any]]:
        """The tools as a model is told of them: as JSON Schema, or in the shape that some client takes."""
        told = await self._transport.tools(
            self._session_id, role=self.role, profile=str(self.profile), format=str(format)
        )
        return parse(told, list[dict[str, Any]])

    async def call(self, name: Any, arguments: Any = None) -> ToolResult:
        """Call a tool with *arguments*, a mapping; whatever goes wrong is an answer, not an exception.

        So is a service that cannot be reached: the answer has the code `service.unreachable`, and nothing is
        ever done here instead.
        """
        try:
            if not (isinstance(name, str) and name.isprintable()):
                # No tool is called so, and not every such name can be sent.
                raise ToolError("unknown", f"There is no tool {name!r:.80}")
            answer = await self._transport.call_tool(
                self._session_id, name, arguments, role=self.role, profile=str(self.profile)
            )
            return parse(answer, ToolResult)
        except CarrelError as error:
            path = {} if error.path is None else {"path": error.path}
            return ToolResult(success=False, error=error.message, metadata={"code": error.code, **path})

    acall = call


class RemoteToolbox:
    """The tools of one role on a session that a service keeps."""

    def __init__(self, far: AsyncRemoteToolbox) -> None:
        """Use *far*, whose line blocks; most callers want `RemoteWorkspace.toolbox`."""
        self._far = far
        self.role = far.role
        self.profile = far.profile

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Nothing is held here; the client has the connections."""

    @property
    def names(self) -> tuple[str, ...]:
        """The tools that may be called."""
        return run_sync(self._far.names())

    def schemas(self, format: str = "json") -> list[dict[str, Any]]:
        """The tools as a model is told of them: as JSON Schema, or in the shape that some client takes."""
        return run_sync(self._far.schemas(format))

    def call(self, name: str, arguments: Any = None) -> ToolResult:
        """Call a tool with *arguments*, a mapping; whatever goes wrong is an answer, not an exception."""
        return run_sync(self._far.call(name, arguments))

    async def acall(self, name: str, arguments: Any = None) -> ToolResult:
        """The same as `call`, awaitable."""
        return await asyncio.to_thread(self.call, name, arguments)
