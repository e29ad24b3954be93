"""The table of attacks through gRPC: by the client, and by every argument of every tool."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import grpc
import pytest

import carrel.sandbox.shell  # noqa: F401  # imported here late otherwise, which leaves descriptors open
from carrel import connect
from carrel.remote.proto import carrel_v1_pb2 as messages
from carrel.remote.workspace import RemoteWorkspace
from tests.attack.more import MORE
from tests.attack.operations import TABLE
from tests.attack.row import Row
from tests.attack.served import Served
from tests.attack.special import marks
from tests.attack.table import ROWS
from tests.attack.test_every_operation import PARAMETERS
from tests.attack.tool_operations import CALLS, filled
from tests.conformance.grpc_door import Grpc, envelope

pytestmark = pytest.mark.attack

FROM_AFAR: dict[str, Callable[..., object]] = {
    **TABLE,
    "read": RemoteWorkspace.read,
    "stat": RemoteWorkspace.stat,
    "unlink": RemoteWorkspace.remove,
    "rmdir": RemoteWorkspace.remove,
    "rename": RemoteWorkspace.move,
    "copy": RemoteWorkspace.copy,
}
"""The operations of the table, where it names a method of the class."""
ALL = [pytest.param(row, id=str(row), marks=marks(row.layout)) for row in (*ROWS, *MORE)]


@pytest.fixture(scope="module")
def remote(served: Served) -> Iterator[RemoteWorkspace]:
    """The workspace, from afar."""
    with connect(f"grpc://{served.server.grpc_address}") as client, client.open("ROOT") as workspace:
        workspace.exists("f")  # it is connected from now on
        yield workspace


@pytest.fixture(scope="module")
def door(served: Served) -> Iterator[Grpc]:
    door = Grpc(served.server.grpc_address)
    yield door
    door.close()


@pytest.mark.parametrize("row", ALL)
def test_every_row_ends_as_required(row: Row, served: Served, remote: RemoteWorkspace) -> None:
    operation, arguments, options = row.request
    served.lay_out(row.layout)
    before = served.world.contents()
    paths = tuple(served.world.fill(path) for path in arguments)
    outcome = served.attempt(lambda: FROM_AFAR[operation](remote, *paths, **options), *paths)
    assert outcome.names & row.endings, f"{row.call} must end in {row.required}, not {outcome}"
    if row.gives is not None:
        assert outcome.value == row.gives
    if not outcome.ok:
        assert served.world.contents() == before, "refused, and yet the workspace was changed"
    elif row.leaves is not None:
        assert served.world.contents() == served.world.expected(row.leaves)


@pytest.mark.parametrize("place", PARAMETERS[::6])
def test_no_tool_reaches_out(place: tuple[str, str], served: Served, door: Grpc) -> None:
    """Of the calls one in five, another fifth for each place: behind every door it is the same toolbox."""
    layout, path = place
    served.lay_out(layout, prepared=True)
    asked = served.world.fill(path)
    before = served.world.contents()
    for call in CALLS[len(layout + path) % 5 :: 5]:
        request = messages.CallToolRequest(
            session_id="ROOT",
            context=messages.Context(role="developer"),
            name=call.name,
            profile=call.profile,
            arguments_json=json.dumps(filled(call, asked)),
        )
        try:
            said = json.dumps(envelope(door.sandbox.CallTool(request, timeout=60)))
        except grpc.RpcError as error:
            said = repr(door.error(error))
        try:
            served.require_silence(said, asked)
            served.world.require_untouched()
        except AssertionError as error:
            error.add_note(f"{call} with {asked[:80]!r}")
            raise
        if call.is_changing and served.world.contents() != before:
            served.lay_out(layout, prepared=True)
