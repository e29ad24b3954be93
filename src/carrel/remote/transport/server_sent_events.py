"""Parse server-sent events from the body of a response."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSentEvent:
    """One server-sent event."""

    name: str
    data: str
    id: str
    """Position in the stream; a request with it as `Last-Event-ID` resumes after this event."""


async def parse_events(body: AsyncGenerator[bytes]) -> AsyncGenerator[ServerSentEvent]:
    """Parse the events of a body; an incomplete event at the end is dropped."""
    fields: dict[str, list[str]] = {}
    last = ""
    async with aclosing(_lines(body)) as lines:
        async for line in lines:
            if line:
                name, _, value = line.partition(":")
                # A line without a field name is a comment.
                if name:
                    fields.setdefault(name, []).append(value.removeprefix(" "))
            elif fields:
                last = fields.get("id", [last])[-1]
                name = fields.get("event", ["message"])[-1]
                yield ServerSentEvent(name=name, data="\n".join(fields.get("data", [])), id=last)
                fields = {}


async def _lines(body: AsyncGenerator[bytes]) -> AsyncGenerator[str]:
    rest = b""
    async for chunk in body:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode("utf-8", "replace")
