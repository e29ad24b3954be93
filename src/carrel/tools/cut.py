"""Answers that are too long: cut, with a cursor to go on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple, TypeVar

from carrel.errors import ChangedError, ToolError

Value = TypeVar("Value")

_LOOK_BACK = 2**14
"""So far before the limit a line end is looked for."""


class Cursor(NamedTuple):
    """Where the next answer begins, and in what."""

    position: int
    version: str = ""
    """That of the file, so that what goes on is what was begun."""

    def render(self) -> str:
        """As it is told."""
        return f"{self.position}@{self.version}" if self.version else str(self.position)

    @classmethod
    def parse(cls, text: str | None) -> Cursor:
        """The cursor in *text*; without one, the beginning.

        Raises:
            ToolError: It is none that was told.
        """
        if text is None:
            return cls(0)
        position, _, version = text.partition("@")
        if not position.isdecimal() or not position.isascii() or len(position) > 18:
            raise ToolError("arguments", "Wrong arguments: 'cursor' was not given by an answer")
        return cls(int(position), version)

    def require(self, version: str, path: str) -> None:
        """Refuse to go on in a file that is another by now.

        Raises:
            ChangedError: It was changed.
        """
        if self.version and self.version != version:
            raise ChangedError(f"{path!r} was changed meanwhile", path=path)


def cut_text(data: bytes, most: int) -> int:
    """How many bytes of UTF-8 to give if *most* may be given: whole lines if there are any, or characters."""
    if len(data) <= most:
        return len(data)
    line_end = data.rfind(b"\n", max(0, most - _LOOK_BACK), most)
    if line_end >= 0:
        return line_end + 1
    end = most
    while end > 0 and data[end] & 0xC0 == 0x80:
        end -= 1
    return end or _first_character(data, most)


def _first_character(data: bytes, most: int) -> int:
    """The size of the first character, which does not fit but without which nobody would get on."""
    if data[0] < 0xC0:
        # It is no UTF-8, so it does not matter where it is cut.
        return most
    end = 1
    while end < min(len(data), 4) and data[end] & 0xC0 == 0x80:
        end += 1
    return end


def fitting(values: Iterable[Value], most: int) -> list[Value]:
    """As many of *values*, which JSON can say, as take at most *most* bytes together; but at least one."""
    given: list[Value] = []
    room = most
    for value in values:
        room -= len(json.dumps(value)) + 2
        if room < 0 and given:
            break
        given.append(value)
    return given
