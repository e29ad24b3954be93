"""The host's side of a step: collects what the guest prints, and answers its tool calls."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any  # whatever JSON can say, and what tools take and give

from carrel.adapters.smolagents.json_codec import decode, encode
from carrel.values import MIB

FINAL_ANSWER = "final_answer"
"""The tool whose call ends the run of an agent."""
MESSAGE_BYTES = 16 * MIB
"""The longest line that a guest may send."""
_SIZE_BYTES = 8


class Conversation:
    """Hears one step: keeps what it prints, calls the tools that it asks for, and knows how it ended.

    The guest chooses what it says, so everything it says is read as values, and only the tools that it was
    given are called.
    """

    def __init__(
        self,
        mark: bytes,
        tools: Mapping[str, Callable[..., Any]],
        variables: Callable[[bool], Any],
        *,
        most_bytes: int,
    ) -> None:
        """Hear lines that begin with *mark*.

        Args:
            mark: What no code prints by accident.
            tools: May be called, by their names.
            variables: Gives those that are new, or all, as JSON has them.
            most_bytes: How much of what is printed is kept.
        """
        self.input = _Answers()
        """The standard input of the step."""
        self.value: Any = None
        """The value of its last expression."""
        self.final: tuple[Any] | None = None
        """The answer that it gave, if it did."""
        self.error: str | None = None
        """What it raised, if it did."""
        self.is_told = False
        """Whether it said how it ended."""
        self._mark = mark
        self._tools = tools
        self._variables = variables
        self._most_bytes = most_bytes
        self._printed = bytearray()
        self._is_cut = False
        self._waiting = bytearray()
        """What may be the beginning of a mark, or is that of a message."""
        self._searched = 0
        self._is_long = False

    @property
    def printed(self) -> str:
        """What was printed to both streams, in the order in which it came."""
        text = self._printed.decode("utf-8", "replace")
        return f"{text}\n(what follows was left out)" if self._is_cut else text

    def hear(self, stream: str, data: bytes) -> None:
        """Take what the step wrote to a stream; a tool that it asks for is called meanwhile."""
        if stream != "stdout":
            self._keep(data)
            return
        self._waiting += data
        while (message := self._next()) is not None:
            self._answer(message)

    def _next(self) -> bytes | None:
        """The next message, if it is complete; what was printed before it is kept."""
        waiting, mark = self._waiting, self._mark
        if not waiting.startswith(mark):
            begin = waiting.find(mark)
            if begin < 0:
                # The mark may come in two pieces.
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
        room = self._most_bytes - len(self._printed)
        self._is_cut = self._is_cut or len(data) > room
        self._printed += data[: max(room, 0)]

    def _shorten(self) -> None:
        """Forget a message that is longer than any may be; its end is still awaited."""
        if len(self._waiting) > MESSAGE_BYTES:
            self._is_long = True
            del self._waiting[len(self._mark) :]
        self._searched = len(self._waiting)

    def _answer(self, message: bytes) -> None:
        try:
            asked = _parsed(message)
            if "tell" in asked:
                self._note(asked)
                return
            answer = self._called(asked) if asked["ask"] == "tool" else self._told_variables(asked)
        except Exception as error:
            answer = {"error": type(error).__name__, "message": _said(error)}
        self.input.add(json.dumps(answer).encode())

    def _note(self, told: dict[str, Any]) -> None:
        """Remember how the step ended."""
        self.is_told = True
        try:
            if told["tell"] == "error":
                self.error = str(told["text"])
            else:
                self.value = decode(told["value"])
        except Exception as error:
            self.error = f"what the code gave cannot be read: {error}"

    def _told_variables(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"value": self._variables(bool(asked["all"]))}

    def _called(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Call a tool; what it raises is for the code that called it."""
        name = asked["name"]
        tool = self._tools.get(name)
        if tool is None:
            raise NameError(f"there is no tool {name!r}")
        result = tool(*decode(asked["args"]), **decode(asked["kwargs"]))
        if name == FINAL_ANSWER:
            self.final = self.final or (result,)
            return {"ends": True}
        return {"value": encode(result)}


def _parsed(message: bytes) -> dict[str, Any]:
    if not message:
        raise ValueError(f"more than {MESSAGE_BYTES} bytes cannot be handed over")
    asked = json.loads(message)
    if not isinstance(asked, dict):
        raise TypeError("a message must be an object")
    return asked


def _said(error: Exception) -> str:
    """What an error says, as it was given to it; a `KeyError` shows its own in quotes."""
    return error.args[0] if len(error.args) == 1 and isinstance(error.args[0], str) else str(error)


def _overlap(data: bytearray, mark: bytes) -> int:
    """How many bytes at the end of *data* may be the beginning of *mark*."""
    return next((size for size in range(len(mark) - 1, 0, -1) if data.endswith(mark[:size])), 0)


class _Answers(io.RawIOBase):
    """Standard input that holds the answers to what was asked; all other input is at its end."""

    def __init__(self) -> None:
        self._waiting = io.BytesIO()

    def add(self, answer: bytes) -> None:
        """Let the guest read *answer* next."""
        self._waiting = io.BytesIO(self._waiting.read() + len(answer).to_bytes(_SIZE_BYTES, "big") + answer)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]  # any writable buffer
        """Fill *buffer* with what waits; 0 if nothing does."""
        return self._waiting.readinto(buffer)
