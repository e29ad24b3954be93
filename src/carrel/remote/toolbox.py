"""`RemoteToolbox` and `AsyncRemoteToolbox`: the tools of a role on a session at a service."""

from __future__ import annotations

import asyncio
from typing import Any, Self

from carrel.errors import CarrelError, ToolError
from carrel.remote.json_codec import parse
from carrel.remote.run_sync import run_sync
from carrel.remote.transport.api import Transport
from carrel.values import ToolResult


class AsyncRemoteToolbox:
    """The tools of one role on a session at a service; calls are awaited."""

    def __init__(self, transport: Transport, session_id: str, role: str | None, *, profile: str) -> None:
        """Call tools as *role*; most callers use `AsyncRemoteWorkspace.toolbox`."""
        self.role = role
        self.profile = profile
        self._transport = transport
        self._session_id = session_id

    async def names(self) -> tuple[str, ...]:
        """The names of the available tools."""
        return tuple(each["title"] for each in await self.schemas())

    async def schemas(self, format: str = "json") -> list[dict[str, Any]]:
        """The tool definitions for a model: as JSON Schema, or in the format of an API."""
        document = await self._transport.tools(
            self._session_id, role=self.role, profile=str(self.profile), format=str(format)
        )
        return parse(document, list[dict[str, Any]])

    async def call(self, name: Any, arguments: Any = None) -> ToolResult:
        """Call a tool with *arguments*, a mapping; every failure is a result, not an exception.

        If the service cannot be reached, the result has the code `service.unreachable`; a tool never runs
        locally instead.
        """
        try:
            if not (isinstance(name, str) and name.isprintable()):
                # No tool has such a name, and not every such name can be sent.
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
    """The tools of one role on a session at a service."""

    def __init__(self, async_toolbox: AsyncRemoteToolbox) -> None:
        """Wrap *async_toolbox*, whose connection blocks; most callers use `RemoteWorkspace.toolbox`."""
        self._async_toolbox = async_toolbox
        self.role = async_toolbox.role
        self.profile = async_toolbox.profile

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Do nothing: the connections belong to the client."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the available tools."""
        return run_sync(self._async_toolbox.names())

    def schemas(self, format: str = "json") -> list[dict[str, Any]]:
        """The tool definitions for a model: as JSON Schema, or in the format of an API."""
        return run_sync(self._async_toolbox.schemas(format))

    def call(self, name: str, arguments: Any = None) -> ToolResult:
        """Call a tool with *arguments*, a mapping; every failure is a result, not an exception."""
        return run_sync(self._async_toolbox.call(name, arguments))

    async def acall(self, name: str, arguments: Any = None) -> ToolResult:
        """Call a tool in a worker thread."""
        return await asyncio.to_thread(self.call, name, arguments)
