"""Requests and answers on pipes: who gets which line, when, and when nobody reads on."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import struct
import termios
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import anyio
import pytest
import uvloop
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from carrel.fronts.mcp.transports.stdio_transport import (
    MAX_UNANSWERED,
    RequestReader,
    ResponseWriter,
    TryHandle,
)

PIPE_BYTES = 4096


class Pipes(NamedTuple):
    """Both sides of a conversation."""

    requests: RequestReader
    answers: ResponseWriter
    ask: int
    """What the client writes to."""
    hear: int
    """What it reads from."""


@asynccontextmanager
async def pipes(took: TryHandle | None = None, most_bytes: int = 1000) -> AsyncIterator[Pipes]:
    """A server with small pipes; the client closes its ends itself if it wants to."""
    source, ask = os.pipe()
    hear, target = os.pipe()
    for fd in (ask, target):
        fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    os.set_blocking(ask, False)
    os.set_blocking(hear, False)
    try:
        async with (
            await ResponseWriter.open(target, most_bytes) as answers,
            await RequestReader.open(source, answers, took) as requests,
        ):
            yield Pipes(requests, answers, ask, hear)
    finally:
        for fd in (ask, hear):
            try:
                os.close(fd)
            except OSError:
                continue


Run = Callable[[Callable[[], Coroutine[Any, Any, None]]], None]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Lets something go on for a minute at most, in both kinds of loop that a server may have."""

    def within(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(asyncio.wait_for(main(), 60))

    return within


async def turns(count: int = 50) -> None:
    """Let everything go on that can."""
    for _ in range(count):
        await asyncio.sleep(0)


async def until(is_so: Callable[[], bool]) -> None:
    while not is_so():
        await asyncio.sleep(0.001)


def unread(fd: int) -> int:
    """How many bytes are in a pipe."""
    count: int = struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"    "))[0]
    return count


def note(number: int) -> bytes:
    return b'{"jsonrpc": "2.0", "method": "n%d"}\n' % number


def request(number: int) -> bytes:
    return b'{"jsonrpc": "2.0", "id": %d, "method": "m"}\n' % number


def cancel(number: int) -> bytes:
    params = b'{"requestId": %d}' % number
    return b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": %s}\n' % params


def number(message: SessionMessage | Exception) -> int | str:
    assert isinstance(message, SessionMessage)
    assert isinstance(message.message, JSONRPCRequest)
    return message.message.id


def method(message: SessionMessage | Exception) -> str:
    assert isinstance(message, SessionMessage)
    assert isinstance(message.message, JSONRPCNotification)
    return message.message.method


def test_messages_come_in_order_and_then_no_more(run: Run) -> None:
    async def main() -> None:
        async with pipes() as (requests, _, ask, _):
            os.write(ask, note(1) + note(2) + note(3)[:10])
            assert method(await requests.receive()) == "n1"
            await turns()
            os.write(ask, note(3)[10:] + note(4).rstrip())
            os.close(ask)
            assert [method(each) async for each in requests] == ["n2", "n3", "n4"]
            for _ in range(2):
                with pytest.raises(anyio.EndOfStream):
                    await requests.receive()

    run(main)


def test_what_is_no_message_is_answered_and_left_out(run: Run) -> None:
    async def main() -> None:
        async with pipes() as (requests, _, ask, hear):
            os.write(ask, b"nothing\n\n\xff\n" + note(1))
            assert isinstance((await requests.receive()).message, JSONRPCNotification)
            await turns()
            told = os.read(hear, PIPE_BYTES).splitlines()
            assert [json.loads(each)["error"]["code"] for each in told] == [PARSE_ERROR] * 2

    run(main)


def test_what_somebody_took_is_left_out_and_the_rest_keeps_its_order(run: Run) -> None:
    taken: list[bytes] = []

    def took(line: bytes) -> bool:
        if b"n2" in line or b"n4" in line:
            taken.append(line + b"\n")
            return True
        return False

    async def main() -> None:
        async with pipes(took) as (requests, _, ask, _):
            for number in (1, 2):
                os.write(ask, note(number))
                await until(lambda: not unread(ask))
                await turns()
            assert taken == [], "the message before it was not read yet"
            os.write(ask, b"".join(map(note, (3, 4, 5))))
            os.close(ask)
            assert [method(each) async for each in requests] == ["n1", "n3", "n5"]
            assert taken == [note(2), note(4)]

    run(main)


def test_everything_else_gets_its_turn_between_two_lines(run: Run) -> None:
    seen: list[str] = []
    is_over = asyncio.Event()

    def took(line: bytes) -> bool:
        seen.append("line")
        asyncio.get_running_loop().call_soon(seen.append, "other")
        if seen.count("line") == 20:
            is_over.set()
        return True

    async def main() -> None:
        async with pipes(took) as (_, _, ask, _):
            os.write(ask, b"".join(map(note, range(20))))
            await is_over.wait()
            await turns()

    run(main)
    assert seen == ["line", "other"] * 20


def test_no_more_is_read_while_a_message_waits_for_its_reader(run: Run) -> None:
    async def main() -> None:
        async with pipes(lambda _: False) as (requests, _, ask, _):
            sent = 0
            os.write(ask, note(0) + note(1))
            await until(lambda: not unread(ask))
            await turns()
            while True:
                try:
                    os.write(ask, note(2))
                except BlockingIOError:
                    break
                sent += 1
                await turns(5)
            assert unread(ask) > PIPE_BYTES - 100, "it is left in the pipe"
            found = [method(await requests.receive()) for _ in range(2 + sent)]
            assert found == ["n0", "n1"] + ["n2"] * sent

    run(main)


def test_a_client_that_reads_no_answers_is_asked_for_no_more_until_it_does(run: Run) -> None:
    async def main() -> None:
        taken = 0

        def took(line: bytes) -> bool:
            nonlocal taken
            taken += 1
            both.answers.write(b"x" * 999)
            return True

        async with pipes(took) as both:
            count = 60
            os.write(both.ask, b"".join(map(request, range(count))))
            await until(lambda: both.answers.is_full)
            await turns()
            stopped = taken
            assert stopped < 10, "what fits into the pipe, and little more"
            heard = b""
            while len(heard) < count * 1000:
                try:
                    heard += os.read(both.hear, 100)
                except BlockingIOError:
                    await asyncio.sleep(0.001)
            assert heard == (b"x" * 999 + b"\n") * count
            assert taken == count

    run(main)


def test_requests_wait_for_answers_and_what_is_no_request_goes_before_them(run: Run) -> None:
    async def main() -> None:
        async with pipes() as (requests, answers, ask, _):
            os.write(ask, b"".join(map(request, range(MAX_UNANSWERED + 3))) + note(1))
            for _ in range(MAX_UNANSWERED):
                await anext(requests)
            assert method(await anext(requests)) == "n1"
            os.write(ask, cancel(MAX_UNANSWERED) + cancel(0))
            assert method(await anext(requests)) == "notifications/cancelled"
            assert method(await anext(requests)) == "notifications/cancelled"
            # The one is not wanted any more, the other has made room.
            assert number(await anext(requests)) == MAX_UNANSWERED + 1
            waiting = asyncio.ensure_future(anext(requests))
            await turns()
            assert not waiting.done()
            await answers.send(SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={})))
            assert number(await waiting) == MAX_UNANSWERED + 2

    run(main)


@pytest.mark.parametrize("said", ["{}", "[]", "null", "1.5", "1e999", "true", "9" * 400, '{"a": [1]}', '"x"'])
def test_a_cancellation_of_nothing_that_is_a_number_changes_nothing(run: Run, said: str) -> None:
    line = f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{said}}}}}\n'

    async def main() -> None:
        async with pipes() as (requests, _, ask, _):
            os.write(ask, line.encode() + note(1))
            while method(await anext(requests)) != "n1":
                pass

    run(main)


def test_who_sends_waits_for_a_client_that_reads_slowly(run: Run) -> None:
    message = SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={"x": "y" * 10_000}))

    async def main() -> None:
        async with pipes() as (_, answers, _, hear):
            sending = asyncio.create_task(answers.send(message))
            await turns()
            assert not sending.done()
            heard = b""
            while not sending.done() or unread(hear):
                try:
                    heard += os.read(hear, 1000)
                except BlockingIOError:
                    await asyncio.sleep(0.001)
            assert heard.count(b"y") == 10_000

    run(main)


def test_who_sends_to_a_client_that_is_gone_learns_it(run: Run) -> None:
    message = SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=1, result={"x": "y" * 10_000}))

    async def main() -> None:
        async with pipes() as (requests, answers, ask, hear):
            sending = asyncio.create_task(answers.send(message))
            await turns()
            os.close(hear)
            await sending
            await until(lambda: not answers.is_open)
            with pytest.raises(anyio.BrokenResourceError):
                await answers.send(message)
            answers.write(b"nobody is told")
            os.close(ask)
            with pytest.raises(anyio.EndOfStream):
                await requests.receive()

    run(main)


def test_an_end_does_not_wait_for_ever_for_a_client_that_does_not_read(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("carrel.fronts.mcp.transports.stdio_transport.CLOSE_SECONDS", 0.01)

    async def main() -> None:
        async with pipes() as (_, answers, _, _):
            answers.write(b"x" * 100_000)

    run(main)
