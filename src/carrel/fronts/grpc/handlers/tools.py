"""Tools as gRPC methods; a tool that fails is a response, not a status."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

from google.protobuf.message import Message

from carrel.errors import CarrelError
from carrel.fronts.grpc.call import RpcCall
from carrel.fronts.grpc.json_fields import parse_json, render_json
from carrel.fronts.grpc.streams import PIECE_BYTES, slices
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.tools.core.advice import Adviser
from carrel.tools.core.spec import Profile
from carrel.values import ToolImage, ToolResult

_NOT_ARGUMENTS = ("session_id", "context")
"""Fields of a request that are not arguments of the tool."""
_ADVISER = Adviser({})


def tool_handler(name: str) -> Callable[[RpcCall, Any], Awaitable[messages.ToolAnswer]]:  # Any: a message
    """Return the handler of one tool, whose arguments are the fields of the message."""

    async def run(call: RpcCall, request: Any) -> messages.ToolAnswer:
        return await _call_tool(call, request, name, Profile.AGENT, tool_arguments(request))

    return run


async def call_tool(call: RpcCall, request: messages.CallToolRequest) -> messages.ToolAnswer:
    """Call any tool of any profile."""
    try:
        arguments = await parse_json(request.arguments_json or "null", "arguments_json")
    except CarrelError as error:
        return tool_answer(_ADVISER.failure(error))
    return await _call_tool(call, request, request.name, request.profile or Profile.AGENT, arguments)


async def call_tool_stream(
    call: RpcCall, request: messages.CallToolRequest
) -> AsyncIterator[messages.ToolEvent]:
    """Call any tool of any profile, and stream the output of commands and code, then the result."""
    event = messages.ToolEvent
    try:
        arguments = await parse_json(request.arguments_json or "null", "arguments_json")
        items = call.service.stream_tool(
            call.caller,
            request.session_id,
            request.name,
            arguments,
            role=call.role_of(request),
            profile=request.profile or Profile.AGENT,
        )
        async with aclosing(items):
            async for item in items:
                if isinstance(item, ToolResult):
                    yield event(result=tool_answer(item))
                    continue
                for piece in slices(item.data, PIECE_BYTES):
                    yield event(stdout=piece) if item.stream == "stdout" else event(stderr=piece)
    except CarrelError as error:
        yield event(result=tool_answer(_ADVISER.failure(error)))


async def list_tools(call: RpcCall, request: messages.ListToolsRequest) -> messages.ListToolsResponse:
    """List the caller's tools."""
    tools = await call.service.tools(
        call.caller,
        request.session_id or None,
        role=call.role_of(request),
        profile=request.profile or "agent",
        format=request.format or "json",
    )
    return messages.ListToolsResponse(tools_json=render_json(tools))


async def _call_tool(
    call: RpcCall,
    request: Any,  # Any: a message with a session and a context
    name: str,
    profile: str,
    arguments: Any,  # Any: any JSON
) -> messages.ToolAnswer:
    try:
        result = await call.service.call_tool(
            call.caller, request.session_id, name, arguments, role=call.role_of(request), profile=profile
        )
    except CarrelError as error:
        result = _ADVISER.failure(error)
    return tool_answer(result)


def tool_arguments(request: Message) -> dict[str, Any]:  # Any: texts, numbers and so on
    """Return the arguments in a request by the names of its fields; the tool has defaults for absent ones."""
    return {
        field.name: getattr(request, field.name)
        for field in request.DESCRIPTOR.fields
        if field.name not in _NOT_ARGUMENTS and (not field.has_presence or request.HasField(field.name))
    }


def tool_answer(result: ToolResult) -> messages.ToolAnswer:
    """Render the result of a tool as a message."""
    answer = messages.ToolAnswer(
        success=result.success,
        error=_escape(result.error),
        code=result.code,
        metadata_json=json.dumps(dict(result.metadata), allow_nan=False),
        size_bytes=_number(result, "size_bytes", 2**63),
        exit_code=_number(result, "exit_code", 2**31),
        model_text=_escape(result.model_text),
        images=map(_image, result.images),
    )
    if result.data is not None:
        answer.data_json = json.dumps(result.data, allow_nan=False)
    elif isinstance(result.output, str) and _is_utf8(result.output):
        answer.output = result.output
    elif result.output is not None:
        answer.output_json = json.dumps(result.output, allow_nan=False)
    return answer


def _image(image: ToolImage) -> messages.ToolImage:
    return messages.ToolImage(
        path=_escape(image.path),
        media_type=image.media_type,
        size_bytes=image.size_bytes,
        width=image.width,
        height=image.height,
        data=image.data,
    )


def _number(result: ToolResult, name: str, end: int) -> int | None:
    value = result.metadata.get(name)
    return value if isinstance(value, int) and -end <= value < end else None


def _is_utf8(text: str) -> bool:
    """Whether UTF-8 can encode the text, as a string field requires."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _escape(text: str | None) -> str | None:
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()
