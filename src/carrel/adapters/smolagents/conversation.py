"""Host side of a step: collects the output of the guest and answers its tool calls."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any  # JSON values, and arguments and results of tools

from carrel.adapters.smolagents.json_codec import decode, encode
from carrel.values import MIB

FINAL_ANSWER = "final_answer"
"""Name of the tool whose call ends the run of an agent."""
MESSAGE_BYTES = 16 * MIB
"""Maximum size of a message from the guest."""
_SIZE_BYTES = 8


class Conversation:
    """Handles the messages of one step: keeps its output, calls tools for it, and stores its outcome.

    Messages come from untrusted code, so they are decoded as plain values, and only the tools given can be
    called.
    """

    def __init__(
        self,
        mark: bytes,
        tools: Mapping[str, Callable[..., Any]],
        variables: Callable[[bool], Any],
        *,
        max_bytes: int,
    ) -> None:
        """Handle lines that begin with *mark*.

        Args:
            mark: Prefix of messages, which code does not print by accident.
            tools: Tools that may be called, by name.
            variables: Returns new variables, or all of them if passed true, as JSON.
            max_bytes: How much output is kept.
        """
        self.input = _Answers()
        """The standard input of the step."""
        self.value: Any = None
        """Value of the last expression."""
        self.final: tuple[Any] | None = None
        """The final answer, if the step gave one."""
        self.error: str | None = None
        """Traceback of the exception that the step raised, if any."""
        self.has_outcome = False
        """Whether the step reported its outcome."""
        self._mark = mark
        self._tools = tools
        self._variables = variables
        self._max_bytes = max_bytes
        self._printed = bytearray()
        self._is_cut = False
        self._waiting = bytearray()
        """Output that may begin a mark, or an incomplete message."""
        self._searched = 0
        self._is_long = False

    @property
    def printed(self) -> str:
        """The output of both streams, in order of arrival."""
        text = self._printed.decode("utf-8", "replace")
        return f"{text}\n(the rest of the output was dropped)" if self._is_cut else text

    def receive(self, stream: str, data: bytes) -> None:
        """Handle output of the step; calls the tools that it requests."""
        if stream != "stdout":
            self._keep(data)
            return
        self._waiting += data
        while (message := self._next()) is not None:
            self._answer(message)

    def _next(self) -> bytes | None:
        """The next complete message; output before it is kept."""
        waiting, mark = self._waiting, self._mark
        if not waiting.startswith(mark):
            begin = waiting.find(mark)
            if begin < 0:
                # The mark may be split between two chunks.
                begin = len(waiting) - _overlap(waiting, mark)
            self._keep(bytes(waiting[:begin]))
            del waiting[:begin]
            self._searched = len(mark)
        if not waiting.startswith(mark):
            return None
        end = waiting.find(b"\n", self._searched)
        if end < 0:
            self._shorten()
            return None
        message = b"" if self._is_long else bytes(waiting[len(mark) : end])
        del waiting[: end + 1]
        self._searched, self._is_long = len(mark), False
        return message

    def _keep(self, data: bytes) -> None:
        room = self._max_bytes - len(self._printed)
        self._is_cut = self._is_cut or len(data) > room
        self._printed += data[: max(room, 0)]

    def _shorten(self) -> None:
        """Drop the content of a message that is too long, but wait for its end."""
        if len(self._waiting) > MESSAGE_BYTES:
            self._is_long = True
            del self._waiting[len(self._mark) :]
        self._searched = len(self._waiting)

    def _answer(self, message: bytes) -> None:
        try:
            request = _parse(message)
            if "tell" in request:
                self._store_outcome(request)
                return
            if request["ask"] == "tool":
                answer = self._call_tool(request)
            else:
                answer = {"value": self._variables(bool(request["all"]))}
        except Exception as error:
            answer = {"error": type(error).__name__, "message": _message(error)}
        self.input.add(json.dumps(answer).encode())

    def _store_outcome(self, report: dict[str, Any]) -> None:
        self.has_outcome = True
        try:
            if report["tell"] == "error":
                self.error = str(report["text"])
            else:
                self.value = decode(report["value"])
        except Exception as error:
            self.error = f"the result of the code cannot be decoded: {error}"

    def _call_tool(self, request: dict[str, Any]) -> dict[str, Any]:
        """Call a tool; its exception is passed on to the code that called it."""
        name = request["name"]
        tool = self._tools.get(name)
        if tool is None:
            raise NameError(f"there is no tool {name!r}")
        result = tool(*decode(request["args"]), **decode(request["kwargs"]))
        if name == FINAL_ANSWER:
            self.final = self.final or (result,)
            return {"ends": True}
        return {"value": encode(result)}


def _parse(message: bytes) -> dict[str, Any]:
    if not message:
        raise ValueError(f"more than {MESSAGE_BYTES} bytes cannot be passed")
    document = json.loads(message)
    if not isinstance(document, dict):
        raise TypeError("a message must be an object")
    return document


def _message(error: Exception) -> str:
    """The message of an error; `str` of a `KeyError` would add quotes."""
    return error.args[0] if len(error.args) == 1 and isinstance(error.args[0], str) else str(error)


def _overlap(data: bytearray, mark: bytes) -> int:
    """The number of bytes at the end of *data* that may begin *mark*."""
    return next((size for size in range(len(mark) - 1, 0, -1) if data.endswith(mark[:size])), 0)


class _Answers(io.RawIOBase):
    """Standard input with the answers for the guest; otherwise it is at its end."""

    def __init__(self) -> None:
        self._waiting = io.BytesIO()

    def add(self, answer: bytes) -> None:
        """Append *answer* for the guest to read."""
        self._waiting = io.BytesIO(self._waiting.read() + len(answer).to_bytes(_SIZE_BYTES, "big") + answer)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any writable buffer
        """Fill *buffer* with waiting answers; return 0 if there are none."""
        return self._waiting.readinto(buffer)
