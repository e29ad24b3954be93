"""A server of MCP as a child: requests as lines on its standard input, answers on its standard output."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bench._children import environment, last_line
from bench._errors import UnmeasuredError

PROTOCOL = "2025-06-18"
"""The newest protocol that both sides have spoken for long."""


class Stdio:
    """A child that speaks MCP; one request at a time, without any library between.

    Raises:
        UnmeasuredError: It did not begin as it should.
    """

    def __init__(
        self, command: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self._told = tempfile.TemporaryFile()  # noqa: SIM115  # closed on exit
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._told,
                cwd=cwd,
                env=environment(env),
            )
        except OSError as error:
            self._told.close()
            raise UnmeasuredError(f"it does not start: {error.strerror}") from None
        self._number = 0
        about = {"name": "bench", "version": "1"}
        self.request("initialize", {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": about})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._told.close()

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:  # Any: whatever JSON can say
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
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            if answer.get("id") != self._number or "method" in answer:
                continue
            if "error" in answer:
                raise UnmeasuredError(f"{method}: {answer['error']['message']}")
            found: dict[str, Any] = answer["result"]
            return found
        raise UnmeasuredError(self._last_words())

    def _send(self, message: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise UnmeasuredError(self._last_words()) from None

    def _last_words(self) -> str:
        self._process.wait()
        self._told.seek(0)
        return last_line(self._told.read().decode("utf-8", "replace"))
