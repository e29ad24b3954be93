"""`RemoteTools`: the tools of a session that a service keeps, called over gRPC.

Results are those of a local toolbox. If the service cannot be reached, calls fail; they never run here
instead.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import grpc

from carrel.errors import CarrelError, ClosedError, ToolError, UnreachableError
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.remote.proto.carrel_v1_pb2_grpc import SandboxServiceStub
from carrel.remote.transport.grpc_channel import (
    CallerMetadata,
    GrpcAddress,
    open_channel,
    translate_error,
    wait_until_done,
)
from carrel.tools.core.advice import Adviser
from carrel.tools.core.formats import Format
from carrel.tools.core.schema import describe_value
from carrel.tools.core.spec import Profile
from carrel.values import ToolImage, ToolResult
from carrel.workspace.threads import call_threads, wait_for_end

CALL_SECONDS = 330.0
"""Timeout of a call, in seconds; longer than the longest timeout of any tool."""


class RemoteTools:
    """The tools of a caller in one session of a service."""

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
        """Prepare to call the service at *address*; the connection is made by the first call.

        Args:
            address: `host:port`, `grpc://host:port`, or `grpcs://host:port` for TLS.
            session_id: Session at the service, which creates it if it does not exist.
            role: Role of the caller, one that the key allows; by default that of the key.
            profile: Set of tool names to offer.
            key: API key. The user who runs the service needs none on the same machine.
            ca: PEM file with the certificate authorities to trust, instead of those of the system.

        Raises:
            ConfigError: The address, the file, the key or the role is not valid.
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
        """Close the connection; calls in progress fail."""
        self._is_closed = True
        self._channel.close()

    def _require_open(self) -> None:
        if self._is_closed:
            raise ClosedError("the tools are closed")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the tools that may be called, requested from the service once.

        Raises:
            UnreachableError: The service does not answer.
        """
        if self._names is None:
            self._names = tuple(schema["title"] for schema in self.schemas())
        return self._names

    def schemas(self, format: Format | str = Format.JSON) -> list[dict[str, Any]]:
        """Return the tool definitions for a model.

        Raises:
            ClosedError: The tools are closed.
            UnreachableError: The service does not answer.
            UnauthenticatedError: The service does not accept the key.
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
        tools = _parse_json(answer.tools_json)
        if not isinstance(tools, list):
            raise _invalid_response()
        return tools

    def call(self, name: str, arguments: Any = None) -> ToolResult:
        """Call a tool; every failure is a result, not an exception."""
        try:
            request = self._request(name, arguments)
            return parse_tool_answer(
                self._stub.CallTool(request, metadata=self._caller.metadata, timeout=CALL_SECONDS)
            )
        except grpc.RpcError as failure:
            return self._adviser.failure(self._error(failure))
        except CarrelError as error:
            return self._adviser.failure(error)

    async def acall(
        self, name: str, arguments: Any = None, on_output: Callable[[str, bytes], None] | None = None
    ) -> ToolResult:
        """Call a tool without blocking the event loop; cancelling the task stops the work at the service.

        *on_output* is called in a thread.
        """
        try:
            request = self._request(name, arguments)
            if on_output is not None:
                stream = self._stub.CallToolStream(
                    request, metadata=self._caller.metadata, timeout=CALL_SECONDS
                )
                return parse_tool_answer(await _read_in_thread(stream, on_output))
            call = self._stub.CallTool.future(request, metadata=self._caller.metadata, timeout=CALL_SECONDS)
            return parse_tool_answer(await _wait_for(call))
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
            problem = (
                "Wrong arguments: they, or the names of the tool and the session, cannot be encoded as JSON"
            )
            raise ToolError("arguments", problem) from None

    def _error(self, failure: grpc.RpcError) -> CarrelError:
        return translate_error(failure, self.address, timeout_seconds=CALL_SECONDS)


async def _wait_for(call: grpc.Future[messages.ToolAnswer]) -> messages.ToolAnswer:
    """Return the answer of a call; cancelling the task cancels the call."""
    try:
        await wait_until_done(call)
    except asyncio.CancelledError:
        call.cancel()
        raise
    return call.result()


async def _read_in_thread(
    stream: Any,  # Any: a call that iterates, for which grpc has no public type
    on_output: Callable[[str, bytes], None],
) -> messages.ToolAnswer:
    """Return the answer of a streamed call; cancelling the task cancels the call."""
    reading = asyncio.get_running_loop().run_in_executor(call_threads(), _read, stream, on_output)
    try:
        return await asyncio.shield(reading)
    except asyncio.CancelledError:
        stream.cancel()
        await wait_for_end(reading)
        raise


def _read(
    stream: Iterator[messages.ToolEvent], on_output: Callable[[str, bytes], None]
) -> messages.ToolAnswer:
    for event in stream:
        match event.WhichOneof("event"):
            case "stdout":
                on_output("stdout", event.stdout)
            case "stderr":
                on_output("stderr", event.stderr)
            case "result":
                return event.result
    raise _invalid_response()


def parse_tool_answer(answer: messages.ToolAnswer) -> ToolResult:
    """Convert the answer of the service to a result.

    Raises:
        UnreachableError: The answer is malformed.
    """
    metadata = _parse_json(answer.metadata_json or "{}")
    if not isinstance(metadata, dict):
        raise _invalid_response()
    output = data = None
    match answer.WhichOneof("payload"):
        case "output":
            output = answer.output
        case "output_json":
            output = _parse_json(answer.output_json)
        case "data_json":
            data = _parse_json(answer.data_json)
    return ToolResult(
        success=answer.success,
        output=output,
        data=data,
        error=answer.error if answer.HasField("error") else None,
        metadata=metadata,
        model_text=answer.model_text if answer.HasField("model_text") else None,
        images=tuple(
            ToolImage(
                path=image.path,
                media_type=image.media_type,
                size_bytes=image.size_bytes,
                width=image.width,
                height=image.height,
                data=image.data,
            )
            for image in answer.images
        ),
    )


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise _invalid_response() from None


def _invalid_response() -> UnreachableError:
    return UnreachableError("the service sent a response that cannot be parsed")
