"""`FastPath`: answer plain tool calls on standard streams without the SDK, which is slow.

A call is plain if it has nothing but the name of a tool and its arguments. Whoever wants to be told of
progress, or sends what is wrong in any way, is answered by the SDK, and so is every other request. What is
answered here looks the same, and can be cancelled in the same way.

A plain call that takes no time to speak of is answered before anything else gets a turn: to wake a task for
it would take longer than the call. Any other has a task of its own, so that nothing waits behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Literal, Protocol, Self

import msgspec
from mcp.shared.exceptions import MCPError
from mcp_types import SERVER_INFO_META_KEY, JSONRPCResponse
from mcp_types.jsonrpc import JSONRPCMessage
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from msgspec import Struct, field

from carrel.fronts.mcp.responses import Document, replace_surrogates
from carrel.fronts.mcp.tool_calls import Arguments
from carrel.fronts.mcp.transports.jsonrpc import parse_cancelled_id

OLDER_VERSIONS = frozenset({"2025-06-18", "2025-11-25"})
"""Of the older protocol, those in which an answer has the same shape."""
_CALL, _CANCEL = b'"tools/call"', b'"notifications/cancelled"'

Send = Callable[[bytes], None]


class ToolCaller(Protocol):
    """Whatever does the calls; it raises nothing but `MCPError`."""

    def at_once(self, name: str, arguments: Arguments) -> Document | None:
        """The answer, if nobody has to wait for it; else `None`, and `later` is for it."""
        ...

    async def later(self, name: str, arguments: Arguments) -> Document:
        """The answer, whenever it is there."""
        ...


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
    """Takes the plain calls of one client."""

    def __init__(self, tools: ToolCaller, send: Send) -> None:
        """Let *tools* do them, and *send* the answers."""
        self._tools = tools
        self._send = send
        self._running: dict[int | str, asyncio.Task[None]] = {}
        self.on_done: Callable[[], None] | None = None
        """Is called when a call that ran has ended."""
        self._is_open = False
        self._server_info: Any = None  # Any: as the SDK tells it
        """Told with every answer of the newer protocol."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        running = tuple(self._running.values())
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    @property
    def running(self) -> int:
        """How many calls are not answered yet."""
        return len(self._running)

    async def settled(self) -> None:
        """Wait until nothing runs."""
        while running := tuple(self._running.values()):
            await asyncio.wait(running)

    def learn(self, message: JSONRPCMessage) -> None:
        """See what the SDK answers; only once it has said which protocol is spoken, calls are taken."""
        if self._is_open or not isinstance(message, JSONRPCResponse):
            return
        self._server_info = (message.result.get("_meta") or {}).get(SERVER_INFO_META_KEY)
        self._is_open = (
            self._server_info is not None or message.result.get("protocolVersion") in OLDER_VERSIONS
        )

    def took(self, line: bytes) -> bool:
        """Whether this was a plain call, which is answered now or in a moment."""
        if not self._is_open:
            return False
        if _CANCEL in line:
            self._cancel(line)
        if _CALL not in line:
            return False
        try:
            call = _calls.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return False
        if not self._speaks(call.params.meta) or call.id in self._running:
            return False
        if self._is_answered(call):
            return True
        task = asyncio.create_task(self._answer(call))
        self._running[call.id] = task
        task.add_done_callback(lambda _: self._done(call.id))
        return True

    def _done(self, number: int | str) -> None:
        del self._running[number]
        if self.on_done is not None:
            self.on_done()

    def _speaks(self, meta: _Meta | None) -> bool:
        """Whether a call is of the protocol that the client began with."""
        if meta is None:
            return self._server_info is None
        return self._server_info is not None and meta.version in MODERN_PROTOCOL_VERSIONS

    def _cancel(self, line: bytes) -> None:
        number = parse_cancelled_id(line)
        task = None if number is None else self._running.get(number)
        if task is not None:
            task.cancel()

    def _is_answered(self, call: _Call) -> bool:
        try:
            found = self._tools.at_once(call.params.name, call.params.arguments)
        except MCPError as error:
            self._refuse(call, error)
            return True
        if found is not None:
            self._give(call, found)
        return found is not None

    async def _answer(self, call: _Call) -> None:
        try:
            found = await self._tools.later(call.params.name, call.params.arguments)
        except MCPError as error:
            self._refuse(call, error)
        else:
            self._give(call, found)

    def _refuse(self, call: _Call, error: MCPError) -> None:
        told = {"code": error.code, "message": error.message}
        self._send(_encode({"jsonrpc": "2.0", "id": call.id, "error": told}))

    def _give(self, call: _Call, result: Document) -> None:
        if self._server_info is not None:
            about = {SERVER_INFO_META_KEY: self._server_info}
            result = {**result, "resultType": "complete", "_meta": about}
        self._send(_encode({"jsonrpc": "2.0", "id": call.id, "result": result}))


def _encode(document: Document) -> bytes:
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError:
        # Few answers have anything of that, and to look for it takes as long as to write them.
        return msgspec.json.encode(replace_surrogates(document))
