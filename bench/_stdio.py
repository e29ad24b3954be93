"""A server of MCP as a child: requests as lines on its standard input, answers on its standard output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench._errors import UnmeasuredError
from bench._lines import Lines

PROTOCOL = "2025-06-18"
"""The newest protocol that both sides have spoken for long."""


class Stdio(Lines):
    """A child that speaks MCP; one request at a time, without any library between.

    Raises:
        UnmeasuredError: It did not begin as it should.
    """

    def __init__(
        self, command: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(command, cwd, env)
        self._number = 0
        about = {"name": "bench", "version": "1"}
        self.request("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": about})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:  # Any: any JSON value
        """Call a tool.

        Raises:
            UnmeasuredError: It did not answer, or failed.
        """
        answer = self.request("tools/call", {"name": tool, "arguments": arguments})
        if answer.get("isError"):
            raise UnmeasuredError(f"{tool}: {answer['content']}")
        return answer

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Send one request and wait for its answer; what it says besides is dropped.

        Raises:
            UnmeasuredError: It ended, or refused.
        """
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        answer = self.receive()
        while answer.get("id") != self._number or "method" in answer:
            answer = self.receive()
        if "error" in answer:
            raise UnmeasuredError(f"{method}: {answer['error']['message']}")
        found: dict[str, Any] = answer["result"]
        return found
