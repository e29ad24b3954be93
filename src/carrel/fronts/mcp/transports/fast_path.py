"""`FastPath`: answer plain tool calls on standard streams without the SDK, which costs more than most calls.

A call is plain if it has only the name of a tool and its arguments. Calls that request progress, malformed
ones and all other requests are left to the SDK. Responses look the same, and calls can be cancelled as usual.

A call that does not block is answered inline: waking a task would take longer. Any other call has its own
task, so that nothing waits behind it. docs/adr/0020 has the measurements.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal, Self

import msgspec
from mcp.shared.exceptions import MCPError
from mcp_types import SERVER_INFO_META_KEY, JSONRPCResponse
from mcp_types.jsonrpc import JSONRPCMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import Struct, field

from carrel.fronts.mcp.responses import Document, replace_surrogates
from carrel.fronts.mcp.tool_calls import Arguments, PendingCall
from carrel.fronts.mcp.transports.jsonrpc import parse_cancelled_id

OLDER_VERSIONS = frozenset({"2025-06-18", "2025-11-25"})
"""Versions of the older protocol in which responses have the same structure."""
_CALL, _CANCEL = b'"tools/call"', b'"notifications/cancelled"'

Send = Callable[[bytes], None]
StartCall = Callable[[str, Arguments], Document | PendingCall]
"""Starts a call by name and arguments; see `ToolCalls.start`."""


class _Meta(Struct, forbid_unknown_fields=True, kw_only=True):
    version: str = field(name="io.modelcontextprotocol/protocolVersion")
    capabilities: dict[str, Any] = field(name="io.modelcontextprotocol/clientCapabilities")
    info: dict[str, Any] | None = field(name="io.modelcontextprotocol/clientInfo", default=None)


class _Params(Struct, forbid_unknown_fields=True, kw_only=True):
    name: str
    arguments: dict[str, Any] = {}
    meta: _Meta | None = field(name="_meta", default=None)


class _Call(Struct, forbid_unknown_fields=True, kw_only=True):
    jsonrpc: Literal["2.0"]
    id: int | str
    method: Literal["tools/call"]
    params: _Params


_calls = msgspec.json.Decoder(_Call)


class FastPath:
    """Answers the plain calls of one client."""

    def __init__(self, start: StartCall, send: Send) -> None:
        """Run calls with *start*, and pass responses to *send*."""
        self._start = start
        self._send = send
        self._running: dict[int | str, asyncio.Task[None]] = {}
        self.on_done: Callable[[], None] | None = None
        """Called when a call with a task has ended."""
        self._is_enabled = False
        self._server_info: Any = None  # Any: as the SDK sends it
        """Sent with every response of the newer protocol."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        running = tuple(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    @property
    def running(self) -> int:
        """Number of calls that are not answered yet."""
        return len(self._running)

    async def wait_idle(self) -> None:
        """Wait until no call runs."""
        while running := tuple(self._running.values()):
            await asyncio.wait(running)

    def observe(self, message: JSONRPCMessage) -> None:
        """Learn the protocol version from a message of the SDK; until then, no calls are handled here."""
        if self._is_enabled or not isinstance(message, JSONRPCResponse):
            return
        self._server_info = (message.result.get("_meta") or {}).get(SERVER_INFO_META_KEY)
        self._is_enabled = (
            self._server_info is not None or message.result.get("protocolVersion") in OLDER_VERSIONS
        )

    def try_handle(self, line: bytes) -> bool:
        """Handle *line* if it is a plain call; `False` leaves it to the SDK."""
        if not self._is_enabled:
            return False
        if _CANCEL in line:
            self._cancel(line)
        if _CALL not in line:
            return False
        try:
            call = _calls.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        if not self._is_same_protocol(call.params.meta) or call.id in self._running:
            return False
        try:
            started = self._start(call.params.name, call.params.arguments)
        except MCPError as error:
            self._send_error(call, error)
            return True
        if not callable(started):
            self._send_result(call, started)
            return True
        task = asyncio.create_task(self._finish(call, started))
        self._running[call.id] = task
        task.add_done_callback(lambda _: self._remove(call.id))
        return True

    def _remove(self, request_id: int | str) -> None:
        del self._running[request_id]
        if self.on_done is not None:
            self.on_done()

    def _is_same_protocol(self, meta: _Meta | None) -> bool:
        """Whether a call uses the version of the protocol that the client began with."""
        if meta is None:
            return self._server_info is None
        return self._server_info is not None and meta.version in MODERN_PROTOCOL_VERSIONS

    def _cancel(self, line: bytes) -> None:
        request_id = parse_cancelled_id(line)
        task = None if request_id is None else self._running.get(request_id)
        if task is not None:
            task.cancel()

    async def _finish(self, call: _Call, pending: PendingCall) -> None:
        try:
            result = await pending(None)
        except MCPError as error:
            self._send_error(call, error)
        else:
            self._send_result(call, result)

    def _send_error(self, call: _Call, error: MCPError) -> None:
        document = {"code": error.code, "message": error.message}
        self._send(_encode({"jsonrpc": "2.0", "id": call.id, "error": document}))

    def _send_result(self, call: _Call, result: Document) -> None:
        if self._server_info is not None:
            meta = {SERVER_INFO_META_KEY: self._server_info}
            result = {**result, "resultType": "complete", "_meta": meta}
        self._send(_encode({"jsonrpc": "2.0", "id": call.id, "result": result}))


def _encode(document: Document) -> bytes:
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError:
        # Rare, and checking beforehand would take as long as encoding.
        return msgspec.json.encode(replace_surrogates(document))
