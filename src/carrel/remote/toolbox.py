"""`RemoteToolbox` and `AsyncRemoteToolbox`: the tools of a role on a session at a service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Any, Self

from carrel.errors import CarrelError, ToolError
from carrel.remote.json_codec import parse
from carrel.remote.run_sync import run_sync
from carrel.remote.transport.api import ExecutionOutput, Transport
from carrel.values import ToolOutput, ToolResult
from carrel.workspace.threads import OnOutput, pass_output, stream_call


class AsyncRemoteToolbox:
    """The tools of one role on a session at a service; calls are awaited."""

    def __init__(self, transport: Transport, session_id: str, role: str | None, *, profile: str) -> None:
        """Call tools as *role*; most callers use `AsyncRemoteWorkspace.toolbox`."""
        self.role = role
        self.profile = profile
        self._transport = transport
        self._session_id = session_id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Do nothing: the connections belong to the client."""

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
            _require_sendable(name)
            answer = await self._transport.call_tool(
                self._session_id, name, arguments, role=self.role, profile=str(self.profile)
            )
            return parse(answer, ToolResult)
        except CarrelError as error:
            return _failure(error)

    async def acall(
        self, name: Any, arguments: Any = None, *, on_output: OnOutput | None = None
    ) -> ToolResult:
        """Call a tool as `call` does; *on_output* receives `stdout` or `stderr` and bytes as they arrive.

        It may be a coroutine function. An exception that it raises stops the tool and is passed on.
        """
        if on_output is None:
            return await self.call(name, arguments)
        return await pass_output(self.astream(name, arguments), on_output)

    async def astream(self, name: Any, arguments: Any = None) -> AsyncGenerator[ToolOutput | ToolResult]:
        """Call a tool, and iterate over the output of commands and code as it arrives, then the result.

        The result holds the output as well. Closing the iterator stops the tool.
        """
        try:
            _require_sendable(name)
            events = self._transport.stream_tool(
                self._session_id, name, arguments, role=self.role, profile=str(self.profile)
            )
            async with aclosing(events):
                async for event in events:
                    if isinstance(event, ExecutionOutput):
                        yield ToolOutput(stream=event.stream, data=event.data)
                    else:
                        yield parse(event.result, ToolResult)
        except CarrelError as error:
            yield _failure(error)


def _require_sendable(name: object) -> None:
    # No tool has another name, and not every other one can be sent.
    if not (isinstance(name, str) and name.isprintable()):
        raise ToolError("unknown", f"There is no tool {name!r:.80}")


def _failure(error: CarrelError) -> ToolResult:
    path = {} if error.path is None else {"path": error.path}
    return ToolResult(success=False, error=error.message, metadata={"code": error.code, **path})


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

    async def acall(
        self, name: str, arguments: Any = None, *, on_output: OnOutput | None = None
    ) -> ToolResult:
        """Call a tool in a worker thread; *on_output* receives output as it arrives, in the event loop.

        Cancelling the task does not stop the tool; use an `AsyncClient` for that.
        """
        if on_output is not None:
            return await pass_output(self.astream(name, arguments), on_output)
        return await asyncio.to_thread(self.call, name, arguments)

    def astream(self, name: str, arguments: Any = None) -> AsyncGenerator[ToolOutput | ToolResult]:
        """Call a tool in a worker thread, and iterate over the output as it arrives, then the result.

        Closing the iterator does not stop the tool; use an `AsyncClient` for that.
        """
        return stream_call(partial(self._call_in_thread, name, arguments))

    async def _call_in_thread(
        self, name: str, arguments: Any, on_output: Callable[[str, bytes], None]
    ) -> ToolResult:
        items = self._async_toolbox.astream(name, arguments)
        return await asyncio.to_thread(lambda: run_sync(pass_output(items, on_output)))
