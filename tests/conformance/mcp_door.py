"""MCP over HTTP, by bare requests of the protocol without connections: one request, one answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from carrel.fronts.mcp.responses import MEDIA_TOOL
from tests.conformance.answer import Answer
from tests.conformance.http_door import Http
from tests.conformance.library import DEVELOPER
from tests.conformance.row import Row

PROTOCOL = "2026-07-28"
_META = {
    "io.modelcontextprotocol/protocolVersion": PROTOCOL,
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Mcp:
    """The MCP address of a service."""

    name = "mcp"

    def __init__(self, port: int, key: str | None = None) -> None:
        self._http = Http(port, key)

    def operation(self, session: str, row: Row, arguments: Mapping[str, Any]) -> Answer | None:
        """There are only tools."""
        return None

    def tool(self, session: str, row: Row, arguments: Mapping[str, Any]) -> Answer:
        answer = self.call(
            row.name,
            {"session": session, **arguments},
            profile=row.profile,
            role=row.role or DEVELOPER,
        )
        if "error" in answer:
            return Answer.of(_unknown(answer["error"]), session)
        result = answer["result"]
        envelope = result["structuredContent"]
        assert result.get("isError", False) is not envelope["success"]
        found = _as_elsewhere(envelope, result["content"])
        if row.name != MEDIA_TOOL or not envelope["success"]:
            found["content"] = result["content"]
        return Answer.of(found, session)

    def call(self, tool: str, arguments: Mapping[str, Any], **query: str) -> dict[str, Any]:
        """Call a tool; the answer with its `result` or its `error`."""
        return self.request("tools/call", {"name": tool, "arguments": dict(arguments)}, tool, **query)

    def request(
        self, method: str, params: Mapping[str, Any], name: str | None = None, **query: str
    ) -> dict[str, Any]:
        """Send one request."""
        message, headers = rendered(method, params, name)
        reply = self._http.post(f"/mcp?{urlencode(query)}", message, headers)
        if reply.headers.get("content-type", "").startswith("text/event-stream"):
            return _streamed(reply.body)
        answer: dict[str, Any] = reply.json
        return answer

    def close(self) -> None:
        self._http.close()


def rendered(
    method: str, params: Mapping[str, Any], name: str | None = None
) -> tuple[dict[str, Any], dict[str, str]]:
    """One request, and the headers that belong to it."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _META}}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": PROTOCOL,
        "Mcp-Method": method,
        **({"Mcp-Name": name} if name is not None else {}),
    }
    return message, headers


def _streamed(body: bytes) -> dict[str, Any]:
    """The answer in a stream of events, which is the last of them."""
    data = [line.removeprefix(b"data:") for line in body.splitlines() if line.startswith(b"data:")]
    answer: dict[str, Any] = json.loads(data[-1])
    return answer


def _unknown(error: Mapping[str, Any]) -> dict[str, Any]:
    """The protocol has an error of its own for a tool that is not there; elsewhere it is an answer."""
    return {"success": False, "error": error["message"], "metadata": {"code": "tool.unknown", "retry": False}}


def _as_elsewhere(envelope: Mapping[str, Any], content: list[Mapping[str, Any]]) -> dict[str, Any]:
    """The envelope; where it has `content` as that of the reference server has, with `output` again."""
    found = dict(envelope)
    if "content" in found:
        told = found.pop("content")
        found["output"] = told if isinstance(told, str) else _media(content[0])
    return found


def _media(block: Mapping[str, Any]) -> object:
    return block["data"] if "data" in block else block["resource"]["blob"]
