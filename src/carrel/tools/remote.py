"""`RemoteTools`: the tools of a session that a service keeps, called over gRPC.

What the service answers is what a toolbox here would answer. Nothing is ever done here instead: whoever
cannot reach the service is told so.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from typing import Any

import grpc

from carrel.errors import CarrelError, ClosedError, ToolError, UnreachableError
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.remote.proto.carrel_v1_pb2_grpc import SandboxServiceStub
from carrel.remote.transport.grpc_channel import CallerMetadata, GrpcAddress, open_channel, translate_error
from carrel.tools.core.advice import Adviser
from carrel.tools.core.formats import Format
from carrel.tools.core.schema import describe_value
from carrel.tools.core.spec import Profile
from carrel.values import ToolResult

CALL_SECONDS = 330.0
"""The longest tool takes less; a service that is silent for longer will not answer any more."""


class RemoteTools:
    """The tools that a caller has in one session of a service."""

    def __init__(
        self,
        address: str,
        session_id: str,
        *,
        role: str | None = None,
        profile: Profile | str = Profile.AGENT,
        key: str | None = None,
        ca: str | os.PathLike[str] | None = None,
    ) -> None:
        """Call the service at *address*, once there is something to call.

        Args:
            address: `host:port`, `grpc://host:port`, or `grpcs://host:port` for an encrypted connection.
            session_id: The session, which the service makes if it is missing.
            role: Who calls, among what the key allows; the key's own role by default.
            profile: Under which names the tools are offered.
            key: Tells the service who calls; the user who runs the service needs none on the same machine.
            ca: A PEM file with the authorities that may vouch for the service, instead of the usual ones.

        Raises:
            ConfigError: It is no such address, or the file, the key or the role cannot be sent.
        """
        self.address = GrpcAddress.parse(address, ca=ca)
        self.session_id = session_id
        self.profile = Profile(profile)
        self._context = messages.Context(role=role or "")
        self._caller = CallerMetadata(self.address, key)
        self._adviser = Adviser({})
        self._channel = open_channel(self.address)
        self._stub = SandboxServiceStub(self._channel)
        self._names: tuple[str, ...] | None = None
        self._is_closed = False

    def close(self) -> None:
        """End all use; calls that wait for an answer get none."""
        self._is_closed = True
        self._channel.close()

    def _require_open(self) -> None:
        if self._is_closed:
            raise ClosedError("the tools are closed")

    @property
    def names(self) -> tuple[str, ...]:
        """The tools that may be called, as the service said when it was first asked.

        Raises:
            UnreachableError: No service answers.
        """
        if self._names is None:
            self._names = tuple(schema["title"] for schema in self.schemas())
        return self._names

    def schemas(self, format: Format | str = Format.JSON) -> list[dict[str, Any]]:
        """The tools as a model is told of them.

        Raises:
            ClosedError: This was closed.
            UnreachableError: No service answers.
            UnauthenticatedError: The service does not know the key.
            RoleDeniedError: The key does not allow the role.
        """
        self._require_open()
        request = messages.ListToolsRequest(
            session_id=self.session_id, context=self._context, profile=self.profile, format=Format(format)
        )
        try:
            answer = self._stub.ListTools(request, metadata=self._caller.metadata, timeout=CALL_SECONDS)
        except grpc.RpcError as failure:
            raise self._error(failure) from None
        tools = _parsed(answer.tools_json)
        if not isinstance(tools, list):
            raise _garbled()
        return tools

    def call(self, name: str, arguments: Any = None) -> ToolResult:
        """Call a tool; whatever goes wrong is an answer, not an exception."""
        try:
            request = self._request(name, arguments)
            return parse_tool_answer(
                self._stub.CallTool(request, metadata=self._caller.metadata, timeout=CALL_SECONDS)
            )
        except grpc.RpcError as failure:
            return self._adviser.failure(self._error(failure))
        except CarrelError as error:
            return self._adviser.failure(error)

    async def acall(self, name: str, arguments: Any = None) -> ToolResult:
        """The same as `call`, awaitable; a task that is cancelled ends the call, and so the work."""
        try:
            request = self._request(name, arguments)
            running = self._stub.CallTool.future(
                request, metadata=self._caller.metadata, timeout=CALL_SECONDS
            )
            return parse_tool_answer(await _awaited(running))
        except grpc.RpcError as failure:
            return self._adviser.failure(self._error(failure))
        except CarrelError as error:
            return self._adviser.failure(error)

    def _request(self, name: object, arguments: object) -> messages.CallToolRequest:
        self._require_open()
        if not isinstance(name, str):
            raise ToolError("unknown", f"There is no tool {describe_value(name)}")
        try:
            return messages.CallToolRequest(
                session_id=self.session_id,
                context=self._context,
                name=name,
                profile=self.profile,
                arguments_json="" if arguments is None else json.dumps(arguments, allow_nan=False),
            )
        except (TypeError, ValueError, RecursionError):
            problem = "Wrong arguments: they, or the names of the tool and the session, cannot be sent"
            raise ToolError("arguments", problem) from None

    def _error(self, failure: grpc.RpcError) -> CarrelError:
        return translate_error(failure, self.address, timeout_seconds=CALL_SECONDS)


async def _awaited(running: grpc.Future[messages.ToolAnswer]) -> messages.ToolAnswer:
    """The answer of a call that some other thread waits for."""
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()

    def tell(_: object) -> None:
        # A loop that is closed has nobody left who waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(ended.set)

    running.add_done_callback(tell)
    try:
        await ended.wait()
    except asyncio.CancelledError:
        running.cancel()
        raise
    return running.result()


def parse_tool_answer(answer: messages.ToolAnswer) -> ToolResult:
    """What the service answered, as a toolbox here answers it.

    Raises:
        UnreachableError: It cannot be read.
    """
    metadata = _parsed(answer.metadata_json or "{}")
    if not isinstance(metadata, dict):
        raise _garbled()
    output = data = None
    match answer.WhichOneof("payload"):
        case "output":
            output = answer.output
        case "output_json":
            output = _parsed(answer.output_json)
        case "data_json":
            data = _parsed(answer.data_json)
    return ToolResult(
        success=answer.success,
        output=output,
        data=data,
        error=answer.error if answer.HasField("error") else None,
        metadata=metadata,
    )


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise _garbled() from None


def _garbled() -> UnreachableError:
    return UnreachableError("the service gave an answer that cannot be read")
