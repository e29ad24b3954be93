"""The tools as calls of gRPC; what goes wrong with one is in its answer."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from google.protobuf.message import Message

from carrel.errors import CarrelError
from carrel.fronts.grpc.call import Call
from carrel.fronts.grpc.json_text import parse_json, render_json
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.tools.advice import Adviser
from carrel.tools.result import ToolResult
from carrel.tools.spec import Profile

_OURS = ("session_id", "context")
"""The fields of a request that are no arguments of the tool."""
_ADVISER = Adviser({})


def tool_call(name: str) -> Callable[[Call, Any], Awaitable[messages.ToolAnswer]]:  # Any: a message
    """The call of one tool, whose arguments are the fields of the message."""

    async def run(call: Call, request: Any) -> messages.ToolAnswer:
        return await _answered(call, request, name, Profile.AGENT, arguments_of(request))

    return run


async def call_tool(call: Call, request: messages.CallToolRequest) -> messages.ToolAnswer:
    """Any tool of any profile."""
    try:
        arguments = await parse_json(request.arguments_json or "null", "arguments_json")
    except CarrelError as error:
        return answer_of(_ADVISER.failure(error))
    return await _answered(call, request, request.name, request.profile or Profile.AGENT, arguments)


async def list_tools(call: Call, request: messages.ListToolsRequest) -> messages.ListToolsResponse:
    """The tools that the caller may use."""
    tools = await call.service.tools(
        call.caller,
        request.session_id or None,
        role=call.role_of(request),
        profile=request.profile or "agent",
        format=request.format or "json",
    )
    return messages.ListToolsResponse(tools_json=render_json(tools))


async def _answered(
    call: Call,
    request: Any,  # Any: a message with a session and a context
    name: str,
    profile: str,
    arguments: Any,  # Any: whatever JSON can say
) -> messages.ToolAnswer:
    try:
        result = await call.service.call_tool(
            call.caller, request.session_id, name, arguments, role=call.role_of(request), profile=profile
        )
    except CarrelError as error:
        result = _ADVISER.failure(error)
    return answer_of(result)


def arguments_of(request: Message) -> dict[str, Any]:  # Any: texts, numbers and so on
    """What a request says, by the names of the fields; what it does not say is left to the tool."""
    return {
        field.name: getattr(request, field.name)
        for field in request.DESCRIPTOR.fields
        if field.name not in _OURS and (not field.has_presence or request.HasField(field.name))
    }


def answer_of(result: ToolResult) -> messages.ToolAnswer:
    """What a tool answered, as a message."""
    answer = messages.ToolAnswer(
        success=result.success,
        error=_plain(result.error),
        code=result.code,
        metadata_json=json.dumps(dict(result.metadata), allow_nan=False),
        size_bytes=_number(result, "size_bytes", 2**63),
        exit_code=_number(result, "exit_code", 2**31),
    )
    if result.data is not None:
        answer.data_json = json.dumps(result.data, allow_nan=False)
    elif isinstance(result.output, str) and _is_plain(result.output):
        answer.output = result.output
    elif result.output is not None:
        answer.output_json = json.dumps(result.output, allow_nan=False)
    return answer


def _number(result: ToolResult, name: str, end: int) -> int | None:
    value = result.metadata.get(name)
    return value if isinstance(value, int) and -end <= value < end else None


def _is_plain(text: str) -> bool:
    """Whether UTF-8 can say it, as a message must."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _plain(text: str | None) -> str | None:
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()
