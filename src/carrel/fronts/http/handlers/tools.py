"""List the tools of a role, and call one."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import Struct, field

from carrel.errors import RequestError
from carrel.fronts.http.request import ClientDisconnected, Request
from carrel.tools.core.formats import Format
from carrel.tools.core.spec import Profile
from carrel.values import ToolResult

FLAT = ("tool", "context", "profile")
"""What a flat call says besides the arguments of the tool."""


class ToolsQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose tools, and how they are described."""

    role: str | None = None
    profile: Profile = Profile.AGENT
    format: Format = Format.JSON


class ProfileQuery(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Under which names tools are called."""

    profile: Profile = Profile.AGENT


class Context(Struct, frozen=True, kw_only=True):
    """What a request says about itself; what else is in it is of no concern here."""

    role: str | None = None


class ToolBody(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to call a tool."""

    arguments: dict[str, Any] = {}
    context: Context = field(default_factory=Context)


async def list_tools(call: Request) -> None:
    """The tools of a role, with or without a session."""
    query = call.query(ToolsQuery)
    found = await call.app.service.tools(
        call.who,
        call.session_id if call.values else None,
        role=query.role,
        profile=query.profile,
        format=query.format,
    )
    await call.json(200, {"tools": found})


async def run(call: Request) -> None:
    """Call a tool."""
    query = call.query(ProfileQuery)
    body = await call.document(ToolBody)
    await _answer(call, call.values[1], body.arguments, body.context.role, query.profile)


async def run_flat(call: Request) -> None:
    """Call the tool that the body names, with all else in it as arguments."""
    query = call.query(ProfileQuery)
    body = await call.document(dict[str, Any])
    name = body.get("tool")
    context = body.get("context", {})
    if not isinstance(name, str):
        raise RequestError("the body cannot be used: 'tool' must name a tool")
    role = context.get("role") if isinstance(context, dict) else context
    if role is not None and not isinstance(role, str):
        raise RequestError("the body cannot be used: 'context' must be an object, and its 'role' a text")
    arguments = {key: value for key, value in body.items() if key not in FLAT}
    await _answer(call, name, arguments, role, body.get("profile", query.profile))


async def _answer(
    call: Request, name: str, arguments: dict[str, Any], role: str | None, profile: Any
) -> None:
    working = asyncio.ensure_future(
        call.app.service.call_tool(call.who, call.session_id, name, arguments, role=role, profile=profile)
    )
    result = await _while_waited_for(call, working)
    # A tool that fails has answered; one that is not there has not.
    await call.json(404 if result.code == "tool.unknown" else 200, result.to_dict())


async def _while_waited_for(call: Request, working: asyncio.Future[ToolResult]) -> ToolResult:
    """What a tool answers; a client that does not wait for that wants it stopped.

    Raises:
        GoneError: The client went away.
    """
    gone = asyncio.ensure_future(call.gone())
    try:
        await asyncio.wait((gone, working), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnected
        return working.result()
    finally:
        gone.cancel()
        working.cancel()
        await asyncio.wait((gone, working))
