"""Parse server-sent events from the body of a response."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSentEvent:
    """One event."""

    name: str
    data: str
    id: str
    """Names the place in the stream; what is asked for with it goes on after this event."""


async def parse_events(pieces: AsyncGenerator[bytes]) -> AsyncGenerator[ServerSentEvent]:
    """The events in a body; one that was cut off at its end is left out."""
    fields: dict[str, list[str]] = {}
    last = ""
    async with aclosing(_lines(pieces)) as lines:
        async for line in lines:
            if line:
                name, _, value = line.partition(":")
                # One without a name is a comment.
                if name:
                    fields.setdefault(name, []).append(value.removeprefix(" "))
            elif fields:
                last = fields.get("id", [last])[-1]
                name = fields.get("event", ["message"])[-1]
                yield ServerSentEvent(name=name, data="\n".join(fields.get("data", [])), id=last)
                fields = {}


async def _lines(pieces: AsyncGenerator[bytes]) -> AsyncGenerator[str]:
    held = b""
    async for piece in pieces:
        *lines, held = (held + piece).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode("utf-8", "replace")
