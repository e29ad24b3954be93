"""Sessions, and the workspace operations."""

from __future__ import annotations

from carrel.errors import RequestError
from carrel.fronts.grpc.call import RpcCall
from carrel.fronts.grpc.json_fields import parse_object, parse_value, render_json
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.service.sessions.info import NewSession, SessionInfo
from carrel.values import UNSET, Limits

COUNT = 100
"""Default size of a page."""


def _session_response(info: SessionInfo) -> messages.SessionResponse:
    return messages.SessionResponse(session_json=render_json(info))


async def create_session(call: RpcCall, request: messages.CreateSessionRequest) -> messages.SessionResponse:
    """Create a session."""
    new = NewSession(
        session_id=request.session_id or None,
        ttl_seconds=_lifetime(request) if request.WhichOneof("lifetime") else UNSET,
        limits=await parse_value(request.limits_json, "limits_json", Limits),
        role=request.role or None,
        labels=dict(request.labels),
    )
    return _session_response(await call.service.sessions.create(call.acting, new))


def _lifetime(request: messages.CreateSessionRequest | messages.ExtendSessionRequest) -> float | None:
    """Return the idle lifetime in the request; `None` for unlimited.

    Raises:
        RequestError: The request has none.
    """
    match request.WhichOneof("lifetime"):
        case "ttl_seconds":
            return request.ttl_seconds
        case "for_ever" if request.for_ever:
            return None
    raise RequestError("ttl_seconds or for_ever must be given")


async def ensure_session(call: RpcCall, request: messages.SessionRequest) -> messages.SessionResponse:
    """Return a session, created if it is missing."""
    return _session_response(await call.service.sessions.ensure(call.acting, request.session_id))


async def get_session(call: RpcCall, request: messages.SessionRequest) -> messages.SessionResponse:
    """Return the properties and usage of a session."""
    return _session_response(await call.service.sessions.status(call.acting, request.session_id))


async def list_sessions(
    call: RpcCall, request: messages.ListSessionsRequest
) -> messages.ListSessionsResponse:
    """List a page of the caller's sessions."""
    page = await call.service.sessions.list(
        call.acting, after=request.after or None, count=request.count or COUNT
    )
    return messages.ListSessionsResponse(sessions_json=render_json(page.sessions), next=page.next or "")


async def extend_session(call: RpcCall, request: messages.ExtendSessionRequest) -> messages.SessionResponse:
    """Set the idle lifetime of a session."""
    return _session_response(
        await call.service.sessions.extend(call.acting, request.session_id, _lifetime(request))
    )


async def reset_session(call: RpcCall, request: messages.SessionRequest) -> messages.EmptyResponse:
    """Delete all files of a session."""
    await call.service.sessions.reset(call.acting, request.session_id)
    return messages.EmptyResponse()


async def delete_session(call: RpcCall, request: messages.SessionRequest) -> messages.EmptyResponse:
    """Delete a session."""
    await call.service.sessions.delete(call.acting, request.session_id)
    return messages.EmptyResponse()


async def run_operation(call: RpcCall, request: messages.CallRequest) -> messages.CallResponse:
    """Run one operation of a workspace."""
    result = await call.service.call(
        call.caller,
        request.session_id,
        request.operation,
        await parse_object(request.arguments_json, "arguments_json") or {},
        role=call.role_of(request),
        render=render_json,
    )
    return messages.CallResponse(result_json=result)
