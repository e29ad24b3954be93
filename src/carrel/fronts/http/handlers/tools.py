"""List and call tools."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from msgspec import Struct, field

from carrel.errors import CarrelError, RequestError
from carrel.fronts.http.handlers.server_sent_events import (
    render_event,
    send_events,
    text_or_bytes,
    wants_events,
)
from carrel.fronts.http.request import ClientDisconnected, Request
from carrel.remote.json_codec import render_error
from carrel.service.error_status import error_status
from carrel.tools.core.formats import Format
from carrel.tools.core.spec import Profile
from carrel.values import ToolOutput, ToolResult

FLAT = ("tool", "context", "profile")
"""Fields of a flat call that are not arguments of the tool."""


class ToolsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which tools to list, and in which format."""

    role: str | None = None
    profile: Profile = Profile.AGENT
    format: Format = Format.JSON


class ProfileQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The profile that defines the names of the tools."""

    profile: Profile = Profile.AGENT


class Context(Struct, frozen=True, kw_only=True):
    """The context of a request; unknown fields are ignored."""

    role: str | None = None


class ToolBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of a tool, and the context."""

    arguments: dict[str, Any] = {}
    context: Context = field(default_factory=Context)


async def list_tools(request: Request) -> None:
    """List the tools of a role, with or without a session."""
    query = request.query(ToolsQuery)
    found = await request.app.service.tools(
        request.acting,
        request.session_id if request.path_values else None,
        role=query.role,
        profile=query.profile,
        format=query.format,
    )
    await request.send_json(200, {"tools": found})


async def run(request: Request) -> None:
    """Call a tool."""
    query = request.query(ProfileQuery)
    body = await request.document(ToolBody)
    await _answer(request, request.path_values[1], body.arguments, body.context.role, query.profile)


async def run_flat(request: Request) -> None:
    """Call the tool named in the body; the other fields are its arguments."""
    query = request.query(ProfileQuery)
    body = await request.document(dict[str, Any])
    name = body.get("tool")
    context = body.get("context", {})
    if not isinstance(name, str):
        raise RequestError("the body cannot be used: 'tool' must name a tool")
    role = context.get("role") if isinstance(context, dict) else context
    if role is not None and not isinstance(role, str):
        raise RequestError("the body cannot be used: 'context' must be an object, and its 'role' a string")
    arguments = {key: value for key, value in body.items() if key not in FLAT}
    await _answer(request, name, arguments, role, body.get("profile", query.profile))


async def _answer(
    request: Request, name: str, arguments: dict[str, Any], role: str | None, profile: Any
) -> None:
    service = request.app.service
    if wants_events(request):
        call = service.stream_tool(
            request.acting, request.session_id, name, arguments, role=role, profile=profile
        )
        async with aclosing(call):
            await send_events(request, _events(call), is_finite=True)
        return
    result = service.call_tool_inline(
        request.acting, request.session_id, name, arguments, role=role, profile=profile
    )
    if result is None:
        calling = service.call_tool_in_thread(
            request.acting, request.session_id, name, arguments, role=role, profile=profile
        )
        result = await _until_disconnected(request, asyncio.ensure_future(calling))
    # A failed tool is a successful response; an unknown one is not.
    await request.send_json(404 if result.code == "tool.unknown" else 200, result.to_dict())


async def _events(call: AsyncIterator[ToolOutput | ToolResult]) -> AsyncIterator[bytes]:
    """Yield the output of a call, and then `result` with its result, or `error`."""
    try:
        async for item in call:
            if isinstance(item, ToolOutput):
                yield render_event(item.stream, text_or_bytes(item.data))
            else:
                yield render_event("result", item.to_dict())
    except CarrelError as error:
        yield render_event("error", render_error(error, retry=error_status(error.code).retry))


async def _until_disconnected(request: Request, calling: asyncio.Future[ToolResult]) -> ToolResult:
    """Return the result of a tool; cancel it if the client disconnects first.

    Raises:
        ClientDisconnected: The client disconnected.
    """
    disconnected = asyncio.ensure_future(request.wait_disconnected())
    try:
        await asyncio.wait((disconnected, calling), return_when=asyncio.FIRST_COMPLETED)
        if not calling.done():
            raise ClientDisconnected
        return calling.result()
    finally:
        disconnected.cancel()
        calling.cancel()
        await asyncio.wait((disconnected, calling))
