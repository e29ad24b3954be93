"""Server-sent events, however they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from carrel.remote.run_sync import iterate_sync, run_sync
from carrel.remote.transport.server_sent_events import ServerSentEvent, parse_events

STREAM = (
    b"id: 5\nevent: stdout\ndata: {}\n\n"
    b": a comment\n\n"
    b"event: stdout\r\ndata: one\r\ndata:two\r\n\r\n"
    b"data\n\n"
    b"id: 7\nevent: exit\ndata: \xc3\xa9\n\n"
    b"event: cut\ndata: off"
)


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_events_are_the_same_in_whatever_pieces_they_come(size: int) -> None:
    async def pieces() -> AsyncGenerator[bytes]:
        for begin in range(0, len(STREAM), size):
            yield STREAM[begin : begin + size]

    assert list(iterate_sync(parse_events(pieces()))) == [
        ServerSentEvent(name="stdout", data="{}", id="5"),
        ServerSentEvent(name="stdout", data="one\ntwo", id="5"),
        ServerSentEvent(name="message", data="", id="5"),
        ServerSentEvent(name="exit", data="\u00e9", id="7"),
    ]


def test_what_waits_for_an_event_loop_is_a_mistake() -> None:
    async def wait() -> None:
        await asyncio.sleep(0)

    with pytest.raises(RuntimeError, match="must not wait"):
        run_sync(wait())


def test_leaving_an_iteration_ends_what_it_came_from() -> None:
    ended: list[bool] = []

    async def numbers() -> AsyncGenerator[int]:
        try:
            yield 1
            yield 2
        finally:
            ended.append(True)

    for number in iterate_sync(numbers()):
        assert number == 1
        break
    assert ended == [True]
