"""One service for all calls, and the doors to it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from carrel.sessions.manager import WorkspaceManager
from tests.conformance.client_door import ByClient
from tests.conformance.command_line import CommandLine
from tests.conformance.door import Door, Doors
from tests.conformance.grpc_door import Grpc
from tests.conformance.http_door import Http
from tests.conformance.library import Library
from tests.conformance.mcp_door import Mcp
from tests.conformance.place import SECRET, Places
from tests.conformance.server import Server


@pytest.fixture(scope="session")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Places]:
    """A sessions directory, with something outside of every session in it."""
    sessions = tmp_path_factory.mktemp("conformance")
    (sessions / "outside/dir").mkdir(parents=True)
    (sessions / "outside/secret").write_text(SECRET)
    with WorkspaceManager(sessions) as manager:
        yield Places(sessions, manager)


@pytest.fixture(scope="session")
def server(places: Places) -> Iterator[Server]:
    """Serves that directory."""
    with Server(places.sessions) as server:
        yield server


@pytest.fixture(scope="session")
def doors(places: Places, server: Server) -> Iterator[Doors]:
    """Every door."""
    library = Library(places.manager)
    others: list[Door] = [
        CommandLine(places.sessions),
        Http(server.port),
        Grpc(server.grpc_address),
        Mcp(server.port),
        ByClient(server.url),
        ByClient(f"grpc://{server.grpc_address}"),
    ]
    yield Doors(places=places, library=library, others=others)
    for door in (library, *others):
        door.close()
