"""Which calls are answered without the SDK, and that nobody can tell."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import SERVER_INFO_META_KEY, JSONRPCError, JSONRPCResponse
from mcp_types.jsonrpc import ErrorData

from carrel.fronts.mcp.tool_calls import PendingCall
from carrel.fronts.mcp.transports.fast_path import FastPath

OLDER = JSONRPCResponse(jsonrpc="2.0", id=0, result={"protocolVersion": "2025-11-25"})
NEWER = JSONRPCResponse(jsonrpc="2.0", id=0, result={"_meta": {SERVER_INFO_META_KEY: {"name": "carrel"}}})
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
Document = dict[str, Any]  # Any: whatever JSON can say


class Tools:
    """Tools that return their arguments: inline, except those whose name begins with `slow`."""

    def start(self, name: str, arguments: Mapping[str, Any]) -> Document | PendingCall:
        if name.startswith("slow"):
            return lambda report: self.finish(name, arguments)
        return self._answer(name, arguments)

    async def finish(self, name: str, arguments: Mapping[str, Any]) -> Document:
        return self._answer(name, arguments)

    def _answer(self, name: str, arguments: Mapping[str, Any]) -> Document:
        if name.endswith("unknown"):
            raise MCPError(-32602, f"There is no tool {name!r}")
        return {"content": [name, dict(arguments)]}


def line(number: object = 1, name: object = "tool", **more: Any) -> bytes:
    """A call as a client writes it."""
    params = {"name": name, **more.pop("params", {})}
    return json.dumps(
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params, **more}
    ).encode()


def answers(
    learnt: JSONRPCResponse | JSONRPCError | None, *lines: bytes
) -> tuple[list[bool], list[Document]]:
    """Which lines are taken after something was *learnt*, and what is answered."""
    sent: list[Document] = []

    async def main() -> list[bool]:
        async with FastPath(Tools().start, lambda message: sent.append(json.loads(message))) as fast_path:
            if learnt is not None:
                fast_path.observe(learnt)
            taken = [fast_path.try_handle(each) for each in lines]
            await asyncio.sleep(0)
            return taken

    return asyncio.run(main()), sent


def test_a_plain_call_is_answered_in_the_shape_of_each_era() -> None:
    taken, sent = answers(OLDER, line(7, params={"arguments": {"a": [1]}}))
    assert (taken, sent) == (
        [True],
        [{"jsonrpc": "2.0", "id": 7, "result": {"content": ["tool", {"a": [1]}]}}],
    )
    for name in ("tool", "slow tool"):
        taken, sent = answers(NEWER, line("x", name, params={"_meta": META}))
        assert taken == [True]
        assert sent[0]["result"] == {
            "content": [name, {}],
            "resultType": "complete",
            "_meta": {SERVER_INFO_META_KEY: {"name": "carrel"}},
        }


@pytest.mark.parametrize(
    "learnt",
    [
        None,
        JSONRPCError(jsonrpc="2.0", id=0, error=ErrorData(code=-32602, message="no")),
        JSONRPCResponse(jsonrpc="2.0", id=0, result={}),
        JSONRPCResponse(jsonrpc="2.0", id=0, result={"protocolVersion": "2024-11-05"}),
    ],
)
def test_nothing_is_taken_before_it_is_known_what_is_spoken(learnt: JSONRPCResponse | None) -> None:
    assert answers(learnt, line()) == ([False], [])


@pytest.mark.parametrize(
    "call",
    [
        line(None),
        line(1.5),
        line(name=1),
        line(params={"arguments": []}),
        line(params={"arguments": None}),
        line(params={"more": 1}),
        line(params={"_meta": {"progressToken": 1}}),
        line(params={"_meta": {**META, "progressToken": 1}}),
        line(more=1),
        line().replace(b"2.0", b"1.0"),
        line()[:-1],
        b"[" + line() + b"]",
        b'"tools/call"',
        b'{"tools/call"' + b"[" * 10_000,
        line().replace(b"tool", b"\xff", 1),
    ],
)
@pytest.mark.parametrize("learnt", [OLDER, NEWER])
def test_what_is_not_plain_is_left_to_the_sdk(learnt: JSONRPCResponse, call: bytes) -> None:
    assert answers(learnt, call) == ([False], [])


def test_a_call_of_the_other_era_is_left_to_the_sdk() -> None:
    old = {**META, "io.modelcontextprotocol/protocolVersion": "2025-11-25"}
    assert answers(OLDER, line(params={"_meta": META})) == ([False], [])
    assert answers(NEWER, line(), line(params={"_meta": old})) == ([False, False], [])


@pytest.mark.parametrize("name", ["unknown", "slow unknown"])
def test_what_goes_wrong_is_an_error(name: str) -> None:
    _, sent = answers(OLDER, line(1, name))
    assert sent == [
        {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": f"There is no tool {name!r}"}}
    ]


@pytest.mark.parametrize("name", ["tool", "slow tool"])
@pytest.mark.parametrize("learnt", [OLDER, NEWER])
def test_names_that_are_no_text_are_written_all_the_same(learnt: JSONRPCResponse, name: str) -> None:
    class Odd(Tools):
        def _answer(self, name: str, arguments: Mapping[str, Any]) -> Document:
            return {"content": ["a\udcff"]}

    sent: list[bytes] = []

    async def main() -> None:
        async with FastPath(Odd().start, sent.append) as fast_path:
            fast_path.observe(learnt)
            assert fast_path.try_handle(line(1, name, params={} if learnt is OLDER else {"_meta": META}))
            await asyncio.sleep(0)

    asyncio.run(main())
    (answer,) = sent
    assert json.loads(answer)["result"]["content"] == ["a\\udcff"]


class Waiting(Tools):
    """Slow tools that never end by themselves."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.stopped: list[str] = []

    async def finish(self, name: str, arguments: Mapping[str, Any]) -> Document:
        self.begun.append(name)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.stopped.append(name)
            raise
        raise AssertionError


def test_what_is_done_at_once_is_answered_before_anything_else_gets_a_turn() -> None:
    tools = Waiting()
    sent: list[int] = []

    async def main() -> None:
        async with FastPath(tools.start, lambda message: sent.append(json.loads(message)["id"])) as fast_path:
            fast_path.observe(OLDER)
            assert fast_path.try_handle(line(1, "slow"))
            assert fast_path.try_handle(line(2))
            assert fast_path.try_handle(line(3))
            assert (sent, tools.begun) == ([2, 3], []), "no task had a turn yet"
            await asyncio.sleep(0)
            assert tools.begun == ["slow"]
            assert fast_path.try_handle(line(4))
            assert sent == [2, 3, 4], "nothing waits behind what takes long"

    asyncio.run(main())


def test_a_call_that_is_cancelled_gets_no_answer_and_stops() -> None:
    tools = Waiting()
    cancel = b'{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}'
    sent: list[bytes] = []

    async def main() -> None:
        async with FastPath(tools.start, sent.append) as fast_path:
            fast_path.observe(OLDER)
            assert fast_path.try_handle(line(1, "slow first"))
            assert fast_path.try_handle(line(2, "slow second"))
            await asyncio.sleep(0)
            assert not fast_path.try_handle(cancel), "the SDK is told too"
            await asyncio.sleep(0)
            assert tools.stopped == ["slow first"]

    asyncio.run(main())
    assert tools.stopped == ["slow first", "slow second"], "what runs at the end is stopped"
    assert sent == []


def test_two_calls_at_once_cannot_have_one_number() -> None:
    assert answers(OLDER, line(1, "slow"), line(1, "slow"))[0] == [True, False]
    assert answers(OLDER, line(1, "slow"), line(1))[0] == [True, False]
    assert answers(OLDER, line(1), line(1))[0] == [True, True], "the first one has ended"
