"""The paths of the table through MCP: in every argument of every tool, and as the address of a resource."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.attack.served import Served
from tests.attack.test_every_operation import PARAMETERS
from tests.attack.tool_operations import CALLS, filled
from tests.conformance.mcp_door import Mcp

pytestmark = pytest.mark.attack

ANSWERED = frozenset({"result", "error"})


@pytest.fixture(scope="module")
def door(served: Served) -> Iterator[Mcp]:
    door = Mcp(served.server.port)
    yield door
    door.close()


@pytest.mark.parametrize("place", PARAMETERS[3::6])
def test_no_tool_reaches_out(place: tuple[str, str], served: Served, door: Mcp) -> None:
    """Of the calls one in five, another fifth for each place: behind every door it is the same toolbox."""
    layout, path = place
    served.lay_out(layout, prepared=True)
    asked = served.world.fill(path)
    before = served.world.contents()
    for call in CALLS[(len(layout + path) + 2) % 5 :: 5]:
        arguments = {"session": "ROOT", **filled(call, asked)}
        answer = door.call(call.name, arguments, profile=call.profile, role="developer")
        try:
            _require_calm(served, answer, asked)
        except AssertionError as error:
            error.add_note(f"{call} with {asked[:80]!r}")
            raise
        if call.is_changing and served.world.contents() != before:
            served.lay_out(layout, prepared=True)


@pytest.mark.parametrize("place", PARAMETERS[1::4])
def test_no_resource_reaches_out(place: tuple[str, str], served: Served, door: Mcp) -> None:
    """Encoded once, twice and not at all."""
    layout, path = place
    served.lay_out(layout)
    asked = served.world.fill(path)
    once = "".join(f"%{byte:02X}" for byte in asked.encode("utf-8", "surrogatepass"))
    for spelling in (once, quote(once), quote(asked.encode("utf-8", "surrogatepass"), safe="/.~")):
        uri = f"carrel://ROOT/{spelling}"
        answer = door.request("resources/read", {"uri": uri}, uri)
        _require_calm(served, answer, asked, uri)


def _require_calm(served: Served, answer: dict[str, object], *asked: str) -> None:
    assert ANSWERED & set(answer), answer
    served.require_silence(json.dumps(answer), *asked)
    served.world.require_untouched()
